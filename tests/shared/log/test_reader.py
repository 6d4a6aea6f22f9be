"""Reading the log, on every backend: order, pages, filters, live copies, and an outage."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

import pytest
from nats.aio.msg import Msg

from tests.eventually import BOUND_S
from tests.shared.backends import Server, open_log
from voxbridge.shared import events
from voxbridge.shared.bus import subjects
from voxbridge.shared.errors import Unavailable
from voxbridge.shared.events.gateway import AudioEnded, ClientConnected, TextReceived
from voxbridge.shared.events.voice import SessionOwned, UserSaid
from voxbridge.shared.ids import new_session_id
from voxbridge.shared.log.reader import PAGE, PAGE_BYTES, Log, decode, position, position_before
from voxbridge.shared.log.unreadable import BROKEN
from voxbridge.shared.log.writer import EVENT_LIMIT, Policy, SessionWriter


def said(text: str = "hello", turn: int = 1) -> UserSaid:
    return UserSaid(text=text, turn=turn, source="text")


async def test_an_event_is_read_back_with_its_position_cause_and_time(log: Log) -> None:
    sid = new_session_id()
    voice = SessionWriter(log, sid, "voice")
    first = await voice.append(SessionOwned(worker="w", term=1), ts=11, cause=None)
    second = await voice.append(said(), ts=12, cause=first)
    third = await voice.append(said("again", 2), ts=13, cause="voice#7")
    read = await log.read(sid)
    assert [(r.seq, r.ts, r.cause, r.id, r.writer, r.visible) for r in read] == [
        (first, 11, None, f"{sid}.voice.0", "voice", False),
        (second, 12, first, f"{sid}.voice.1", "voice", True),
        (third, 13, "voice#7", f"{sid}.voice.2", "voice", True),
    ]
    assert [r.event for r in read] == [SessionOwned(worker="w", term=1), said(), said("again", 2)]
    assert [r.sid for r in read] == [sid] * 3


@pytest.mark.parametrize("count", [PAGE - 1, PAGE, PAGE + 1, 3 * PAGE + 7])
async def test_every_event_is_read_whatever_the_number_of_pages(log: Log, count: int) -> None:
    sid = new_session_id()
    voice = SessionWriter(log, sid, "voice", fenced=False)
    for turn in range(count):
        voice.submit(said(turn=turn), ts=turn, cause=None)
    await voice.flushed()
    read = [recorded async for recorded in log.read_all(sid)]
    assert [r.ts for r in read] == list(range(count))
    assert [r.seq for r in read] == sorted({r.seq for r in read})
    assert [r.ts async for r in log.read_all(sid, after=read[count // 2].seq)] == list(range(count // 2 + 1, count))
    assert len(await log.read(sid)) == min(count, PAGE)


async def test_a_page_that_ends_by_bytes_is_not_taken_for_the_last(log: Log) -> None:
    sid = new_session_id()
    gateway = SessionWriter(log, sid, "gateway", fenced=False)
    size = EVENT_LIMIT - 512
    for number in range(12):
        await gateway.append(TextReceived(text=str(number % 10) * size), ts=number, cause=None)
    async with asyncio.timeout(BOUND_S):
        while not (page := await log.page(sid)).more:  # the replica that answers may be behind
            pass
    assert sum(len(message.data) for message in page.messages) <= PAGE_BYTES + EVENT_LIMIT
    assert [r.ts async for r in log.read_all(sid)] == list(range(12))


async def test_an_unknown_session_gives_nothing(log: Log) -> None:
    sid = new_session_id()
    assert await log.read(sid) == []
    assert [r async for r in log.read_all(sid)] == []
    assert await log.last([subjects.stored_subject(sid)]) == []
    assert await log.position(sid, "voice") == (0, "")


async def test_writer_and_visibility_filter_what_is_read(log: Log) -> None:
    sid, other = new_session_id(), new_session_id()
    voice, gateway = SessionWriter(log, sid, "voice"), SessionWriter(log, sid, "gateway", stem="c1", fenced=False)
    await gateway.append(ClientConnected(gateway="g", connection="c1"), ts=0, cause=None)
    await voice.append(SessionOwned(worker="w", term=1), ts=1, cause=None)
    await SessionWriter(log, other, "voice").append(said(), ts=9, cause=None)
    await voice.append(said(), ts=2, cause=None)
    await gateway.append(AudioEnded(), ts=3, cause=None)

    async def times(writer: str = "*", visibility: str = "*") -> list[int]:
        return [r.ts for r in await log.read(sid, writer=writer, visibility=visibility)]

    assert await times() == [0, 1, 2, 3]
    assert await times(writer="voice") == [1, 2]
    assert await times(writer="gateway") == [0, 3]
    assert await times(visibility="c") == [2]
    assert await times("voice", "i") == [1]
    last = await log.last([subjects.stored_subject(sid, "gateway"), subjects.stored_subject(sid, "voice", "c")])
    assert [r.ts for r in last] == [2, 3], "what a gateway tells lies under one subject"
    assert await log.position(sid, "voice") == (voice.last_seq, voice.message_id(f"{sid}.voice.1"))


async def test_the_live_copy_is_the_stored_event_with_its_position(log: Log) -> None:
    sid = new_session_id()
    copies: asyncio.Queue[Msg] = asyncio.Queue()
    await log.nc.subscribe(subjects.live_subject(sid), cb=copies.put)
    voice = SessionWriter(log, sid, "voice")
    first = await voice.append(said(), ts=1, cause="voice#0")
    second = await voice.append(said("b", 2), ts=2, cause=None)
    live = [await asyncio.wait_for(copies.get(), BOUND_S) for _ in range(2)]
    assert [decode(message) for message in live] == await log.read(sid)
    assert [(position(m), position_before(m)) for m in live] == [(first, 0), (second, first)]
    assert live[0].subject == f"vxc.{sid}.voice.c.said"


async def test_making_the_streams_again_changes_their_settings_and_keeps_what_they_hold(log: Log) -> None:
    sid = new_session_id()
    await SessionWriter(log, sid, "voice").append(said(), ts=1, cause=None)
    try:
        await log.ensure_streams(retention_days=2)
        info = await log.js.stream_info(subjects.EVENT_STREAM)
        assert info.config.max_age == 2 * 86_400
        assert info.config.allow_direct
        assert len(await log.read(sid)) == 1
    finally:
        await log.ensure_streams(retention_days=1)


async def test_a_read_without_a_server_ends_in_time_with_a_typed_error(own_server: Callable[[str], Server]) -> None:
    server = own_server("nats")
    async with open_log(server.url, read_timeout_s=0.2) as log:
        server.kill()
        began = asyncio.get_running_loop().time()
        with pytest.raises(Unavailable) as caught:
            await log.read(new_session_id())
        assert asyncio.get_running_loop().time() - began < 10
        assert caught.value.retryable
        assert caught.value.as_dict()["code"] == "UNAVAILABLE"
        with pytest.raises(Unavailable):
            await log.position(new_session_id(), "voice")


async def test_a_read_of_a_log_that_is_not_there_yet_is_told_apart_from_a_refusal(own_server: Callable[[str], Server]) -> None:
    server = own_server("nats")
    async with open_log(server.url) as log:
        await log.js.delete_stream(subjects.EVENT_STREAM)
        with pytest.raises(Unavailable):
            await log.read(new_session_id())
        with pytest.raises(Unavailable):
            await SessionWriter(log, new_session_id(), "voice", policy=Policy(give_up_s=0.1)).append(said(), ts=1, cause=None)


async def test_reads_go_on_over_cuts_of_the_connection(log: Log) -> None:
    sid = new_session_id()
    voice = SessionWriter(log, sid, "voice", fenced=False)
    for turn in range(2 * PAGE):
        voice.submit(said(turn=turn), ts=turn, cause=None)
    await voice.flushed()
    for _ in range(5):
        reads = [asyncio.create_task(log.read(sid)) for _ in range(8)]
        await asyncio.sleep(0)
        await log.nc.force_reconnect()
        began = asyncio.get_running_loop().time()
        assert [len(await read) for read in reads] == [PAGE] * 8
        assert asyncio.get_running_loop().time() - began < 10


async def test_bytes_that_are_no_event_are_passed_over_counted_once_and_named_by_their_position(
    log: Log, caplog: pytest.LogCaptureFixture
) -> None:
    sid = new_session_id()
    writer = SessionWriter(log, sid, "voice", fenced=False)
    before = await writer.append(said(), ts=1, cause=None)
    broken = (await log.js.publish(subjects.event_subject(sid, "voice", True, "agent.said"), b"\xc1")).seq
    after = await writer.append(said(), ts=2, cause=None)
    count = BROKEN.count
    for _ in range(2):
        read = [recorded async for recorded in log.read_all(sid)]
        assert [recorded.seq for recorded in read] == [before, broken, after]
    middle = read[1]
    assert isinstance(middle.event, events.Unreadable)
    assert str(broken) in middle.event.unreadable
    assert (middle.sid, middle.writer, middle.type, middle.visible) == (sid, "voice", events.UNREADABLE, True)
    assert abs(middle.ts - time.time_ns() // 1_000) < 60_000_000
    assert [recorded.seq for recorded in await log.last([subjects.stored_subject(sid)])] == [after]
    assert BROKEN.count == count + 1
    assert len([line for line in caplog.messages if f"position {broken} cannot be read" in line]) == 1


async def test_an_event_of_a_type_that_is_not_known_is_read_as_it_was(log: Log) -> None:
    sid = new_session_id()
    await SessionWriter(log, sid, "voice").append(said(), ts=1, cause=None)
    (stored,) = [message.data async for page in log.pages(sid) for message in page.messages]
    await log.js.publish(subjects.event_subject(sid, "voice", True, "user.sang"), stored.replace(b"user.said", b"user.sang"))
    read = await log.read(sid)
    assert read[1].type == "user.sang"
    assert read[1].event == events.Unknown(data={"text": "hello", "turn": 1, "source": "text"})
