"""The calls and tasks of one session as a pure step: what is recorded, what may run, what is over.

Owns the rule that an effect happens once: its start is in the log before it runs, and if its event is delivered again while the call is
open, the process that had the call is gone. Does not own the running of effects or the keeping of deadlines
(`voxbridge.services.tools.service`). A crash here loses nothing: `voxbridge.shared.step.fold.fold` restores the state.
"""

from __future__ import annotations

from typing import Any, Final, TypeVar

import msgspec

from voxbridge.services.tools.core.inputs import (
    Accepted,
    Alarm,
    Input,
    Progressed,
    Raised,
    Rejected,
    Returned,
    Scheduled,
    Stated,
    TimerFired,
)
from voxbridge.services.tools.core.outputs import CancelEffect, CancelTimer, Done, Output, Resolve, SetTimer, StartEffect
from voxbridge.services.tools.core.state import Call, State
from voxbridge.shared import events
from voxbridge.shared.errors import Code
from voxbridge.shared.events.tools import (
    TaskCancelled,
    TaskCompleted,
    TaskFailed,
    TaskInterrupted,
    TaskProgressed,
    TaskStarted,
    ToolCompleted,
    ToolFailed,
    ToolInterrupted,
    ToolStarted,
)
from voxbridge.shared.events.voice import Failure, SessionEnded, ToolCalled, ToolCancelled
from voxbridge.shared.step.fold import Append
from voxbridge.shared.step.journal import LogInput

OPEN_LIMIT: Final = 32
"""Calls and tasks that one session may have open."""

ENDED_KEPT: Final = 1_024
"""Ended calls that a session remembers, so that a late redelivery runs nothing."""

WITHDRAWN_KEPT: Final = 32
ATTEMPTS_LIMIT: Final = 3
"""Attempts of an idempotent function for one call."""


_V = TypeVar("_V")


def step(state: State, input: Input | LogInput, now: int) -> tuple[State, list[Output]]:
    """Take one input at `now` (µs of the Unix clock)."""
    if isinstance(input, LogInput):
        return _heard(state, input.recorded, now)
    call = state.open.get(input.call_id)
    if call is None:
        seq = state.ended.get(input.call_id)
        return state, [] if seq is None else [Done(seq)]
    if isinstance(input, TimerFired):
        return _woken(state, input.call_id, call, now)
    if call.phase == "waiting":
        if isinstance(input, Accepted):
            return _accept(state, input, call, now)
        if isinstance(input, Rejected):
            return _close(state, input.call_id, call, _failed(input.call_id, call, input.error, now))
        return state, []
    if call.phase == "running" and not isinstance(input, Accepted | Rejected) and input.attempt == call.attempt:
        return _told(state, input, call, now)
    return state, []


def task_id(call_id: str) -> str:
    """Return the id of the task that a call began."""
    return f"task-{call_id}"


def _heard(state: State, recorded: events.Recorded, now: int) -> tuple[State, list[Output]]:
    event = recorded.event
    if isinstance(event, ToolCalled):
        return _called(state, recorded, event, now)
    if isinstance(event, ToolCancelled):
        call = state.open.get(event.call_id)
        if call is not None:
            state, outputs = _cancel(state, event.call_id, call, event.reason or "cancelled", now)
        else:
            outputs = []
            if event.call_id not in state.ended:
                withdrawn = _kept({**state.withdrawn, event.call_id: event.reason or "cancelled"}, WITHDRAWN_KEPT)
                state = msgspec.structs.replace(state, withdrawn=withdrawn)
        return state, [*outputs, Done(recorded.seq)]
    outputs = []
    if isinstance(event, SessionEnded):
        for call_id, call in state.open.items():
            state, more = _cancel(state, call_id, call, "the session ended", now)
            outputs += more
    return state, [*outputs, Done(recorded.seq)]


def _called(state: State, recorded: events.Recorded, event: ToolCalled, now: int) -> tuple[State, list[Output]]:
    call_id = event.call_id
    known = state.open.get(call_id)
    if known is not None and known.seq == recorded.seq:
        return _again(state, call_id, known, now)
    if known is not None or call_id in state.ended:
        return state, [Done(recorded.seq)]
    call = Call(
        seq=recorded.seq,
        name=event.name,
        arguments=event.arguments,
        called_at=recorded.ts,
        deadline_ms=event.deadline_ms,
        account=event.account,
    )
    reason = state.withdrawn.get(call_id)
    if reason is not None:
        rest = {other_id: why for other_id, why in state.withdrawn.items() if other_id != call_id}
        state = msgspec.structs.replace(state, withdrawn=rest)
        return _close(state, call_id, call, _failed(call_id, call, _cancellation(reason), now))
    if len(state.open) >= OPEN_LIMIT:
        error = Failure(
            code=Code.OVERLOADED, message=f"{OPEN_LIMIT} functions and timers are open already; wait for one to end.", retryable=True
        )
        return _close(state, call_id, call, _failed(call_id, call, error, now))
    return _put(state, call_id, call), [Resolve(call_id, call.name, call.arguments)]


def _again(state: State, call_id: str, call: Call, now: int) -> tuple[State, list[Output]]:
    """Handle a redelivered event of an open call: the process that had the call is gone."""
    if call.phase == "waiting":
        return state, [Resolve(call_id, call.name, call.arguments)]
    if call.phase == "scheduled":
        return state, [SetTimer(call_id, call.wake_at)]
    ends_at = _ends_at(call, now)
    if call.idempotent and not call.cancelled and call.attempt < ATTEMPTS_LIMIT and ends_at > now:
        return _start(state, call_id, call, ends_at, now)
    event: events.Event
    if call.mode == "task":
        event = TaskInterrupted(task_id=task_id(call_id), function=call.name)
    else:
        event = ToolInterrupted(call_id=call_id, name=call.name)
    return _close(state, call_id, call, event)


def _accept(state: State, input: Accepted, call: Call, now: int) -> tuple[State, list[Output]]:
    call_id = input.call_id
    call = msgspec.structs.replace(call, mode=input.mode, timeout_ms=input.timeout_ms, idempotent=input.idempotent)
    ends_at = _ends_at(call, now)
    if ends_at <= now:
        error = Failure(code=Code.TIMED_OUT, message=f"{call.name} was not begun within {call.deadline_ms} ms.", retryable=True)
        return _close(state, call_id, call, _failed(call_id, call, error, now))
    return _start(state, call_id, call, ends_at, now)


def _start(state: State, call_id: str, call: Call, ends_at: int, now: int) -> tuple[State, list[Output]]:
    call = msgspec.structs.replace(call, phase="running", attempt=call.attempt + 1, started_at=now, wake_at=ends_at)
    outputs: list[Output] = [Append(ToolStarted(call_id=call_id, name=call.name, attempt=call.attempt))]
    if call.mode == "task" and call.attempt == 1:
        outputs += _answer(call_id, call, {"spoken": f"Started {call.name.replace('_', ' ')}."}, now)
        outputs.append(Append(TaskStarted(task_id=task_id(call_id), function=call.name, call_id=call_id)))
    outputs += [SetTimer(call_id, ends_at), StartEffect(call_id, call.attempt, call.name, call.arguments, call.account)]
    return _put(state, call_id, call), outputs


def _told(state: State, input: Returned | Scheduled | Raised | Progressed | Stated, call: Call, now: int) -> tuple[State, list[Output]]:
    call_id = input.call_id
    if isinstance(input, Stated):
        return state, [Append(msgspec.convert(input.data, events.KINDS[input.kind].cls))]
    if isinstance(input, Progressed):
        if call.mode != "task":
            return state, []
        done = min(max(input.done, 0.0), 1.0)
        return state, [Append(TaskProgressed(task_id=task_id(call_id), function=call.name, done=done, message=input.message))]
    if isinstance(input, Scheduled):
        return _schedule(state, call_id, call, input.alarm, now) if call.mode == "alarm" else (state, [])
    if isinstance(input, Raised):
        error = _cancellation(call.cancelled) if call.cancelled else input.error
        return _close(state, call_id, call, _failed(call_id, call, error, now))
    if call.mode == "task":
        announce = str(input.result.get("announce", ""))
        return _close(
            state, call_id, call, TaskCompleted(task_id=task_id(call_id), function=call.name, result=input.result, announce=announce)
        )
    return _close(state, call_id, call, ToolCompleted(call_id=call_id, name=call.name, result=input.result, ms=_ms(call, now)))


def _schedule(state: State, call_id: str, call: Call, alarm: Alarm, now: int) -> tuple[State, list[Output]]:
    due = call.called_at + alarm.after_ms * 1_000
    outputs = _answer(call_id, call, {**alarm.result, "spoken": alarm.spoken}, now)
    outputs.append(Append(TaskStarted(task_id=task_id(call_id), function=call.name, call_id=call_id, due_ts=due, label=alarm.label)))
    if call.cancelled:
        state, more = _close(state, call_id, call, TaskCancelled(task_id=task_id(call_id), function=call.name, reason=call.cancelled))
        return state, [*outputs, *more]
    call = msgspec.structs.replace(call, phase="scheduled", alarm=alarm, wake_at=due)
    return _put(state, call_id, call), [*outputs, SetTimer(call_id, due)]


def _woken(state: State, call_id: str, call: Call, now: int) -> tuple[State, list[Output]]:
    if call.phase == "waiting":
        return state, []
    if now < call.wake_at:
        return state, [SetTimer(call_id, call.wake_at)]
    if call.alarm is not None:
        alarm = call.alarm
        event = TaskCompleted(
            task_id=task_id(call_id), function=call.name, result={**alarm.result, "spoken": alarm.announce}, announce=alarm.announce
        )
        return _close(state, call_id, call, event)
    error = Failure(
        code=Code.TIMED_OUT, message=f"{call.name} did not end within {(call.wake_at - call.started_at) // 1_000} ms.", retryable=True
    )
    if call.cancelled:
        error = _cancellation(call.cancelled)
    state, outputs = _close(state, call_id, call, _failed(call_id, call, error, now))
    return state, [CancelEffect(call_id), *outputs]


def _cancel(state: State, call_id: str, call: Call, reason: str, now: int) -> tuple[State, list[Output]]:
    if call.phase == "waiting":
        return _close(state, call_id, call, _failed(call_id, call, _cancellation(reason), now))
    if call.phase == "scheduled":
        return _close(state, call_id, call, TaskCancelled(task_id=task_id(call_id), function=call.name, reason=reason))
    # The function's end decides: it may still end with a result, which is then recorded.
    return _put(state, call_id, msgspec.structs.replace(call, cancelled=call.cancelled or reason)), [CancelEffect(call_id)]


def _answer(call_id: str, call: Call, result: dict[str, Any], now: int) -> list[Output]:
    """Answer the call while its task goes on."""
    answer = {"task_id": task_id(call_id), "status": "started", **result}
    return [Append(ToolCompleted(call_id=call_id, name=call.name, result=answer, ms=_ms(call, now)))]


def _failed(call_id: str, call: Call, error: Failure, now: int) -> events.Event:
    if call.mode != "task":
        return ToolFailed(call_id=call_id, name=call.name, error=error, ms=_ms(call, now))
    if error.code == Code.CANCELLED:
        return TaskCancelled(task_id=task_id(call_id), function=call.name, reason=call.cancelled or error.message)
    return TaskFailed(task_id=task_id(call_id), function=call.name, error=error)


def _close(state: State, call_id: str, call: Call, event: events.Event) -> tuple[State, list[Output]]:
    rest = {other_id: other for other_id, other in state.open.items() if other_id != call_id}
    state = msgspec.structs.replace(state, open=rest, ended=_kept({**state.ended, call_id: call.seq}, ENDED_KEPT))
    return state, [Append(event), CancelTimer(call_id), Done(call.seq)]


def _put(state: State, call_id: str, call: Call) -> State:
    return msgspec.structs.replace(state, open={**state.open, call_id: call})


def _kept(entries: dict[str, _V], limit: int) -> dict[str, _V]:
    while len(entries) > limit:
        del entries[next(iter(entries))]
    return entries


def _ends_at(call: Call, now: int) -> int:
    ends_at = now + call.timeout_ms * 1_000
    if call.mode != "task" and call.deadline_ms > 0:
        ends_at = min(ends_at, call.called_at + call.deadline_ms * 1_000)
    return ends_at


def _ms(call: Call, now: int) -> int:
    return max(0, (now - call.started_at) // 1_000) if call.started_at else 0


def _cancellation(reason: str) -> Failure:
    return Failure(code=Code.CANCELLED, message=f"Cancelled: {reason}.")
