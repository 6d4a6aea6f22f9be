"""The log of a terminal: what it tells, its bounds while the log is away, and that it goes on exactly where a killed service stopped."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import msgspec
import nats
import pytest
from nats.aio.client import Client

from tests.eventually import eventually
from tests.terminals.fleets import BY, Viewed, fleet, held_folder
from tests.terminals.serving import process, viewing
from voxbridge.services.terminals import life
from voxbridge.services.terminals.core import life as core
from voxbridge.services.terminals.core.state import Word
from voxbridge.services.terminals.life import BURST, QUEUE_LIMIT, Lives
from voxbridge.sessions import replay
from voxbridge.shared import events
from voxbridge.shared.bus import subjects
from voxbridge.shared.clock import SystemClock
from voxbridge.shared.embedded.nats_server import NatsServer
from voxbridge.shared.embedded.valkey_server import ValkeyServer
from voxbridge.shared.errors import VoxbridgeError
from voxbridge.shared.events import terminals as told
from voxbridge.shared.events.journal import JOURNALS, Taken
from voxbridge.shared.log.reader import Log
from voxbridge.shared.log.writer import SessionWriter
from voxbridge.shared.terminals import questions as asked
from voxbridge.shared.terminals.names import life_of

ONE = "work-1f2e3d-0"
STARTED = core.Started(
    at=1, by=BY, terminal="work-1f2e3d", name="Work", workspace="default", definition="bash", kind="shell", directory="/", columns=80,
    rows=24, run=1, pid=7,
)  # fmt: skip


def steps(*inputs: core.Input) -> list[events.Event]:
    """Take inputs; return what is appended."""
    state, found = core.initial(""), list[events.Event]()
    for number, one in enumerate(inputs):
        state, outputs = core.step(state, one, number)
        found += [output.event for output in outputs]
    return found


def test_a_state_is_told_once_and_by_the_best_source() -> None:
    silence, shell = Word(phase="working", at=3), Word(phase="idle", at=4)
    found = steps(
        STARTED,
        core.Heard(at=3, words={"silence": silence}),
        core.Heard(at=4, words={"silence": silence, "shell": shell}),
        core.Heard(at=5, words={"silence": Word(phase="idle", at=5), "shell": shell}),
    )
    states = [(one.state.phase, one.state.source) for one in found if isinstance(one, told.TerminalChanged)]
    assert states == [("working", "silence"), ("idle", "shell")]


def test_what_a_successor_notes_again_is_told_once() -> None:
    ended = core.Ended(at=5, sentence="It ended.", code=0)
    kinds = [type(one) for one in steps(STARTED, STARTED, ended, ended)]
    assert kinds == [told.TerminalStarted, told.TerminalEnded]
    again = core.Started(**{name: getattr(STARTED, name) for name in STARTED.__struct_fields__} | {"run": 2})
    assert [type(one) for one in steps(STARTED, ended, again, ended)][2:] == [told.TerminalStarted, told.TerminalEnded]


def test_a_size_and_a_name_that_it_has_are_no_news() -> None:
    same = (core.Resized(at=2, columns=80, rows=24), core.Renamed(at=2, by=BY, name="Work"))
    assert len(steps(STARTED, *same)) == 1
    found = steps(STARTED, core.Resized(at=2, columns=81, rows=24), core.Renamed(at=2, by=BY, name="Other"))
    assert [type(one) for one in found[1:]] == [told.TerminalResized, told.TerminalRenamed]


def test_a_token_that_is_used_again_has_another_life() -> None:
    assert life_of("work-1f2e3d", 1_700_000_000_000_000) != life_of("work-1f2e3d", 1_700_000_000_001_000)
    longest = life_of("a" * 24 + "-1f2e3d-64", 2**53)
    assert subjects.life_of(subjects.terminal_log(longest)) == longest
    with pytest.raises(VoxbridgeError, match="a-z, 0-9"):
        subjects.terminal_log("x.y")


@pytest.fixture
async def here() -> AsyncIterator[Viewed]:
    with held_folder() as folder:
        async with fleet(folder) as viewed:
            yield viewed


def waiting(viewed: Viewed) -> list[Any]:
    """Return what waits for the log of the only terminal."""
    (one,) = viewed.lives._lives.values()
    return list(one.queue)


async def test_it_says_who_sent_what_and_keeps_nothing_that_people_type(here: Viewed) -> None:
    bash = await here.start(name="Work")
    await here.send(bash, "echo one")
    await here.wait(bash, "idle")
    await here.ask(asked.SendKey(by="somebody", terminal=bash, key="ctrl-c"))
    here.fleet.type_into(bash, "window", b"secret words\r")
    await here.send(bash, "read -s x")
    await here.wait(bash, "blocked")
    here.fleet.type_into(bash, "window", b"a password\r")
    await here.wait(bash, "idle")
    await here.ask(asked.Resize(by=BY, terminal=bash, columns=90, rows=30))
    await here.ask(asked.Rename(by=BY, terminal=bash, name="Other"))
    await here.ask(asked.Restart(by=BY, terminal=bash))
    assert (await here.send(bash, " ")).outcome == "not_submitted"
    queue = waiting(here)
    (text, _, refused), (key,) = (
        [one for one in queue if isinstance(one, core.Sent) and bool(one.key) == keyed] for keyed in (False, True)
    )
    assert (text.by, text.outcome, text.size) == (BY, "submitted", 8)
    assert text.digest == hashlib.sha256(b"echo one").hexdigest()
    assert (refused.outcome, refused.size, refused.digest) == ("not_submitted", 1, "")
    assert (key.by, key.key, key.outcome) == ("somebody", "ctrl-c", "typed")
    (typed,) = [one for one in queue if isinstance(one, core.Typed)]
    assert (typed.size, typed.connections) == (13, 1)
    phases = [one.words["shell"].phase for one in queue if isinstance(one, core.Heard) and "shell" in one.words]
    assert [one for one in phases if one != "working"][:2] == ["idle", "done"], phases
    assert [one.run for one in queue if isinstance(one, core.Started)] == [1, 2]
    kinds = [type(one).__name__ for one in queue if not isinstance(one, core.Heard | core.Sent)]
    assert kinds == ["Started", "Typed", "Resized", "Renamed", "Ended", "Started"], "in the order in which it happened"
    assert b"secret" not in repr(queue).encode()


async def test_a_program_that_changes_its_state_all_the_time_fills_no_log() -> None:
    lives = Lives(Log(Client()), SystemClock(), "test")
    for number in range(10 * BURST):
        lives.heard(ONE, {"program": Word(phase="working", at=number, words=str(number))})
    assert lives.waiting() == BURST
    lives.ended(ONE, 0, "It ended.")
    queue: list[Any] = [one for each in lives._lives.values() for one in each.queue]
    assert queue[-2].words["program"].words == str(10 * BURST - 1), "the newest stands before what came after it"
    await lives.close(0)


async def test_while_the_log_is_away_so_much_waits_and_the_rest_is_counted() -> None:
    lives = Lives(Log(Client()), SystemClock(), "test")
    for _ in range(QUEUE_LIMIT + 5):
        lives.signalled(ONE, BY, "INT")
    assert lives.waiting() == QUEUE_LIMIT
    await lives.close(0)


async def test_what_was_lost_is_said_when_the_log_is_back(nats_url: str) -> None:
    async with logged(nats_url) as log:
        lives = Lives(log, SystemClock(), "test")
        for _ in range(QUEUE_LIMIT + 5):
            lives.signalled(ONE, BY, "INT")
        lives.open()
        await lives.close(20.0)
        found = await life.read(log, ONE)
    happened = [one.event for one in found if isinstance(one.event, told.Happened)]
    assert sum(isinstance(one, told.TerminalSignalled) for one in happened) == QUEUE_LIMIT
    (lost,) = [one for one in happened if isinstance(one, told.TerminalUnrecorded)]
    assert lost.count == 5


async def test_what_is_noticed_as_a_log_is_written_to_its_end_is_written_too(nats_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    async with logged(nats_url) as log:
        lives, late = Lives(log, SystemClock(), "test"), ["second"]
        written = lives._written

        async def then(*given: Any) -> None:
            await written(*given)
            if late:  # runs when the task has nothing left to do, and before it counts as ended
                asyncio.get_running_loop().call_soon(lives.signalled, ONE, late.pop(), "INT")

        monkeypatch.setattr(lives, "_written", then)
        lives.open()
        lives.signalled(ONE, "first", "INT")

        async def both() -> bool:
            return [one.event.by for one in await life.read(log, ONE) if isinstance(one.event, told.TerminalSignalled)] == [
                "first",
                "second",
            ]

        await eventually(both)
        await lives.close(5.0)


@asynccontextmanager
async def logged(url: str) -> AsyncIterator[Log]:
    """Open a log that has the stream of terminals."""
    connection = await nats.connect(url)
    log = Log(connection)
    await log.ensure_streams(retention_days=1, only=(subjects.TERMINALS_STREAM,))
    try:
        yield log
    finally:
        await connection.close()


async def test_a_log_that_another_process_wrote_into_is_gone_on_with(nats_url: str) -> None:
    async with logged(nats_url) as log:
        first, second = Lives(log, SystemClock(), "first"), Lives(log, SystemClock(), "second")
        for lives in (first, second):
            lives.open()
        for number in range(4):
            (first, second)[number % 2].signalled(ONE, str(number), "INT")
            await eventually(lambda: not first.waiting() + second.waiting())
        await asyncio.gather(first.close(5.0), second.close(5.0))
        found = [one.event for one in await life.read(log, ONE)]
    assert [one.by for one in found if isinstance(one, told.TerminalSignalled)] == ["0", "1", "2", "3"]


@pytest.mark.past_is_broken
@pytest.mark.parametrize("unwritable", ["an event", "the journal"])
async def test_a_log_that_takes_nothing_more_is_left_and_said_once(
    nats_url: str, unwritable: str, caplog: pytest.LogCaptureFixture
) -> None:
    async with logged(nats_url) as log:
        if unwritable == "the journal":
            unread = JOURNALS["terminals"](
                first=0, inputs=(Taken(at=1, seq=None, input=msgspec.Raw(msgspec.msgpack.encode({"type": "of_no_release"}))),)
            )
            await SessionWriter(log, subjects.terminal_log(ONE), "terminals").append(unread, ts=1, cause=None)
        lives = Lives(log, SystemClock(), "test")
        lives.open()
        lives.ended(ONE, 0, "x" * 1_000_000)
        await eventually(lambda: not lives.waiting())
        lives.signalled(ONE, BY, "INT")
        assert lives.waiting() == 0
        lives.closed(ONE, BY, ())
        assert len(lives) == 0, "nothing of it is left"
        lives.signalled("other-1f2e3d-0", BY, "INT")  # another log is written as before
        await lives.close(5.0)
        assert [type(one.event) for one in await life.read(log, "other-1f2e3d-0")][-1] is told.TerminalSignalled
    (said,) = [one.getMessage() for one in caplog.records if ONE in one.getMessage() and "not written any more" in one.getMessage()]
    assert ("cannot be read" if unwritable == "the journal" else "has at most 524288 bytes") in said


async def test_the_service_killed_goes_on_with_the_same_log_and_replays_empty(nats_url: str, redis_url: str) -> None:
    with process(nats_url, redis_url) as service:
        async with viewing(nats_url) as viewer, logged(nats_url) as log:
            card = await viewer.start()
            waits = asked.Wait(by=BY, terminal=card.id, until="idle", timeout_s=15)
            for number in range(3):
                assert (await viewer.ask(waits)).met
                await viewer.send(card.id, f"echo {number}")
                if number < 2:
                    service.stop()
                    service.start()
            assert (await viewer.ask(waits)).met
            await viewer.ask(asked.Close(by="me", terminal=card.id))

            async def closed() -> list[events.Recorded]:
                found = await life.read(log, card.life)
                return found if any(isinstance(one.event, told.TerminalClosed) for one in found) else []

            found = await eventually(closed)
    replayed = replay.run(found, "terminals")
    assert replay.same(replayed), "\n".join(replay.report(replayed))
    happened = [one.event for one in found if isinstance(one.event, told.Happened)]
    kinds = [type(one) for one in happened]
    assert kinds[0] is told.TerminalStarted
    assert kinds.count(told.TerminalStarted) == 1, "the next process does not begin it anew"
    assert kinds[-1] is told.TerminalClosed
    assert happened[-2] == told.TerminalEnded(at=happened[-2].at, sentence="It was ended by signal 1.", code=-1)
    assert isinstance(happened[-1], told.TerminalClosed)
    assert happened[-1].by == "me"
    sent = [one for one in happened if isinstance(one, told.TerminalSent)]
    assert sent[-1].digest == hashlib.sha256(b"echo 2").hexdigest()


async def test_with_nats_killed_programs_run_on_and_the_log_has_all_of_it_afterwards(
    own_nats: Callable[[], NatsServer], own_valkey: Callable[[], ValkeyServer]
) -> None:
    bus, store = own_nats(), own_valkey()
    with process(bus.url, store.url) as service:
        async with viewing(bus.url) as viewer:
            card = await viewer.start()
            assert (await viewer.ask(asked.Wait(by=BY, terminal=card.id, until="idle", timeout_s=15))).met
            await viewer.send(card.id, "sleep 1; false")
            bus.kill()
            bus.start()

            async def has_failed() -> list[events.Event]:
                async with logged(bus.url) as log:
                    found = [one.event for one in await life.read(log, card.life)]
                failed = [one for one in found if isinstance(one, told.TerminalChanged) and one.state.words == "exit code 1"]
                return found if failed else []

            kinds = [type(one) for one in await eventually(has_failed)]
            assert kinds.count(told.TerminalStarted) == 1
            assert told.TerminalUnrecorded not in kinds
    assert service.kills == 1
