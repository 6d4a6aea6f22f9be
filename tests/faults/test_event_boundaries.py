"""A call in which the voice worker, the executor or the gateway is killed after each event of its log. The successor continues as if there
had been no crash: everything is said once, an effect happens once, and a client receives exactly the events that it had missed."""

from __future__ import annotations

import heapq
from collections import Counter, deque
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, suppress
from itertools import count
from pathlib import Path
from typing import Any, Final

import msgspec
import pytest

from tests.gateway.conftest import Client, Running, Serve
from tests.replayed import after_crash, of_session
from tests.voice.conversation import SID
from tests.voice.live_world import LiveWorld
from tests.voice.realtime.test_live_world import END_MS, QUESTIONS, SCRIPTS, consistent, question, told_to_the_end
from tests.voice.world import TAKEOVER_MS
from voxbridge.services.gateway.core import outbound
from voxbridge.services.gateway.door import tokens
from voxbridge.services.tools.core import inputs as tools_inputs
from voxbridge.services.tools.core import outputs as tools_outputs
from voxbridge.services.tools.core import state as tools_state
from voxbridge.services.tools.core import step as executor
from voxbridge.services.voice.core import inputs
from voxbridge.services.voice.core import step as worker
from voxbridge.sessions import replay
from voxbridge.sessions.archive import read
from voxbridge.shared import events
from voxbridge.shared.events import gateway, tools
from voxbridge.shared.events import voice as ev
from voxbridge.shared.events.journal import JOURNALS, Taken, ToolsJournal
from voxbridge.shared.ids import new_session_id
from voxbridge.shared.log.reader import Log
from voxbridge.shared.log.writer import SessionWriter
from voxbridge.shared.step.fold import Append, fold
from voxbridge.shared.step.journal import LogInput

RECORDING: Final = Path(__file__).parents[1] / "recorded" / "call_d4245723.jsonl"
ANSWERS: Final = (tools.ToolCompleted, tools.ToolFailed, tools.ToolInterrupted)
TASK_ENDS: Final = (tools.TaskCompleted, tools.TaskFailed, tools.TaskCancelled, tools.TaskInterrupted)
_US: Final = 1_000


class _Killed(Exception):
    """The process is dead: the rest of its actions does not happen."""


class Worker(LiveWorld):
    """A call whose voice worker is killed right after the event at the position `dies_behind`."""

    def __init__(self, dies_behind: int = 0) -> None:
        self._dies_behind = dies_behind
        self._stamps: deque[int] = deque()
        super().__init__(SCRIPTS, greets=True)
        self.says(3_000, question(1))
        self.speaks(12_000, question(2))
        self.says(28_000, question(3))
        self.speaks(44_000, question(4))
        self.speaks(60_000, question(5))

    def at(self, ms: int, do: Callable[[], None]) -> None:
        """Schedule an action as usual; it ends when the worker dies in it."""

        def unless_killed() -> None:
            with suppress(_Killed):
                do()

        super().at(ms, unless_killed)

    def _take(self, input: Any) -> None:
        with suppress(_Killed):
            super()._take(input)

    def _store(self, writer: str, event: events.Event, cause: int | str | None) -> events.Recorded:
        recorded = super()._store(writer, event, cause)
        if writer == "voice":
            super()._follow(event)
        if recorded.seq == self._dies_behind:
            self._die()
            self.at(self.now + TAKEOVER_MS, self._take_over)
            if writer == "voice":
                raise _Killed
        return recorded

    def _take_over(self) -> None:
        # Events that the dead worker had decided but not written are written with their original times.
        self._stamps.extend(due.ts for due in fold(worker.step, worker.initial(SID), inputs.Input, "voice", self.log).missing)
        super()._take_over()

    def _us(self) -> int:
        return self._stamps.popleft() if self._stamps else super()._us()

    def _follow(self, event: events.Event) -> None:
        """Do nothing: the executor takes calls from the log, in `_store`, even when the worker is dead."""


class Executor:
    """The executor of a call in virtual time: like `voxbridge.services.tools.service` around the step, with counted effects.

    It is killed after the event at the position `dies_behind`; 3 s later another one continues, and receives again the events that were not
    acknowledged."""

    def __init__(self, mode: tools_inputs.Mode, *, idempotent: bool, dies_behind: int = 0) -> None:
        self.log: list[events.Recorded] = []
        self.effects: Counter[tuple[str, int]] = Counter()
        """Number of effects of each attempt of each call."""

        self.acknowledged: set[int] = set()
        self.now = 0
        self._mode = mode
        self._idempotent = idempotent
        self._dies_behind = dies_behind
        self._alive = True
        self._state = tools_state.State()
        self._taken = 0
        self._order = count()
        self._due: list[tuple[int, int, Callable[[], None]]] = []

    def run(self, heard: Sequence[events.Recorded]) -> None:
        """Take these events of a recorded call at their times, and the events that follow."""
        for one in heard:
            self._pass(one.ts)
            recorded = self._store(one.writer, one.event, None)
            self._take(LogInput(recorded))
        self._pass(self.now + 60_000 * _US)

    def _pass(self, until: int) -> None:
        while self._due and self._due[0][0] <= until:
            at, _, do = heapq.heappop(self._due)
            self.now = max(self.now, at)
            do()
        self.now = max(self.now, until)

    def _at(self, at: int, do: Callable[[], None]) -> None:
        heapq.heappush(self._due, (at, next(self._order), do))

    def _give(self, at: int, input: Any) -> None:
        self._at(at, lambda: self._take(input))

    def _take(self, input: Any) -> None:
        if not self._alive:
            return
        cause: int | str = f"tools#{self._taken}"
        taken = Taken(at=self.now, seq=None, input=msgspec.Raw(msgspec.msgpack.encode(input)))
        if isinstance(input, LogInput):
            cause, taken = input.recorded.seq, Taken(at=self.now, seq=input.recorded.seq)
        self._state, outputs = executor.step(self._state, input, self.now)
        self._taken += 1
        with suppress(_Killed):
            self._store("tools", ToolsJournal(first=self._taken - 1, inputs=(taken,)), None)
            for output in outputs:
                self._perform(output, cause)

    def _perform(self, output: tools_outputs.Output, cause: int | str) -> None:
        match output:
            case Append(event):
                self._store("tools", event, cause)
            case tools_outputs.Resolve(call_id):
                accepted = tools_inputs.Accepted(call_id=call_id, mode=self._mode, timeout_ms=5_000, idempotent=self._idempotent)
                self._give(self.now, accepted)
            case tools_outputs.StartEffect(call_id, attempt):
                self.effects[call_id, attempt] += 1
                alarm = tools_inputs.Alarm(after_ms=1_500, announce="It is time.", spoken="Set.")
                scheduled = tools_inputs.Scheduled(call_id=call_id, attempt=attempt, alarm=alarm)
                returned = tools_inputs.Returned(call_id=call_id, attempt=attempt, result={"done": True})
                self._give(self.now + 20 * _US, scheduled if self._mode == "alarm" else returned)
            case tools_outputs.SetTimer(call_id, at):
                self._give(at, tools_inputs.TimerFired(call_id=call_id))
            case tools_outputs.Done(seq):
                self.acknowledged.add(seq)

    def _store(self, writer: str, event: events.Event, cause: int | str | None, *, ts: int | None = None) -> events.Recorded:
        number = sum(one.writer == writer for one in self.log)
        payload = events.encode(event, event_id=f"{SID}.{writer}.{number}", sid=SID, ts=self.now if ts is None else ts, cause=cause)
        recorded = events.decode(payload, seq=len(self.log) + 1, writer=writer, visible=events.kind_of(event).visible)
        self.log.append(recorded)
        if recorded.seq == self._dies_behind:
            self._alive, self._due = False, []
            self._at(self.now + 3_000 * _US, self._take_over)
            if writer == "tools":
                raise _Killed
        return recorded

    def _take_over(self) -> None:
        folded = fold(executor.step, tools_state.State(), tools_inputs.Input, "tools", self.log)
        self._alive, self._state, self._taken = True, folded.state, folded.taken
        for due in folded.missing:
            self._store("tools", due.event, due.cause, ts=due.ts)
        for one in [one for one in self.log if one.writer != "tools" and one.seq not in self.acknowledged]:
            self._take(LogInput(one))


async def worker_dies(_: Callable[[], Awaitable[Running]]) -> int:
    """Check that every question is answered completely, in one turn, that no call is made twice, and that each result is taken once."""
    whole = Worker()
    whole.run(END_MS)
    owned = next(one.seq for one in whole.log if isinstance(one.event, ev.SessionOwned))
    same = after_crash(replay.services()["voice"], whole.log, len(whole.log))
    boundaries = range(owned, len(whole.log) + 1)
    for boundary in boundaries:
        call = Worker(boundary)
        call.run(END_MS)
        assert [one.worker for one in call.told(ev.SessionRestored)] == ["voice-2"], boundary
        consistent(call, QUESTIONS)
        assert [one.reason for one in call.told(ev.TurnCompleted)] == ["completed"] * len(QUESTIONS), boundary
        assert told_to_the_end(call), boundary
        called = [one.call_id for one in call.told(ev.ToolCalled)]
        assert [one.call_id for one in call.told(ev.ToolDelivered)] == called == [one.call_id for one in whole.told(ev.ToolCalled)]
        assert call.log[:boundary] == whole.log[:boundary], "until then it is the same call"
        assert after_crash(replay.services()["voice"], whole.log, boundary) == same, boundary
    return len(boundaries)


async def executor_dies(_: Callable[[], Awaitable[Running]]) -> int:
    """Check that each call is answered once; a call that is not idempotent is not repeated, and its possible effect is reported."""
    heard = [one for one in read(RECORDING).log if isinstance(one.event, ev.ToolCalled | ev.ToolCancelled | ev.SessionEnded)]
    boundaries = 0
    kinds: list[tuple[tools_inputs.Mode, bool]] = [("call", False), ("call", True), ("task", False), ("task", True), ("alarm", False)]
    for mode, idempotent in kinds:
        whole = Executor(mode, idempotent=idempotent)
        whole.run(heard)
        for boundary in range(1, len(whole.log) + 1):
            call = Executor(mode, idempotent=idempotent, dies_behind=boundary)
            call.run(heard)
            _was_done_once(call, mode, idempotent=idempotent)
            assert call.log[:boundary] == whole.log[:boundary], "until then it is the same call"
            assert list(of_session(call.log, ["tools"])) == []
            boundaries += 1
    return boundaries


def _was_done_once(call: Executor, mode: tools_inputs.Mode, *, idempotent: bool) -> None:
    asked = [one.event.call_id for one in call.log if isinstance(one.event, ev.ToolCalled)]
    assert sorted(one.event.call_id for one in call.log if isinstance(one.event, ANSWERS)) == sorted(asked)
    begun = [(one.event.call_id, one.event.attempt) for one in call.log if isinstance(one.event, tools.ToolStarted)]
    assert len(begun) == len(set(begun))
    assert set(call.effects) <= set(begun), "it is in the log before it is done"
    assert set(call.effects.values()) == {1}
    tasks = [one.event.task_id for one in call.log if isinstance(one.event, tools.TaskStarted)]
    assert sorted(tasks) == sorted(one.event.task_id for one in call.log if isinstance(one.event, TASK_ENDS))
    lost = [one for one in call.log if isinstance(one.event, tools.ToolInterrupted | tools.TaskInterrupted)]
    if idempotent:
        assert not lost
    else:
        assert {attempt for _, attempt in begun} == {1}
    done = [call_id for call_id, _ in call.effects]
    assert set(asked) - set(done) <= {_call_of(one.event) for one in lost}
    assert call.acknowledged >= {one.seq for one in call.log if one.writer == "voice"}
    assert mode != "call" or not tasks


def _call_of(event: Any) -> str:
    return event.call_id if isinstance(event, tools.ToolInterrupted) else str(event.task_id).removeprefix("task-")


async def gateway_dies(started: Callable[[], Awaitable[Running]]) -> int:
    """Check that a client that resumes at another gateway receives exactly the missed events, each once."""
    doors = [await started(), await started()]
    log, sid, token = doors[0].gateway.log, new_session_id(), tokens.new_token()
    recorded = [one for one in read(RECORDING).log if not isinstance(one.event, tuple(JOURNALS.values()))]
    ready = {"sessionId": sid, "resumeToken": token}
    writers = {one.writer: SessionWriter(log, sid, one.writer, fenced=False) for one in recorded}
    boundaries, told = 0, list[dict[str, Any]]()
    async with AsyncExitStack() as stack:
        for one in recorded[:-1]:
            event = one.event
            if isinstance(event, gateway.SessionRequested):
                event = msgspec.structs.replace(event, resume_hash=tokens.hash_of(token))
            await writers[one.writer].append(event, ts=one.ts, cause=None)
            if isinstance(event, gateway.SessionRequested):
                continue
            # The client's previous gateway is killed: it has not logged the disconnection.
            client = await stack.enter_async_context(doors[boundaries % 2].client())
            told += await _rest(client, ready, told[-1]["seq"] if told else 0, log)
            boundaries += 1
            if boundaries % 16 == 0:
                await stack.aclose()
    whole = await _told(log, sid, token, 0)
    assert told == whole, "what the sockets were told together is the call"
    for position in [0, *(message["seq"] for message in whole)]:
        async with doors[boundaries % 2].client() as client:
            assert await _rest(client, ready, position, log) == [message for message in whole if message["seq"] > position]
            boundaries += 1
            if position == whole[-1]["seq"]:
                await writers["voice"].append(recorded[-1].event, ts=recorded[-1].ts, cause=None)
                assert (await client.until("session_ended"))["reason"] == "client_ended"
                assert await client.close_code() == 1000
    return boundaries


async def _rest(client: Client, ready: dict[str, Any], last_seq: int, log: Log) -> list[dict[str, Any]]:
    """Return the events that a client receives when it resumes after a position."""
    missed = await _told(log, ready["sessionId"], ready["resumeToken"], last_seq)
    answer = await client.resume(ready, last_seq)
    assert (answer["recovered"], answer["from"]) == (True, last_seq)
    assert answer["to"] == max((message["seq"] for message in missed), default=last_seq)
    found: list[dict[str, Any]] = []
    while len(found) < len(missed):
        message = await client.next()
        if "seq" in message:
            found.append(message)
    assert found == missed
    return found


async def _told(log: Log, sid: str, token: str, after: int) -> list[dict[str, Any]]:
    reader = outbound.Reader(sid, True, token)
    made = [outbound.of_event(one, reader) async for one in log.read_all(sid, visibility="c", after=after)]
    return [message for message in made if message is not None]


VICTIMS: Final[dict[str, tuple[Callable[[Callable[[], Awaitable[Running]]], Awaitable[int]], int]]] = {
    "voice": (worker_dies, 100),
    "tool executor": (executor_dies, 60),
    "gateway": (gateway_dies, 150),
}
"""Test for each victim, and the least number of boundaries in its call."""


@pytest.mark.parametrize("victim", VICTIMS)
async def test_kill_9_voice_tool_executor_and_gateway_at_each_event_boundary(
    victim: str, serve: Serve, nats_url: str, redis_url: str
) -> None:
    dies, boundaries = VICTIMS[victim]
    assert await dies(lambda: serve(nats_url, redis_url)) >= boundaries
