"""Appending, on every backend: once, in order, by one writer, within limits, across kills of the server."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import nats
import pytest
from nats.js.api import Header

from tests.eventually import BOUND_S, eventually
from tests.shared.backends import Server, open_log
from tests.stopped import stop
from voxbridge.shared import events
from voxbridge.shared.bus import subjects
from voxbridge.shared.embedded.nats_server import NatsServer
from voxbridge.shared.errors import Code, Conflict, Unavailable, VoxbridgeError
from voxbridge.shared.events.gateway import TextReceived
from voxbridge.shared.events.tools import NoteRemembered
from voxbridge.shared.events.voice import SessionOwned, UserSaid
from voxbridge.shared.ids import new_session_id
from voxbridge.shared.log import writer as writer_module
from voxbridge.shared.log.reader import Log
from voxbridge.shared.log.writer import EVENT_LIMIT, PENDING_BYTES, PENDING_LIMIT, End, Policy, SessionWriter

FENCE = "Nats-Expected-Last-Subject-Sequence-Subject"


LOCAL = subjects.account_log("local")


def note(number: int) -> NoteRemembered:
    return NoteRemembered(note_id=f"n{number}", account="local", text=f"note {number}")


def said(turn: int = 1, text: str = "hello") -> UserSaid:
    return UserSaid(text=text, turn=turn, source="text")


async def put_by_hand(log: Log, sid: str, event: events.Event, id: str, last: int | None) -> int:
    """Store an event like a writer whose acknowledgement was then lost."""
    kind = events.kind_of(event)
    headers = {Header.MSG_ID.value: id}
    if last is not None:
        headers |= {Header.EXPECTED_LAST_SUBJECT_SEQUENCE.value: str(last), FENCE: subjects.stored_subject(sid, kind.writer)}
    subject = subjects.event_subject(sid, kind.writer, kind.visible, kind.name)
    return (await log.js.publish(subject, events.encode(event, event_id=id, sid=sid, ts=1, cause=None), headers=headers)).seq


@pytest.mark.parametrize("fenced", [True, False])
async def test_an_append_whose_acknowledgement_was_lost_is_stored_once_and_goes_on(log: Log, fenced: bool) -> None:
    sid = new_session_id()
    writer = SessionWriter(log, sid, "voice", fenced=fenced)
    before = await writer.append(SessionOwned(worker="w", term=1), ts=0, cause=None)
    stored = await put_by_hand(log, sid, said(), writer.message_id(f"{sid}.voice.1"), before if fenced else None)
    assert await writer.append(said(), ts=1, cause=None) == stored
    after = await writer.append(said(2), ts=2, cause=None)
    assert [r.seq for r in await log.read(sid)] == [before, stored, after]


@pytest.mark.parametrize("fenced", [True, False])
@pytest.mark.parametrize("account", [False, True], ids=["session", "account"])
async def test_a_rival_that_uses_up_the_next_forty_ids_delays_nothing_and_loses_nothing(log: Log, account: bool, fenced: bool) -> None:
    sid = LOCAL if account else new_session_id()
    end = End(0, (await log.position(sid, "tools"))[0])
    writer = SessionWriter(log, sid, "tools", stem=new_session_id(), fenced=fenced, end=end)
    stem = writer.submit(note(0), ts=0, cause=None).rpartition(".")[0]
    await writer.flushed()
    reserved = [await put_by_hand(log, sid, TextReceived(text="mine"), writer.message_id(f"{stem}.{n}"), None) for n in range(1, 41)]
    seqs = [await writer.append(note(n), ts=n, cause=None) for n in range(1, 42)]
    assert sorted({*seqs, *reserved}) == sorted([*seqs, *reserved])
    own = [one async for one in log.read_all(sid, writer="tools", after=reserved[0])]
    assert [(one.seq, one.event) for one in own] == [(seq, note(n)) for n, seq in enumerate(seqs, start=1)]


def test_nobody_who_reads_the_ids_of_a_writer_can_foretell_the_next(log: Log) -> None:
    sid = new_session_id()
    one, two = SessionWriter(log, sid, "voice"), SessionWriter(log, sid, "voice")
    ids = [writer.message_id(f"{sid}.voice.{n}") for writer in (one, two) for n in range(50)]
    assert len({each.rpartition(".")[2] for each in ids}) == 100


async def test_of_two_writers_under_one_prefix_exactly_one_goes_on(log: Log) -> None:
    sid = new_session_id()
    told: list[VoxbridgeError] = []
    old = SessionWriter(log, sid, "voice", policy=Policy(on_failed=told.append))
    await old.append(SessionOwned(worker="old", term=1), ts=1, cause=None)
    new = SessionWriter(log, sid, "voice", end=End(old.number, old.last_seq))
    results = await asyncio.gather(
        old.append(said(1), ts=2, cause=None), new.append(SessionOwned(worker="new", term=2), ts=2, cause=None), return_exceptions=True
    )
    lost = [r for r in results if isinstance(r, Conflict)]
    assert len(lost) == 1
    winner, loser = (new, old) if isinstance(results[0], Conflict) else (old, new)
    await winner.append(said(2), ts=3, cause=None)
    with pytest.raises(Conflict):
        await loser.append(said(3), ts=3, cause=None)
    assert isinstance(loser.failed, Conflict)
    assert not loser.failed.retryable
    assert told == ([old.failed] if loser is old else [])
    assert len(await log.read(sid)) == 3


async def test_all_that_waits_behind_a_conflict_is_refused_and_nothing_of_it_stored(log: Log) -> None:
    sid = new_session_id()
    await SessionWriter(log, sid, "voice").append(SessionOwned(worker="new", term=1), ts=1, cause=None)
    stale = SessionWriter(log, sid, "voice", end=End(5))
    appends = [asyncio.create_task(stale.append(said(n), ts=n, cause=None)) for n in range(4)]
    for append in appends:
        with pytest.raises(Conflict):
            await append
    with pytest.raises(Conflict):
        await stale.flushed()
    assert len(await log.read(sid)) == 1


async def test_writers_of_one_session_under_different_prefixes_do_not_disturb_each_other(log: Log) -> None:
    sid = new_session_id()
    voice = SessionWriter(log, sid, "voice")
    one, two = (SessionWriter(log, sid, "gateway", stem=stem, fenced=False) for stem in ("c1", "c2"))
    await asyncio.gather(
        *(voice.append(said(n), ts=n, cause=None) for n in range(50)),
        *(one.append(TextReceived(text=f"1.{n}"), ts=n, cause=None) for n in range(50)),
        *(two.append(TextReceived(text=f"2.{n}"), ts=n, cause=None) for n in range(50)),
    )
    read = await log.read(sid)
    assert [r.ts for r in read if r.writer == "voice"] == list(range(50))
    for stem in ("1.", "2."):
        texts = [r.event.text for r in read if isinstance(r.event, TextReceived)]
        assert [text for text in texts if text.startswith(stem)] == [f"{stem}{n}" for n in range(50)]


async def test_every_acknowledged_event_is_stored_exactly_once_over_kills_of_the_server(own_server: Callable[[str], Server]) -> None:
    server = own_server("nats")
    async with open_log(server.url) as log:
        writers = [SessionWriter(log, new_session_id(), "voice") for _ in range(8)]
        acked: dict[str, list[int]] = {writer.sid: [] for writer in writers}
        enough = asyncio.Event()
        aim = 50

        async def write(writer: SessionWriter, until: asyncio.Event) -> None:
            turn = 0
            while not until.is_set():
                acked[writer.sid].append(await writer.append(said(turn), ts=turn, cause=None))
                turn += 1
                if sum(map(len, acked.values())) >= aim:
                    enough.set()

        done = asyncio.Event()
        writing = [asyncio.create_task(write(writer, done)) for writer in writers]
        for _ in range(3):
            await asyncio.wait_for(enough.wait(), BOUND_S)
            server.kill()
            server.start()
            enough.clear()
            aim = sum(map(len, acked.values())) + 400
        await asyncio.wait_for(enough.wait(), BOUND_S)
        done.set()
        await asyncio.wait_for(asyncio.gather(*writing), BOUND_S)

    # Counted from outside, by a reader independent of the writers.
    outside = await nats.connect(server.url)
    try:
        info = await outside.jetstream().stream_info(subjects.EVENT_STREAM)
        assert info.state.messages == sum(map(len, acked.values()))
        for writer in writers:
            read = [r async for r in Log(outside).read_all(writer.sid)]
            assert [r.seq for r in read] == acked[writer.sid]
            assert [r.ts for r in read] == list(range(len(read)))
            assert [r.id for r in read] == [f"{writer.sid}.voice.{n}" for n in range(len(read))]
    finally:
        await outside.close()


async def test_a_writer_goes_on_after_an_outage_and_gives_up_with_a_typed_error_after_its_time(own_server: Callable[[str], Server]) -> None:
    server = own_server("nats")
    async with open_log(server.url, read_timeout_s=0.3) as log:
        patient, hasty = (
            SessionWriter(log, new_session_id(), "voice"),
            SessionWriter(log, new_session_id(), "voice", policy=Policy(give_up_s=0.2)),
        )
        server.kill()
        waiting = asyncio.create_task(patient.append(said(), ts=1, cause=None))
        with pytest.raises(Unavailable) as caught:
            await asyncio.wait_for(hasty.append(said(), ts=1, cause=None), BOUND_S)
        assert caught.value.retryable
        assert hasty.failed is caught.value
        server.start()
        assert await asyncio.wait_for(waiting, BOUND_S) > 0


async def test_events_over_the_number_that_may_wait_are_refused_and_the_others_stored(log: Log) -> None:
    writer = SessionWriter(log, new_session_id(), "voice", fenced=False)
    for turn in range(PENDING_LIMIT):
        writer.submit(said(turn), ts=turn, cause=None)
    with pytest.raises(VoxbridgeError) as caught:
        writer.submit(said(PENDING_LIMIT), ts=0, cause=None)
    assert (caught.value.code, caught.value.limit, caught.value.retryable) == (Code.OVERLOADED, PENDING_LIMIT, True)
    await writer.flushed()
    assert writer.number == PENDING_LIMIT
    assert await writer.append(said(PENDING_LIMIT), ts=PENDING_LIMIT, cause=None) > 0
    assert [r.ts async for r in log.read_all(writer.sid)] == list(range(PENDING_LIMIT + 1))


async def test_bytes_over_those_that_may_wait_are_refused(log: Log) -> None:
    writer = SessionWriter(log, new_session_id(), "gateway", stem="c", fenced=False)
    big = TextReceived(text="x" * (EVENT_LIMIT - 1024))
    for number in range(PENDING_BYTES // EVENT_LIMIT):
        writer.submit(big, ts=number, cause=None)
    with pytest.raises(VoxbridgeError) as caught:
        writer.submit(big, ts=99, cause=None)
    assert (caught.value.code, caught.value.limit) == (Code.OVERLOADED, PENDING_BYTES)
    await writer.flushed()
    assert writer.number == len([r async for r in log.read_all(writer.sid)]) > 10


async def test_an_event_at_the_size_limit_is_stored_and_one_byte_more_refused_before_it_is_sent(log: Log) -> None:
    writer = SessionWriter(log, new_session_id(), "gateway", stem="c", fenced=False)
    kind = TextReceived(text="")
    empty = (
        len(events.encode(TextReceived(text="x" * 70_000), event_id=f"{writer.sid}.gateway.c.0", sid=writer.sid, ts=0, cause=None)) - 70_000
    )
    at_limit = TextReceived(text="x" * (EVENT_LIMIT - empty))
    with pytest.raises(VoxbridgeError) as caught:
        writer.submit(TextReceived(text=at_limit.text + "x"), ts=0, cause=None)
    assert (caught.value.code, caught.value.field, caught.value.limit) == (Code.TOO_LARGE, "text.received", EVENT_LIMIT)
    reconnects = log.nc.stats["reconnects"]
    await writer.append(at_limit, ts=0, cause=None)
    await writer.append(kind, ts=0, cause=None)
    assert [r.event for r in await log.read(writer.sid)] == [at_limit, kind]
    assert log.nc.stats["reconnects"] == reconnects


async def test_a_writer_refuses_the_events_of_another(log: Log) -> None:
    writer = SessionWriter(log, new_session_id(), "gateway", stem="c", fenced=False)
    with pytest.raises(VoxbridgeError, match=r"user\.said is written by voice, not by gateway"):
        writer.submit(said(), ts=0, cause=None)
    assert writer.number == 0


async def test_a_stopped_writer_tells_all_who_wait(log: Log) -> None:
    told: list[VoxbridgeError] = []
    writer = SessionWriter(log, new_session_id(), "voice", policy=Policy(on_failed=told.append))
    waiting = asyncio.create_task(writer.append(said(), ts=0, cause=None))
    await asyncio.sleep(0)
    error = VoxbridgeError(Code.CANCELLED, "The session is given up.")
    writer.stop(error)
    writer.stop(VoxbridgeError(Code.INTERNAL, "Told once."))
    for wait in (waiting, writer.flushed()):
        with pytest.raises(VoxbridgeError) as caught:
            await asyncio.wait_for(wait, BOUND_S)
        assert caught.value is error
    with pytest.raises(VoxbridgeError):
        writer.submit(said(), ts=0, cause=None)
    assert told == [error]


async def test_an_append_in_flight_when_the_server_dies_does_not_wait_for_its_time_out(
    own_nats: Callable[[], NatsServer], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writer_module, "ACK_TIMEOUT_S", 60.0)
    server = own_nats()
    async with open_log(server.url) as log:
        writer = SessionWriter(log, new_session_id(), "voice", policy=Policy(give_up_s=60.0))
        first = await writer.append(said(1), ts=1, cause=None)
        assert server.pid is not None
        stop(server.pid)
        waiting = asyncio.create_task(writer.append(said(2), ts=2, cause=None))
        await eventually(lambda: not log.nc.pending_data_size and log.appends.waiting_s())
        server.kill()
        server.start()
        second = await asyncio.wait_for(waiting, BOUND_S)
        assert [(r.seq, r.ts) for r in await log.read(writer.sid)] == [(first, 1), (second, 2)]


async def test_a_log_without_room_is_waited_for_and_said_to_be_full(tmp_path: Path) -> None:
    with NatsServer(tmp_path / "nats", max_file_store="2MB") as server:
        async with open_log(server.url) as log:
            writer = SessionWriter(log, new_session_id(), "voice", policy=Policy(give_up_s=0.2))
            big = "x" * 200_000
            turns = [asyncio.create_task(writer.append(said(turn, big), ts=turn, cause=None)) for turn in range(12)]
            await eventually(lambda: "full" in log.appends.condition().detail)
            assert log.appends.condition().state == "down"
            stored = log.appends.acknowledged
            assert 0 < stored < 12
            kept = [r.ts for r in await log.read(writer.sid)]
            assert kept == list(range(stored))
            # Room is made, as at the end of the retention; the writer recovers by itself.
            await log.js.purge_stream(subjects.EVENT_STREAM, keep=1)
            await asyncio.wait_for(asyncio.gather(*turns), BOUND_S)
            assert log.appends.condition().state == "ok"
            assert [r.ts for r in await log.read(writer.sid)] == list(range(stored - 1, 12))


async def test_a_writer_that_is_held_appends_nothing_until_it_is_let_go_or_stopped(log: Log) -> None:
    sid, open = new_session_id(), asyncio.Event()

    async def hold() -> None:
        await open.wait()

    writer = SessionWriter(log, sid, "voice", policy=Policy(hold=hold))
    waiting = asyncio.create_task(writer.append(said(), ts=0, cause=None))
    other = SessionWriter(log, sid, "voice")
    await other.append(SessionOwned(worker="new", term=2), ts=0, cause=None)
    assert not waiting.done()
    open.set()
    with pytest.raises(Conflict):
        await asyncio.wait_for(waiting, BOUND_S)
    assert [type(one.event) for one in await log.read(sid)] == [SessionOwned]
