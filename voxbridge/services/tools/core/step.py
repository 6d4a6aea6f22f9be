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

from voxbridge.services.tools.core import approvals, calls, duplicates, runs
from voxbridge.services.tools.core.calls import Steps, task_id
from voxbridge.services.tools.core.inputs import (
    Accepted,
    Fact,
    Input,
    Progressed,
    Raised,
    Rejected,
    Returned,
    Scheduled,
    Stated,
    Target,
    TaskRefused,
    TimerFired,
)
from voxbridge.services.tools.core.outputs import Done, Output, Resolve, SetTimer
from voxbridge.services.tools.core.state import Asking, Call, Following, Joined, Rules, Running, State, Waiting
from voxbridge.services.tools.core.state import Scheduled as Alarmed
from voxbridge.shared import events
from voxbridge.shared.errors import Code
from voxbridge.shared.events.gateway import ApprovalClicked, TaskCancelRequested, ToolRequested
from voxbridge.shared.events.tools import TaskProgressed
from voxbridge.shared.events.voice import ApprovalAnswered, Failure, SessionEnded, ToolCalled, ToolCancelled
from voxbridge.shared.step.fold import Append
from voxbridge.shared.step.journal import LogInput

OPEN_LIMIT: Final = 32
"""Calls and tasks that one session may have open."""

WITHDRAWN_KEPT: Final = 32

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
        return state, [Append(msgspec.convert(input.data, events.KINDS[input.kind].cls))]
    call = state.open.get(input.call_id)
    if call is None:
        seq = state.ended.get(input.call_id)
        return state, [] if seq is None else calls.done(state, seq)
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
        if call is not None:
            if isinstance(event, ApprovalClicked):
                state, outputs = approvals.decided(state, call, event.answer, now, by="click", scope=event.scope)
            else:
                state, outputs = approvals.decided(state, call, event.answer, now, by="voice")
    elif isinstance(event, TaskCancelRequested):
        state, outputs = _refused(state, event.task_id, now)
    elif isinstance(event, SessionEnded):
        for call in state.open.values():
            if call.run not in state.open:  # a run stops its own calls
                state, more = _cancel(state, call, "the session ended", now)
                outputs += more
    return state, [*outputs, Done(recorded.seq)]


def _called(state: State, recorded: events.Recorded, event: ToolCalled | ToolRequested, now: int) -> Steps:
    call_id = event.call_id
    held = [call.id for call in state.open.values() if call.seq == recorded.seq]
    if held:
        outputs: list[Output] = []
        for one in held:
            state, more = _again(state, state.open[one], now) if one in state.open else (state, [])
            outputs += more
        return state, outputs
    if call_id in state.open or call_id in state.ended:
        return state, [Done(recorded.seq)]
    call = Call(
        id=call_id,
        seq=recorded.seq,
        name=event.name,
        target=Target(event.name, event.arguments),
        called_at=recorded.ts,
        deadline_ms=event.deadline_ms,
        account=event.account,
    )
    reason = state.withdrawn.get(call_id)
    if reason is not None:
        rest = {other_id: why for other_id, why in state.withdrawn.items() if other_id != call_id}
        state = replace(state, withdrawn=rest)
        return calls.close(state, call, calls.cancellation(reason), now)
    if len(state.open) >= OPEN_LIMIT:
        message = f"{OPEN_LIMIT} functions and timers are open already; wait for one to end."
        return calls.close(state, call, Failure(code=Code.OVERLOADED, message=message, retryable=True), now)
    return calls.put(state, call), [Resolve(call_id, event.name, event.arguments, call.account)]


def _again(state: State, call: Call, now: int) -> Steps:
    """Handle a redelivered event of an open call: the process that had the call is gone."""
    match call.phase:
        case Waiting():
            return state, [Resolve(call.id, call.target.name, call.target.arguments, call.account)]
        case Asking(expires_at=at) | Alarmed(at=at):
            return state, [SetTimer(call.id, at)]
        case Joined():
            return state, []  # it ends with the call that it joined
        case Following():
            return runs.resumed(state, call)
        case Running():
            return calls.redelivered(state, call, now)


def _looked_up(state: State, input: Accepted | Rejected, call: Call, now: int) -> Steps:
    if isinstance(input, Rejected):
        return calls.close(state, call, input.error, now)
    rules = Rules(mode=input.mode, timeout_ms=input.timeout_ms, idempotent=input.idempotent, effect=input.effect, approval=input.approval)
    rules = replace(rules, start=input.start, definition=input.definition)
    call = replace(call, rules=rules, target=input.target or call.target)
    if call.run and rules.start is not None:
        message = f"{call.target.name} is no step of a macro; a macro runs another one by itself."
        return calls.close(state, call, Failure(code=Code.INVALID_ARGUMENT, message=message), now)
    repeated = duplicates.joined(state, call, now)
    if repeated is not None:
        return repeated
    if rules.approval != "never":
        return approvals.ask(state, call, now)
    return runs.begun(state, call, now) if rules.start is not None else calls.begin(state, call, now)


def _told(state: State, input: Returned | Scheduled | Raised | Progressed | Stated | TaskRefused, call: Call, now: int) -> Steps:
    if isinstance(input, Stated):
        return state, [Append(msgspec.convert(input.data, events.KINDS[input.kind].cls))]
    if isinstance(input, TaskRefused):
        return _refused(state, input.task_id, now, by=call.id)
    if isinstance(input, Progressed):
        if not call.started:
            return state, []
        done = min(max(input.done, 0.0), 1.0)
        state = calls.put(state, replace(call, progress=(done, input.message)))
        return state, [Append(TaskProgressed(task_id=task_id(call.id), function=call.target.name, done=done, message=input.message))]
    if isinstance(input, Scheduled):
        return calls.schedule(state, call, input.alarm, now) if call.rules.mode == "alarm" else (state, [])
    if isinstance(input, Returned):
        return calls.close(state, call, input.result, now)
    if input.error.code == Code.CANCELLED or (isinstance(call.phase, Running) and call.phase.cancelled):
        return calls.stopped(state, call, input.error, now)
    return calls.close(state, call, input.error, now)


def _withdrawn(state: State, event: ToolCancelled, now: int) -> Steps:
    reason = event.reason or "cancelled"
    call = state.open.get(event.call_id)
    if call is not None:
        goes_on = isinstance(call.phase, Running) and call.rules.effect != "read" and reason != TAKEN_BACK
        if goes_on and not call.answered and call.rules.mode == "call":
            return calls.detach(state, call)
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
    return (state, []) if call is None else _cancel(state, call, "the user cancelled it", now)
