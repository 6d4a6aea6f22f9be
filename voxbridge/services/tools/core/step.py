"""The calls and tasks of one session as a pure step: what is recorded, what may run, what is over.

Owns the rule that an effect happens once: its start is in the log before it runs, and if its event is delivered again while the call is
open, the process that had the call is gone. What a barge-in and a repetition do follows from the function's declared effect. Does not own
the running of effects or the keeping of deadlines (`voxbridge.services.tools.service`). A crash here loses nothing:
`voxbridge.shared.step.fold.fold` restores the state.
"""

from __future__ import annotations

from typing import Final

import msgspec
from msgspec.structs import replace

from voxbridge.services.tools.core import approvals, calls, duplicates, ends, faults, runs, tasks, undo
from voxbridge.services.tools.core.calls import Steps, task_id
from voxbridge.services.tools.core.inputs import (
    Accepted,
    AccountInput,
    CallBegun,
    Counted,
    EndInput,
    Fact,
    Faulted,
    Input,
    Progressed,
    Proposed,
    Raised,
    Rejected,
    Reported,
    Returned,
    Scheduled,
    Stated,
    Target,
    TaskRefused,
    TaskUnwanted,
    TimerFired,
    UndoInput,
)
from voxbridge.services.tools.core.outputs import Done, Output, SetTimer
from voxbridge.services.tools.core.state import Approved, Asking, Call, Following, Joined, Rules, Running, State, Waiting
from voxbridge.services.tools.core.state import Scheduled as Alarmed
from voxbridge.shared import events
from voxbridge.shared.errors import Code
from voxbridge.shared.events.gateway import ApprovalClicked, RunAnswerReceived, TaskCancelRequested, ToolRequested
from voxbridge.shared.events.tools import TaskProgressed
from voxbridge.shared.events.voice import ApprovalAnswered, Failure, RunAnswered, SessionEnded, ToolCalled, ToolCancelled
from voxbridge.shared.step.fold import Append
from voxbridge.shared.step.journal import LogInput

OPEN_LIMIT: Final = 32
"""Calls and tasks that one session may have open."""

WITHDRAWN_KEPT: Final = 32
FACTS_KEPT: Final = 256

Decision = ApprovalAnswered | ApprovalClicked | RunAnswered | RunAnswerReceived
"""Decision of a person about a call. The process that has the call is to take it."""

TAKEN_BACK: Final = "timed_out"
"""Reason for which a call is stopped whatever its effect. For any other, what may change something goes on: it is only not waited for."""


def step(state: State, input: Input | LogInput, now: int) -> Steps:
    """Take one input at `now` (µs of the Unix clock)."""
    state, outputs = _took(state, input, now)
    return runs.settled(state, outputs, now)


def _took(state: State, input: Input | LogInput, now: int) -> Steps:
    if isinstance(input, LogInput):
        return _heard(state, input.recorded, now)
    if isinstance(input, Fact):
        if input.key in state.facts:
            return state, []
        if input.key:
            state = replace(state, facts=calls.kept({**state.facts, input.key: None}, FACTS_KEPT))
        return state, [Append(msgspec.convert(input.data, events.KINDS[input.kind].cls))]
    if isinstance(input, EndInput):
        return ends.took(state, input)
    if isinstance(input, UndoInput):
        return undo.took(state, input, now)
    if isinstance(input, AccountInput):
        return tasks.counted(state, input, now), []
    if isinstance(input, Faulted):
        return faults.ended(state, input, now)
    if isinstance(input, TaskUnwanted):
        return _refused(state, input.task_id, now)
    call = state.open.get(input.call_id)
    if isinstance(input, Counted):
        return approvals.admitted(state, call, input, now)
    if call is None:
        seq = state.ended.get(input.call_id)
        return state, [] if seq is None else [*ends.left(state), *undo.left(state), *calls.done(state, seq)]
    phase = call.phase
    if isinstance(input, TimerFired):
        if isinstance(phase, Following):
            return runs.woken(state, call, now)
        return approvals.woken(state, call, phase, now) if isinstance(phase, Asking) else calls.woken(state, call, now)
    if isinstance(input, Accepted | Rejected):
        return _looked_up(state, input, call, now) if isinstance(phase, Waiting) else (state, [])
    if isinstance(phase, Running) and input.attempt == phase.attempt:
        return _told(state, input, call, now)
    return state, []


def _heard(state: State, recorded: events.Recorded, now: int) -> Steps:
    event = recorded.event
    if isinstance(event, ToolCalled | ToolRequested):
        return _called(state, recorded, event, now)
    outputs: list[Output] = []
    if isinstance(event, ToolCancelled):
        state, outputs = _withdrawn(state, event, now)
    elif isinstance(event, ApprovalAnswered | ApprovalClicked):
        call = approvals.call_of(state, event.approval_id)
        if call is None:
            outputs = [*approvals.granted_before(state, event.approval_id), *approvals.counted_again(state, event.approval_id)]
        elif approvals.is_late(call, recorded.ts):
            state, outputs = approvals.decided(state, call, "lapsed", now)
        elif isinstance(event, ApprovalClicked):
            state, outputs = approvals.decided(state, call, event.answer, now, by="click", scope=event.scope)
        else:
            state, outputs = approvals.decided(state, call, event.answer, now, by="voice")
    elif isinstance(event, RunAnswered | RunAnswerReceived):
        state, outputs = runs.answered(state, event, now)
    elif isinstance(event, TaskCancelRequested):
        state, outputs = _refused(state, event.task_id, now)
    elif isinstance(event, SessionEnded):
        for call in state.open.values():
            if call.run not in state.open and not _goes_on(call):  # a run stops its own calls
                state, more = _cancel(state, call, "the session ended", now)
                outputs += more
        state, more = ends.session_ended(state, event.told)
        outputs += more
    return state, [*outputs, Done(recorded.seq)]


def _goes_on(call: Call) -> bool:
    """Tell whether a call is a task that the end of its session does not end. One that waits for approval has nobody left to give it."""
    return call.rules.outlives and isinstance(call.phase, Running | Alarmed | Following)


def concerned(state: State, event: Decision) -> Call | None:
    """Return the call that a person decides upon."""
    if isinstance(event, ApprovalAnswered | ApprovalClicked):
        return approvals.call_of(state, event.approval_id)
    return state.open.get(event.run_id)


def _called(state: State, recorded: events.Recorded, event: ToolCalled | ToolRequested, now: int) -> Steps:
    call_id = event.call_id
    held = [call.id for call in state.open.values() if call.seq == recorded.seq]
    if held:
        outputs = undo.left(state)
        for one in held:
            state, more = _again(state, state.open[one], now) if one in state.open else (state, [])
            outputs += more
        return state, outputs
    if call_id in state.open or call_id in state.ended:
        return state, [*ends.left(state), *undo.left(state), Done(recorded.seq)]
    call = Call(
        id=call_id,
        seq=recorded.seq,
        name=event.name,
        target=Target(event.name, event.arguments),
        called_at=recorded.ts,
        deadline_ms=event.deadline_ms,
        account=event.account,
        by_program=isinstance(event, ToolRequested),
        allowed=event.allowed if isinstance(event, ToolCalled) else None,
        unattended=isinstance(event, ToolCalled) and event.unattended,
        turn=event.turn if isinstance(event, ToolCalled) else 0,
        time_zone=event.time_zone if isinstance(event, ToolCalled) else "",
    )
    reason = state.withdrawn.get(call_id)
    if reason is not None:
        rest = {other_id: why for other_id, why in state.withdrawn.items() if other_id != call_id}
        state = replace(state, withdrawn=rest)
        return calls.close(state, call, calls.cancellation(reason), now)
    if len(state.open) >= OPEN_LIMIT:
        message = f"{OPEN_LIMIT} functions and timers are open already; wait for one to end."
        return calls.close(state, call, Failure(code=Code.OVERLOADED, message=message, retryable=True), now)
    return calls.put(state, call), [calls.resolve(call)]


def _again(state: State, call: Call, now: int) -> Steps:
    """Handle a redelivered event of an open call: the process that had the call is gone."""
    match call.phase:
        case Waiting():
            return state, [calls.resolve(call)]
        case Asking(expires_at=at) | Alarmed(at=at):
            return state, [*calls.counted_again(call), SetTimer(call.id, at)]
        case Approved():
            return state, approvals.counting(call)
        case Joined():
            return state, []  # it ends with the call that it joined
        case Following():
            return runs.resumed(state, call)
        case Running():
            state, outputs = calls.redelivered(state, call, now)
            return state, [*calls.counted_again(call), *outputs]


def _looked_up(state: State, input: Accepted | Rejected, call: Call, now: int) -> Steps:
    if isinstance(input, Rejected):
        return calls.close(state, call, input.error, now)
    rules = Rules(mode=input.mode, timeout_ms=input.timeout_ms, idempotent=input.idempotent, effect=input.effect, approval=input.approval)
    rules = replace(rules, start=input.start, definition=input.definition, outlives=input.outlives, counted=input.counted)
    rules = replace(rules, begins=input.begins, by_turn=input.by_turn)
    call = replace(call, rules=rules, target=input.target or call.target)
    if call.run and rules.start is not None:
        message = f"{call.target.name} is not a step of a macro; a macro runs another one by itself."
        return calls.close(state, call, Failure(code=Code.INVALID_ARGUMENT, message=message), now)
    repeated = duplicates.joined(state, call, now)
    if repeated is not None:
        return repeated
    if rules.approval != "never":
        return approvals.ask(state, call, now)
    return runs.begun(state, call, now) if rules.start is not None else calls.begin(state, call, now)


def _told(state: State, input: Returned | Scheduled | Proposed | Raised | Reported, call: Call, now: int) -> Steps:
    if isinstance(input, Stated):
        return state, [Append(msgspec.convert(input.data, events.KINDS[input.kind].cls))]
    if isinstance(input, TaskRefused):
        return _refused(state, input.task_id, now, by=call.id)
    if isinstance(input, Progressed):
        if not call.started:
            return state, []
        tell = input.done is None
        done = call.progress[0] if input.done is None else min(max(input.done, 0.0), 1.0)
        state = calls.put(state, replace(call, progress=(done, input.message)))
        event = TaskProgressed(task_id=task_id(call.id), function=call.target.name, done=done, message=input.message, tell=tell)
        return state, [Append(event)]
    if isinstance(input, CallBegun):
        if not call.started or len(state.open) >= OPEN_LIMIT:
            return state, []
        return calls.begun(state, call, Target(input.name, input.arguments), now)
    if isinstance(input, Scheduled):
        if call.rules.mode != "alarm":
            return state, []
        state, outputs = calls.schedule(state, call, input.alarm, now)
        return undo.kept(state, call, input.undo, outputs, now)
    if isinstance(input, Returned):
        state, outputs = calls.close(state, call, input.result, now)
        return undo.kept(state, call, input.undo, outputs, now)
    if isinstance(input, Proposed):
        return approvals.propose(state, call, call.phase, input.proposal, now) if isinstance(call.phase, Running) else (state, [])
    if input.error.code == Code.CANCELLED or (isinstance(call.phase, Running) and call.phase.cancelled):
        return calls.stopped(state, call, input.error, now)
    return calls.close(state, call, input.error, now)


def _withdrawn(state: State, event: ToolCancelled, now: int) -> Steps:
    reason = event.reason or "cancelled"
    call = state.open.get(event.call_id)
    if call is not None:
        goes_on = isinstance(call.phase, Running | Alarmed) and call.rules.effect != "read" and reason != TAKEN_BACK
        if goes_on:  # the same word may come twice, live and from the stream; an alarm is set, or will be in a moment
            return calls.detach(state, call) if not call.answered and call.rules.mode == "call" else (state, [])
        return (state, []) if call.answered and not isinstance(call.phase, Running | Alarmed) else _cancel(state, call, reason, now)
    if event.call_id in state.ended:
        return state, []
    return replace(state, withdrawn=calls.kept({**state.withdrawn, event.call_id: reason}, WITHDRAWN_KEPT)), []


def _cancel(state: State, call: Call, reason: str, now: int) -> Steps:
    if isinstance(call.phase, Asking):
        return approvals.decided(state, call, "withdrawn", now)
    if isinstance(call.phase, Following):
        return runs.cancelled(state, call, reason, now)
    return calls.cancel(state, call, reason, now) if call.id in state.open else (state, [])


def _refused(state: State, task: str, now: int, *, by: str = "") -> Steps:
    """Cancel a task because the user said so."""
    call = next((one for one in state.open.values() if task_id(one.id) == task and one.id != by), None)
    return (state, []) if call is None else _cancel(state, call, ends.BY_THE_USER, now)
