"""Following a session, on every backend: the delivered events are the stored ones, in order, each once."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest
from nats.js.api import RePublish

from tests import draws
from tests.eventually import BOUND_S
from tests.shared.backends import Server, open_log
from tests.shared.collector import Collector
from voxbridge.shared import events
from voxbridge.shared.bus import subjects
from voxbridge.shared.errors import Code, Unavailable, VoxbridgeError
from voxbridge.shared.events.gateway import TextReceived
from voxbridge.shared.events.tools import ToolStarted
from voxbridge.shared.events.voice import UserSaid
from voxbridge.shared.ids import new_session_id
from voxbridge.shared.log import feed as feeds
from voxbridge.shared.log.feed import Feed
from voxbridge.shared.log.reader import Log
from voxbridge.shared.log.writer import SessionWriter

MAKE: dict[str, Callable[[int], events.Event]] = {
    "voice": lambda n: UserSaid(text=str(n), turn=n, source="text"),
    "gateway": lambda n: TextReceived(text=str(n)),
    "tools": lambda n: ToolStarted(call_id=str(n), name="f"),
}


def three_writers(log: Log, sid: str) -> list[SessionWriter]:
    return [SessionWriter(log, sid, name, fenced=False) for name in MAKE]


async def fill(writer: SessionWriter, count: int, start: int = 0) -> None:
    for n in range(start, start + count):
        writer.submit(MAKE[writer.writer](n), ts=n, cause=None)
    await writer.flushed()


async def test_what_is_stored_comes_first_and_then_what_is_added(log: Log) -> None:
    sid, seen = new_session_id(), Collector()
    voice = SessionWriter(log, sid, "voice")
    await fill(voice, 300)
    feed = Feed(log, sid, seen)
    await feed.start()
    assert [r.ts for r in seen.got] == list(range(300))
    await fill(voice, 300, 300)
    await seen.count(600)
    assert [r.ts for r in seen.got] == list(range(600))
    assert seen.got == [r async for r in log.read_all(sid)]
    assert feed.position == voice.last_seq
    await feed.stop()


async def test_a_feed_gives_only_its_writer_its_visibility_and_what_follows_its_position(log: Log) -> None:
    sid, seen, visible = new_session_id(), Collector(), Collector()
    voice, gateway, _ = three_writers(log, sid)
    await fill(voice, 5)
    after = voice.last_seq
    feeds = [Feed(log, sid, seen, writer="voice", after=after), Feed(log, sid, visible, visibility="c")]
    for feed in feeds:
        await feed.start()
    await fill(gateway, 5)
    await fill(voice, 5, 5)
    await seen.count(5)
    await visible.count(10)
    assert [(r.writer, r.ts) for r in seen.got] == [("voice", n) for n in range(5, 10)]
    assert [(r.writer, r.ts) for r in visible.got] == [("voice", n) for n in range(10)]
    for feed in feeds:
        await feed.stop()


async def test_after_stop_nothing_is_handed_over_and_a_handler_may_stop_its_own_feed(log: Log) -> None:
    sid = new_session_id()
    voice = SessionWriter(log, sid, "voice")
    await fill(voice, 10)
    got: list[int] = []

    async def until_five(recorded: events.Recorded) -> None:
        got.append(recorded.ts)
        if recorded.ts == 5:
            await feed.stop()

    feed = Feed(log, sid, until_five)
    await asyncio.wait_for(feed.start(), BOUND_S)
    await feed.catch_up()
    witness = Collector()
    other = Feed(log, sid, witness)
    await other.start()
    await fill(voice, 5, 10)
    await witness.count(15)
    assert got == list(range(6))
    await other.stop()


@pytest.mark.parametrize("round", range(3))
async def test_delivered_is_stored_under_random_cuts_of_the_connection(
    bus_url: str, log: Log, round: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    dice = draws.dice(f"cuts {round}")
    sid, seen = new_session_id(), Collector()
    writers = three_writers(log, sid)
    async with open_log(bus_url) as cut:
        monkeypatch.setattr(feeds, "BUFFER_LIMIT", dice.choice([1, 8, 4096]))
        feed = Feed(cut, sid, seen)
        writing = [asyncio.create_task(fill(writer, 500)) for writer in writers]
        await feed.start()
        while not all(task.done() for task in writing):
            aim = len(seen.got) + dice.randrange(1, 60)
            await seen.until(lambda got, aim=aim: len(got) >= min(aim, 1_500))  # type: ignore[misc]
            if len(seen.got) >= 1_500:
                break
            await cut.nc.force_reconnect()
        await asyncio.gather(*writing)
        await seen.count(1_500)
        stored = [r async for r in log.read_all(sid)]
        assert seen.got == stored
        assert len(stored) == 1_500
        assert cut.nc.stats["reconnects"] > 0
        await feed.stop()


async def test_delivered_is_stored_over_kills_of_the_server(own_server: Callable[[str], Server]) -> None:
    dice = draws.dice("kills")
    server = own_server("nats")
    sid, seen = new_session_id(), Collector()
    async with open_log(server.url) as log, open_log(server.url) as following:
        feed = Feed(following, sid, seen)
        await feed.start()
        writing = [asyncio.create_task(fill(writer, 400)) for writer in three_writers(log, sid)]
        for _ in range(2):
            aim = len(seen.got) + dice.randrange(1, 300)
            await seen.count(aim)
            server.kill()
            server.start()
        await asyncio.gather(*writing)
        await seen.count(1_200)
        assert seen.got == [r async for r in log.read_all(sid)]
        assert len(seen.got) == 1_200
        await feed.stop()


async def test_a_feed_whose_buffer_overflows_reads_the_rest_from_the_log(log: Log, monkeypatch: pytest.MonkeyPatch) -> None:
    sid = new_session_id()
    voice = SessionWriter(log, sid, "voice")
    gate, reached, seen = asyncio.Event(), asyncio.Event(), Collector()

    async def slow(recorded: events.Recorded) -> None:
        reached.set()
        await gate.wait()
        seen(recorded)

    monkeypatch.setattr(feeds, "BUFFER_LIMIT", 3)
    feed = Feed(log, sid, slow)
    await feed.start()
    witness = Collector()
    other = Feed(log, sid, witness)
    await other.start()
    await fill(voice, 50)
    await asyncio.wait_for(reached.wait(), BOUND_S)
    await witness.count(50)
    gate.set()
    await seen.count(50)
    # Events appended while it re-read the dropped ones are still in order.
    await fill(voice, 50, 50)
    await seen.count(100)
    assert seen.got == await log.read(sid)
    for one in (feed, other):
        await one.stop()


async def test_a_slow_handler_is_never_entered_twice_at_a_time(log: Log) -> None:
    sid, seen, inside = new_session_id(), Collector(), 0
    voice = SessionWriter(log, sid, "voice", fenced=False)

    async def careful(recorded: events.Recorded) -> None:
        nonlocal inside
        inside += 1
        assert inside == 1
        await asyncio.sleep(0)
        inside -= 1
        seen(recorded)

    feed = Feed(log, sid, careful)
    await feed.start()
    writing = asyncio.create_task(fill(voice, 200))
    while not writing.done():
        await feed.catch_up()
    await seen.count(200)
    assert [r.ts for r in seen.got] == list(range(200))
    await feed.stop()


async def test_a_handler_that_raises_is_told_and_has_had_its_event(log: Log, caplog: pytest.LogCaptureFixture) -> None:
    sid, seen = new_session_id(), Collector()
    voice = SessionWriter(log, sid, "voice")
    await fill(voice, 3)

    def picky(recorded: events.Recorded) -> None:
        seen(recorded)
        if recorded.ts == 1:
            raise ZeroDivisionError
        if recorded.ts == 4:
            raise VoxbridgeError(Code.OVERLOADED, "Too much.")

    feed = Feed(log, sid, picky)
    await feed.start()
    await fill(voice, 3, 3)
    await seen.count(6)
    assert [r.ts for r in seen.got] == list(range(6))
    positions = [r.seq for r in await log.read(sid)]
    told = [record.getMessage() for record in caplog.records if record.name == "voxbridge.shared.log.feed"]
    assert len(told) == 2
    assert f"position {positions[1]} was not handled" in told[0]
    assert f"position {positions[4]} was not handled: Too much." in told[1]
    await feed.stop()


async def test_bytes_that_are_no_event_do_not_stop_a_feed(log: Log, caplog: pytest.LogCaptureFixture) -> None:
    sid, seen = new_session_id(), Collector()
    voice = SessionWriter(log, sid, "voice", fenced=False)
    broken = subjects.event_subject(sid, "voice", True, "user.said")
    await log.js.publish(broken, b"\xc1")
    await fill(voice, 1)
    feed = Feed(log, sid, seen)
    await feed.start()
    await log.js.publish(broken, b"")
    await fill(voice, 1, 1)
    await seen.count(2)
    assert [r.ts for r in seen.got] == [0, 1]
    assert sum("cannot be read" in record.getMessage() for record in caplog.records) == 2
    await feed.stop()


async def test_a_live_copy_that_never_came_is_read_before_the_next(own_server: Callable[[str], Server]) -> None:
    async with open_log(own_server("nats").url) as log:
        sid, seen = new_session_id(), Collector()
        voice = SessionWriter(log, sid, "voice")
        feed = Feed(log, sid, seen)
        await feed.start()
        await fill(voice, 1)
        await seen.count(1)
        config = (await log.js.stream_info(subjects.EVENT_STREAM)).config
        republish = config.republish
        assert isinstance(republish, RePublish)
        config.republish = RePublish(src="vx.s.none.ev.>", dest="vxc.none.>")
        await log.js.update_stream(config)
        await fill(voice, 2, 1)
        config.republish = republish
        await log.js.update_stream(config)
        await fill(voice, 1, 3)
        await seen.count(4)
        assert [r.ts for r in seen.got] == [0, 1, 2, 3]
        await feed.stop()


async def test_a_feed_that_starts_while_the_log_is_away_goes_live_when_it_is_back(own_server: Callable[[str], Server]) -> None:
    server = own_server("nats")
    sid, seen = new_session_id(), Collector()
    async with open_log(server.url, read_timeout_s=0.2) as log:
        voice = SessionWriter(log, sid, "voice")
        await fill(voice, 3)
        server.kill()
        feed = Feed(log, sid, seen)
        await asyncio.wait_for(feed.start(), BOUND_S)
        assert seen.got == []
        server.start()
        await seen.count(3)
        await fill(voice, 3, 3)
        await seen.count(6)
        assert [r.ts for r in seen.got] == list(range(6))
        await feed.stop()


async def test_a_feed_on_a_closed_connection_is_refused_with_a_typed_error(bus_url: str) -> None:
    async with open_log(bus_url) as log:
        await log.nc.close()
        with pytest.raises(Unavailable):
            await Feed(log, new_session_id(), Collector()).start()
