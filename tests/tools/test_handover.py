"""Several executors: the one that serves a session gets the session's work, whichever the consumer delivers it to."""

from __future__ import annotations

import itertools
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from pathlib import Path

import pytest
from nats.aio.client import Client
from nats.aio.msg import Msg

from tests.eventually import eventually
from tests.tools.conftest import Caller, Executors
from voxbridge.services.tools import service as tools_service
from voxbridge.services.tools.session import intake
from voxbridge.services.tools.session.handover import OWNERS_LIMIT, TAKE, Handover, Owners
from voxbridge.services.tools.session.intake import Intake
from voxbridge.services.tools.session.pull import Pull
from voxbridge.shared import events
from voxbridge.shared.bus import subjects
from voxbridge.shared.events.tools import ToolCompleted, ToolStarted
from voxbridge.shared.log.reader import Log
from voxbridge.shared.log.writer import SessionWriter

MakeCaller = Callable[[], Awaitable[Caller]]
DURABLE = subjects.TOOLS_CONSUMER


def message_id(sid: str, process: str) -> str:
    return f"{sid}.tools.{process}-7-2.31.0a1b2c3d"


def test_who_wrote_last_serves_the_session() -> None:
    owners = Owners()
    owners.heard(message_id("s1", "tools-aaaa"))
    owners.heard(message_id("@local", "tools-bbbb"))
    assert (owners.of("s1"), owners.of("@local"), owners.of("s2")) == ("tools-aaaa", "tools-bbbb", "")


def test_of_several_that_wrote_the_same_one_serves_whatever_was_heard_first() -> None:
    processes = ("tools-aaaa", "tools-bbbb", "tools-cccc")
    chosen: set[str] = set()
    for number in range(40):
        found = set()
        for order in itertools.permutations(processes):
            owners = Owners()
            for process in order:
                owners.heard(message_id(f"s{number}", process))
            found.add(owners.of(f"s{number}"))
        assert len(found) == 1
        chosen |= found
    assert chosen == set(processes)  # none gets all the sessions


@pytest.mark.parametrize("text", ["", "s1", "s1.voice.3.0a1b2c3d", "s1.tools."])
def test_an_id_that_names_no_executor_says_nothing(text: str) -> None:
    owners = Owners()
    owners.heard(text)
    assert owners.of("s1") == ""


def test_the_session_that_was_quiet_for_longest_is_forgotten_at_the_limit() -> None:
    owners = Owners()
    for number in range(OWNERS_LIMIT):
        owners.heard(message_id(f"s{number}", "tools-aaaa"))
    owners.heard(message_id("s0", "tools-aaaa"))
    owners.heard(message_id("new", "tools-aaaa"))
    assert (owners.of("s0"), owners.of("s1"), owners.of("new")) == ("tools-aaaa", "", "tools-aaaa")


class Process:
    """An executor without the running of calls: its messages and offers."""

    def __init__(self, log: Log, name: str) -> None:
        self.name = name
        self.room: int | None = 1
        self.came: list[events.Recorded] = []
        self.intake = Intake(log, self.came.append, process_id=name)
        self.handover = Handover(log, self.intake, process_id=name, room=lambda: self.room)
        self.pull = Pull(log.nc, subjects.EVENT_STREAM, DURABLE, self.intake.receive)

    async def start(self) -> None:
        await self.intake.ensure()
        await self.pull.start()
        await self.handover.start()

    async def delivered(self, count: int = 1) -> events.Recorded:
        """Take messages from the consumer, and return the last."""
        await self.pull.take(count, 30.0)
        return self.came[-1]


@pytest.fixture
async def processes(log: Log) -> AsyncIterator[tuple[Process, Process]]:
    async with AsyncExitStack() as open_things:
        first, second = Process(log, "tools-aaaa"), Process(log, "tools-bbbb")
        for one in (first, second):
            await one.start()
            open_things.push_async_callback(one.pull.stop)
        yield first, second


async def serves(process: str, sid: str, log: Log, *hearing: Process) -> None:
    """Write an end of a call as this process would, and wait until these have heard it."""
    writer = SessionWriter(log, sid, "tools", stem=f"{process}-1-1", fenced=False)
    await writer.append(ToolCompleted(call_id="c0", name="echo", result={}, ms=0), ts=0, cause=None)
    for one in hearing:
        await eventually(lambda one=one: one.handover.owners.of(sid) == process)  # type: ignore[misc]


async def unacknowledged(log: Log) -> int:
    return int((await log.js.consumer_info(subjects.EVENT_STREAM, DURABLE)).num_ack_pending or 0)


async def offered(process: Process, called: events.Recorded) -> bool:
    return await process.handover.offer(called.sid, called.seq)


async def test_a_call_is_taken_by_the_process_that_serves_its_session(processes: tuple[Process, Process], caller: Caller, log: Log) -> None:
    first, second = processes
    await serves(second.name, caller.sid, log, first)
    seq = await caller.call("echo", text="hello")
    called = await first.delivered()
    assert await offered(first, called)
    assert (second.came[0].seq, second.came[0].sid, second.came[0].event) == (seq, caller.sid, called.event)
    assert (first.intake.holds(caller.sid, seq), second.intake.holds(caller.sid, seq)) == (False, True)
    assert await unacknowledged(log) == 1
    await second.intake.done(caller.sid, seq)

    async def acknowledged() -> bool:
        return await unacknowledged(log) == 0

    await eventually(acknowledged)
    assert first.handover.given == 1


async def test_what_was_handed_over_is_not_handed_on(processes: tuple[Process, Process], caller: Caller, log: Log) -> None:
    first, second = processes
    await serves(second.name, caller.sid, log, first)
    await caller.call("echo", text="hello")
    called = await first.delivered()
    assert await offered(first, called)
    second.handover.owners.set(caller.sid, first.name)  # each of the two thinks that the other one serves the session
    assert not await offered(second, called)
    assert second.intake.holds(caller.sid, called.seq)


async def test_a_process_keeps_what_it_serves_and_what_nobody_serves(
    processes: tuple[Process, Process], callers: MakeCaller, log: Log
) -> None:
    first, _ = processes
    own, new = await callers(), await callers()
    await serves(first.name, own.sid, log, first)
    await own.call("echo", text="hello")
    await new.call("echo", text="hello")
    await first.delivered(2)
    for called in first.came:
        assert not await offered(first, called)
    assert len(first.intake) == 2


async def test_a_full_process_leaves_a_call_to_the_one_that_has_it(processes: tuple[Process, Process], caller: Caller, log: Log) -> None:
    first, second = processes
    await serves(second.name, caller.sid, log, first)
    await caller.call("echo", text="hello")
    called = await first.delivered()
    second.room = 0
    assert not await offered(first, called)
    assert first.intake.holds(caller.sid, called.seq)
    second.room = 1  # it still serves the session
    assert await offered(first, called)


async def test_a_process_that_stops_is_offered_no_more(processes: tuple[Process, Process], caller: Caller, log: Log) -> None:
    first, second = processes
    await serves(second.name, caller.sid, log, first)
    await caller.call("echo", text="hello")
    called = await first.delivered()
    second.room = None
    assert not await offered(first, called)
    assert first.intake.holds(caller.sid, called.seq)
    second.room = 1
    assert not await offered(first, called)


async def test_a_process_that_is_gone_costs_no_time(processes: tuple[Process, Process], caller: Caller, log: Log) -> None:
    first, _ = processes
    await serves("tools-gone", caller.sid, log, first)
    await caller.call("echo", text="hello")
    called = await first.delivered()
    assert not await offered(first, called)
    assert first.intake.holds(caller.sid, called.seq)


async def test_a_call_whose_offer_nobody_answers_is_delivered_again(
    processes: tuple[Process, Process], caller: Caller, connection: Client, log: Log
) -> None:
    first, _ = processes

    async def stand_still(message: Msg) -> None:
        return

    await connection.subscribe(f"{TAKE}.tools-hung", cb=stand_still)
    await serves("tools-hung", caller.sid, log, first)
    await caller.call("echo", text="hello")
    called = await first.delivered()
    assert await offered(first, called)
    assert not first.intake.holds(caller.sid, called.seq)
    again = await first.delivered()
    assert again.seq == called.seq
    await serves("tools-hung", caller.sid, log, first)
    assert not await offered(first, again)  # whoever held it is asked instead


async def test_two_executors_run_a_session_s_calls_in_one_of_them(
    executors: Executors, caller: Caller, caplog: pytest.LogCaptureFixture
) -> None:
    async with executors.running() as one, executors.running() as other:
        for number in range(12):
            await caller.call("echo", f"c{number}", text="hello")
            await caller.next(ToolCompleted, f"c{number}")
        assert sorted((one.stats()["sessions"], other.stats()["sessions"])) == [0, 1]
        assert one.stats()["handed_over"] + other.stats()["handed_over"] > 0
    assert len(caller.told(ToolStarted)) == 12
    assert "Another process writes" not in caplog.text


@pytest.fixture
def never_delivered_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have the bus wait ten minutes before it delivers a call again."""
    monkeypatch.setattr(intake, "CONSUMERS", tuple((stream, wanted.evolve(ack_wait=600.0)) for stream, wanted in intake.CONSUMERS))


@pytest.mark.usefixtures("never_delivered_again")
async def test_the_other_executor_goes_on_at_once_when_the_one_that_served_is_gone(executors: Executors, caller: Caller) -> None:
    async with AsyncExitStack() as remaining:
        async with executors.running():
            await caller.call("echo", "c1", text="hello")
            await caller.next(ToolCompleted, "c1")
            other = await remaining.enter_async_context(executors.running())
        await caller.call("echo", "c2", text="hello")
        await caller.next(ToolCompleted, "c2")
        assert other.stats()["sessions"] == 1


async def test_an_executor_that_is_full_is_handed_so_many_calls_and_no_more(
    executors: Executors, processes: tuple[Process, Process], caller: Caller, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tools_service, "RUNNING_LIMIT", 1)
    monkeypatch.setattr(tools_service, "HANDED_OVER_LIMIT", 1)
    other, _ = processes
    files = [tmp_path / str(number) for number in range(3)]
    async with executors.running() as full:
        await caller.call("echo", "e1", text="hello")  # who ends a call serves its session
        await eventually(lambda: other.handover.owners.of(caller.sid) != "")
        await caller.call("effect", "c0", file=str(files[0]))
        await eventually(files[0].exists)
        for number in (1, 2):  # a full process takes none from the consumer, so both go to the other one
            await caller.call("effect", f"c{number}", file=str(files[number]))
        while len(other.came) < 2:
            await other.delivered()
        first, second = other.came
        assert await offered(other, first)
        await eventually(files[1].exists)
        assert not await offered(other, second)
        assert (full.stats()["running"], other.intake.holds(caller.sid, second.seq)) == (2, True)
        for number in range(3):
            (tmp_path / f"{number}.go").touch()
        for call_id in ("c0", "c1"):
            await caller.next(ToolCompleted, call_id)
        assert await offered(other, second)  # there is room again
        await caller.next(ToolCompleted, "c2")
