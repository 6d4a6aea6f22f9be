"""Transactions with the log: partial writes after a crash or another writer, and the next fold."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from voxbridge.services.tools.core.inputs import Accepted, Alarm, Rejected, Returned, Scheduled
from voxbridge.services.tools.core.outputs import Count, Done, Resolve, SetTimer, StartEffect
from voxbridge.services.tools.core.step import step
from voxbridge.services.tools.session.session import TOGETHER, Session, refold
from voxbridge.sessions.replay import services
from voxbridge.shared import events
from voxbridge.shared.clock import SystemClock
from voxbridge.shared.errors import VoxbridgeError
from voxbridge.shared.events.journal import ToolsJournal
from voxbridge.shared.events.tools import TaskStarted, ToolCompleted, ToolStarted
from voxbridge.shared.events.voice import ToolCalled
from voxbridge.shared.ids import new_session_id
from voxbridge.shared.log.reader import Log
from voxbridge.shared.log.writer import End, SessionWriter
from voxbridge.shared.step.journal import LogInput
from voxbridge.shared.step.replay import replay
from voxbridge.shared.step.runner import StepRunner


def accept(wanted: Resolve) -> Accepted | Rejected:
    mode = "alarm" if wanted.name == "alarm" else "call"
    return Accepted(call_id=wanted.call_id, mode=mode, timeout_ms=60_000, idempotent=False)  # type: ignore[arg-type]  # two of its values


class Process:
    """A session in one process, with the outputs to perform."""

    def __init__(self, log: Log, sid: str, stem: str) -> None:
        self.performed: list[Any] = []
        self.session = Session(log, sid, stem=stem, clock=SystemClock(), decide=accept, perform=self._perform)

    async def _perform(self, session: Session, output: Any) -> None:
        self.performed.append(output)

    def of(self, type: type[Any]) -> list[Any]:
        return [output for output in self.performed if isinstance(output, type)]


async def call(log: Log, sid: str, writer: SessionWriter, call_id: str, name: str = "fn") -> LogInput:
    event = ToolCalled(call_id=call_id, name=name, arguments={}, kind="server", turn=1, deadline_ms=0)
    seq = await writer.append(event, ts=SystemClock().now_us(), cause=None)
    return LogInput((await log.read(sid, writer="voice", after=seq - 1, limit=1))[0])


async def stored(log: Log, sid: str) -> list[events.Recorded]:
    return [recorded async for recorded in log.read_all(sid)]


async def test_every_place_a_crash_can_cut_the_log_is_made_good(log: Log) -> None:
    sid = new_session_id()
    voice = SessionWriter(log, sid, "voice")
    process = Process(log, sid, "a")
    await process.session.take(await call(log, sid, voice, "c1"))
    await process.session.take(Returned(call_id="c1", attempt=1, result={"x": 1}))
    await process.session.take(await call(log, sid, voice, "c2", "alarm"))
    alarm = Alarm(after_ms=1_000, announce="Ready.", spoken="Set.")
    await process.session.take(Scheduled(call_id="c2", attempt=1, alarm=alarm))
    whole = await stored(log, sid)
    said = [recorded for recorded in whole if recorded.writer == "tools" and not recorded.type.endswith("journal")]
    assert [recorded.type for recorded in said] == [
        "tool.started", "tool.completed", "tool.started", "tool.completed", "task.started"
    ]  # fmt: skip
    for length in range(len(whole) + 1):
        folded = refold(whole[:length])
        kept = [recorded for recorded in whole[:length] if recorded in said]
        again = said[len(kept) : len(kept) + len(folded.missing)]
        assert [(one.event, one.ts, one.cause) for one in folded.missing] == [(one.event, one.ts, one.cause) for one in again]
        ends = {recorded.event.call_id for recorded in [*kept, *again] if isinstance(recorded.event, ToolCompleted)}
        assert ("c1" in folded.state.ended) == ("c1" in ends), "the state and the events agree"


class Standing:
    """A clock that stands still: the entry is written at the time of its input, as when an event follows."""

    def __init__(self) -> None:
        self._now = SystemClock().now_us()

    def now_us(self) -> int:
        """Return the time of its creation."""
        return self._now


async def test_events_that_a_crash_kept_from_the_log_are_written_by_the_next_process(log: Log) -> None:
    sid = new_session_id()
    called = await call(log, sid, SessionWriter(log, sid, "voice"), "c1")
    await Process(log, sid, "a").session.take(called)
    # The process dies after the journal of the result was written.
    before = await stored(log, sid)
    folded = refold(before)
    writer = SessionWriter(log, sid, "tools", stem="a", end=End(folded.number, folded.last_seq))
    stepper: StepRunner[Any, Any, Any] = StepRunner(lambda state, input, now: (step(state, input, now)[0], []), folded.state, writer=writer,
                      clock=Standing(), perform=list[Any]().append, taken=folded.taken)  # fmt: skip
    stepper.take(Returned(call_id="c1", attempt=1, result={"x": 1}))
    await stepper.close()
    assert not any(isinstance(recorded.event, ToolCompleted) for recorded in await stored(log, sid))

    successor = Process(log, sid, "b")
    await successor.session.take(called)
    (completed,) = [recorded.event for recorded in await stored(log, sid) if isinstance(recorded.event, ToolCompleted)]
    assert completed.result == {"x": 1}
    assert successor.performed == [Done(called.recorded.seq)]


async def test_processes_that_write_in_one_session_perform_each_output_once(log: Log) -> None:
    sid = new_session_id()
    voice = SessionWriter(log, sid, "voice")
    processes = [Process(log, sid, stem) for stem in "abc"]
    count = 20

    async def whole(number: int) -> None:
        process = processes[number % len(processes)]
        await process.session.take(await call(log, sid, voice, f"c{number}"))
        await process.session.take(Returned(call_id=f"c{number}", attempt=1, result={"n": number}))

    await asyncio.gather(*(whole(number) for number in range(count)))
    starts = [output.call_id for process in processes for output in process.of(StartEffect)]
    assert sorted(starts) == sorted(f"c{number}" for number in range(count))
    assert sum(len(process.of(Done)) for process in processes) == count
    said = [recorded.event for recorded in await stored(log, sid)]
    assert len([event for event in said if isinstance(event, ToolStarted)]) == count
    assert len([event for event in said if isinstance(event, ToolCompleted)]) == count
    folded = refold(await stored(log, sid))
    assert (folded.state.open, folded.missing) == ({}, ())


async def test_an_alarm_is_folded_with_its_time(log: Log) -> None:
    sid = new_session_id()
    called = await call(log, sid, SessionWriter(log, sid, "voice"), "c1", "alarm")
    first = Process(log, sid, "a")
    await first.session.take(called)
    await first.session.take(Scheduled(call_id="c1", attempt=1, alarm=Alarm(after_ms=60_000, announce="Ready.", spoken="Set.")))
    second = Process(log, sid, "b")
    await second.session.take(called)
    (task,) = [recorded.event for recorded in await stored(log, sid) if isinstance(recorded.event, TaskStarted)]
    assert task.due_ts == called.recorded.ts + 60_000_000
    assert second.performed == [Count("local", "c1", forced=True, listed=True), SetTimer("c1", task.due_ts)]


async def test_an_input_that_is_too_large_is_refused_and_leaves_the_session_as_it_was(log: Log) -> None:
    sid = new_session_id()
    process = Process(log, sid, "a")
    await process.session.take(await call(log, sid, SessionWriter(log, sid, "voice"), "c1"))
    with pytest.raises(VoxbridgeError, match="bytes"):
        await process.session.take(Returned(call_id="c1", attempt=1, result={"x": "x" * 600_000}))
    await process.session.take(Returned(call_id="c1", attempt=1, result={}))
    folded = refold(await stored(log, sid))
    assert (folded.state.open, folded.missing) == ({}, ())


async def test_inputs_that_wait_together_are_one_transaction_each_with_its_outputs(log: Log) -> None:
    sid = new_session_id()
    voice = SessionWriter(log, sid, "voice")
    called = [await call(log, sid, voice, f"c{number}") for number in range(TOGETHER + 2)]
    process = Process(log, sid, "a")
    await asyncio.gather(*(process.session.take(input) for input in called))
    assert [start.call_id for start in process.of(StartEffect)] == [f"c{number}" for number in range(TOGETHER + 2)]
    entries = [one.event for one in await stored(log, sid) if isinstance(one.event, ToolsJournal)]
    # The first finds nobody waiting; then a full transaction, then the last. Each input is followed by the decision on its call.
    assert [len(entry.inputs) for entry in entries] == [2, 2 * TOGETHER, 2]
    returned = [Returned(call_id=f"c{number}", attempt=1, result={"n": number}) for number in range(TOGETHER)]
    await asyncio.gather(*(process.session.take(input) for input in returned))
    replayed = replay(services()["tools"], await stored(log, sid))
    assert (replayed.differences, replayed.unfinished) == ([], [])
    assert refold(await stored(log, sid)).state == process.session.state


async def test_an_input_that_is_refused_fails_alone(log: Log) -> None:
    sid = new_session_id()
    voice = SessionWriter(log, sid, "voice")
    process = Process(log, sid, "a")
    await asyncio.gather(*[process.session.take(await call(log, sid, voice, f"c{number}")) for number in range(5)])
    returned = [Returned(call_id=f"c{number}", attempt=1, result={"x": "x" * (600_000 if number == 2 else 1)}) for number in range(5)]
    told = await asyncio.gather(*(process.session.take(input) for input in returned), return_exceptions=True)
    assert [isinstance(one, VoxbridgeError) for one in told] == [False, False, True, False, False]
    folded = refold(await stored(log, sid))
    assert (list(folded.state.open), folded.missing) == (["c2"], ())
    assert sorted(done.seq for done in process.of(Done)) == sorted(folded.state.ended.values())


async def test_a_caller_that_is_stopped_leaves_the_inputs_of_the_others(log: Log) -> None:
    sid = new_session_id()
    voice = SessionWriter(log, sid, "voice")
    process = Process(log, sid, "a")
    called = [await call(log, sid, voice, f"c{number}") for number in range(6)]
    taking = [asyncio.create_task(process.session.take(input)) for input in called]
    await asyncio.sleep(0)
    taking[0].cancel()  # it holds the lock
    taking[3].cancel()  # it waits
    told = await asyncio.gather(*taking, return_exceptions=True)
    assert [isinstance(one, asyncio.CancelledError) for one in told] == [True, False, False, True, False, False]
    starts = [start.call_id for start in process.of(StartEffect)]
    assert starts == ["c1", "c2", "c4", "c5"]
    said = [recorded.event for recorded in await stored(log, sid)]
    assert {event.call_id for event in said if isinstance(event, ToolStarted)} >= set(starts)
    assert len(said) == len({recorded.id for recorded in await stored(log, sid)})
    assert not process.session.busy
