"""The life of one call: looked up, begun, ended. Pure.

A call is answered once: with its outcome or, when its work goes on in the background, with a task, whose outcome is told later. A call that
may have had an effect is reported as interrupted. It is reported as failed only if we know that it had none.
"""

from __future__ import annotations

from typing import Any, Final, Literal, TypeVar

from msgspec.structs import replace

from voxbridge.services.tools.core import ends
from voxbridge.services.tools.core.inputs import Alarm, Target
from voxbridge.services.tools.core.outputs import (
    CancelEffect,
    CancelTimer,
    Count,
    Done,
    Output,
    Release,
    Resolve,
    SetTimer,
    StartEffect,
    StepEnded,
)
from voxbridge.services.tools.core.state import Approved, Asking, Call, Joined, Recent, Running, Scheduled, State, Waiting
from voxbridge.shared import events
from voxbridge.shared.errors import Code
from voxbridge.shared.events.tools import (
    ApprovalEnded,
    TaskCancelled,
    TaskCompleted,
    TaskFailed,
    TaskInterrupted,
    TaskStarted,
    ToolCompleted,
    ToolFailed,
    ToolInterrupted,
    ToolStarted,
)
from voxbridge.shared.events.voice import Failure
from voxbridge.shared.step.fold import Append

ENDED_KEPT: Final = 1_024
"""Ended calls that a session remembers, so that a late redelivery runs nothing."""

RECENT_KEPT: Final = 8
"""Newest results that a session remembers for the same call under a new id."""

ATTEMPTS_LIMIT: Final = 3
"""Attempts of an idempotent function for one call."""

TASKS_LIMIT: Final = 8
"""Tasks that one session may have running, timers not counted."""

_V = TypeVar("_V")
Steps = tuple[State, list[Output]]


def task_id(call_id: str) -> str:
    """Return the id of the task that a call began."""
    return f"task-{call_id}"


def approval_id(call_id: str) -> str:
    """Return the id of the approval that a call waits for."""
    return f"approval-{call_id}"


def put(state: State, call: Call) -> State:
    """Return the state with this call in it."""
    return replace(state, open={**state.open, call.id: call})


def resolve(call: Call) -> Resolve:
    """Return the request to look up the function of a call."""
    return Resolve(call.id, call.target.name, call.target.arguments, call.account, call.allowed, call.unattended)


def begin(state: State, call: Call, now: int) -> Steps:
    """Run the function for the first time, unless it is too late for the caller."""
    ends_at = _ends_at(call, now)
    if ends_at <= now:
        error = Failure(code=Code.TIMED_OUT, message=f"{call.target.name} was not begun within {call.deadline_ms} ms.", retryable=True)
        return close(state, call, error, now)
    if call.rules.mode == "task" and sum(_is_task(one) for one in state.open.values()) >= TASKS_LIMIT:
        message = f"{TASKS_LIMIT} tasks are running already; wait for one to end, or cancel one."
        return close(state, call, Failure(code=Code.OVERLOADED, message=message, retryable=True), now)
    return _start(state, call, ends_at, now)


def begun(state: State, task: Call, target: Target, now: int) -> Steps:
    """Open a call that a task begins. Nobody waits for its answer."""
    state = put(state, replace(task, begun=task.begun + 1))
    call = Call(
        id=f"{task.id}.{task.begun + 1}",
        seq=task.seq,
        name=target.name,
        target=target,
        called_at=now,
        deadline_ms=0,
        account=task.account,
        allowed=task.allowed,
        unattended=task.unattended,
        by_program=task.by_program,
        time_zone=task.time_zone,
    )
    return put(state, call), [resolve(call)]


def redelivered(state: State, call: Call, now: int) -> Steps:
    """Go on with a running call whose process is gone: run an idempotent function again, end what was being stopped and only
    reads, or say that it was interrupted."""
    running = call.phase
    if not isinstance(running, Running):
        raise TypeError(f"{call.id} does not run")
    ends_at = _ends_at(call, now)
    if call.rules.idempotent and not running.cancelled and running.attempt < ATTEMPTS_LIMIT and ends_at > now:
        return _start(state, call, ends_at, now)
    if running.cancelled and call.rules.effect == "read":
        return stopped(state, call, cancellation(running.cancelled), now)
    return close(state, call, None, now)


def _start(state: State, call: Call, ends_at: int, now: int) -> Steps:
    attempt = call.phase.attempt + 1 if isinstance(call.phase, Running | Asking | Approved) else 1
    call = replace(call, phase=Running(attempt, now, ends_at))
    outputs: list[Output] = [Append(ToolStarted(call_id=call.id, name=call.name, attempt=attempt))]
    if call.rules.mode == "task" and not call.answered:
        call, answer = answered(call, {"spoken": call.rules.begins or f"Started {words(call.target.name)}."}, now)
        outputs += answer
    if call.answered and not call.started and call.rules.mode != "alarm":
        call = replace(call, started=True)
        outputs.append(Append(TaskStarted(task_id=task_id(call.id), function=call.target.name, call_id=call.id)))
    target = call.target
    start = StartEffect(call.id, attempt, target.name, target.arguments, call.account, call.rules.definition, call.allowed, call.time_zone)
    outputs += [SetTimer(call.id, ends_at), start]
    return put(state, call), outputs


def answered(call: Call, result: dict[str, Any], now: int, *, goes_on: Literal["task", "approval"] = "task") -> tuple[Call, list[Output]]:
    """Answer the caller while the work goes on. A run waits for the end."""
    if call.run:
        return call, []
    answer = {"task_id": task_id(call.id), "status": "started", **result}
    told = ToolCompleted(call_id=call.id, name=call.name, result=answer, ms=ms(call, now), goes_on=goes_on)
    return replace(call, answered=True), [Append(told)]


def detach(state: State, call: Call) -> Steps:
    """Let a call go on as a task, because nobody waits for its answer any more."""
    call = replace(call, answered=True, started=True, rules=replace(call.rules, counted=True))
    event = TaskStarted(task_id=task_id(call.id), function=call.target.name, call_id=call.id)
    return put(state, call), [Append(event), Count(call.account, call.id, forced=True)]


def counted_again(call: Call) -> list[Output]:
    """Return what has the account count a call that became a task while it ran: its process may have died before it did."""
    late = call.rules.counted and call.rules.mode in ("call", "alarm")
    return [Count(call.account, call.id, forced=True, listed=isinstance(call.phase, Scheduled))] if late else []


def schedule(state: State, call: Call, alarm: Alarm, now: int) -> Steps:
    """Set the alarm that the function returned."""
    due = call.called_at + alarm.after_ms * 1_000
    outputs: list[Output] = []
    cancelled = call.phase.cancelled if isinstance(call.phase, Running) else ""
    if call.run:  # the step has what it wanted: the alarm is a task like any other now
        result = {"task_id": task_id(call.id), **alarm.result, "spoken": alarm.spoken}
        outputs = [StepEnded(call.run, call.id, ToolCompleted(call_id=call.id, name=call.name, result=result, ms=ms(call, now)))]
        call = replace(call, run="", answered=True)
    elif not call.answered:
        call, outputs = answered(call, {**alarm.result, "spoken": alarm.spoken}, now)
    started = TaskStarted(task_id=task_id(call.id), function=call.target.name, call_id=call.id, due_ts=due, label=alarm.label)
    outputs.append(Append(started))
    call = replace(call, phase=Scheduled(due, alarm), started=True, rules=replace(call.rules, counted=True))
    if cancelled:
        state, more = cancel(state, call, cancelled, now)
        return state, [*outputs, *more]
    return put(state, call), [*outputs, Count(call.account, call.id, listed=True), SetTimer(call.id, due)]


def woken(state: State, call: Call, now: int) -> Steps:
    """Handle the timer of a call: its alarm is due, or its time is over."""
    phase = call.phase
    if isinstance(phase, Scheduled):
        if now < phase.at:
            return state, [SetTimer(call.id, phase.at)]
        return close(state, call, {**phase.alarm.result, "spoken": phase.alarm.announce}, now, announce=phase.alarm.announce)
    if not isinstance(phase, Running):
        return state, []
    if now < phase.ends_at:
        return state, [SetTimer(call.id, phase.ends_at)]
    state, outputs = stopped(state, call, _late(call, phase), now)
    return state, [CancelEffect(call.id), *outputs]


def stopped(state: State, call: Call, error: Failure, now: int) -> Steps:
    """End a running call that was stopped before it returned: by its time-out, or by a cancellation. How far it came is not known."""
    cancelled = call.phase.cancelled if isinstance(call.phase, Running) else ""
    if cancelled and call.answered:
        return _end(state, call, _cancelled(call, cancelled), now)
    if call.rules.effect != "read":
        return close(state, call, None, now)
    return close(state, call, cancellation(cancelled) if cancelled else error, now)


def cancel(state: State, call: Call, reason: str, now: int) -> Steps:
    """End a call that is not wanted any more. The end of a running function decides: it may still end with a result."""
    if isinstance(call.phase, Running):
        phase = replace(call.phase, cancelled=call.phase.cancelled or reason)
        return put(state, replace(call, phase=phase)), [CancelEffect(call.id)]
    if isinstance(call.phase, Waiting | Joined):
        return close(state, call, cancellation(reason), now)
    return cancelled(state, call, reason, now)


def cancelled(state: State, call: Call, reason: str, now: int) -> Steps:
    """End a task as cancelled."""
    return _end(state, call, _cancelled(call, reason), now)


def _cancelled(call: Call, reason: str) -> TaskCancelled:
    return TaskCancelled(task_id=task_id(call.id), function=call.target.name, reason=reason, outlives=call.rules.outlives)


def close(state: State, call: Call, outcome: dict[str, Any] | Failure | None, now: int, *, announce: str = "") -> Steps:
    """End a call with its result, its error, or None where it is not known how far it came; calls that joined it end alike."""
    state, outputs = _end(state, call, _event(call, outcome, now, announce), now)
    if _may_be_repeated(call, outcome):
        again = isinstance(outcome, dict) and call.rules.mode != "run"
        recent = Recent(target=call.target, ended_at=now, turn=call.turn, kept=again)
        recent = replace(recent, failure=outcome) if isinstance(outcome, Failure) else replace(recent, result=outcome)
        state = replace(state, recent=kept({**state.recent, call.id: recent}, RECENT_KEPT))
    repeated = repeat(outcome) if isinstance(outcome, dict) else outcome
    for other in [one for one in state.open.values() if one.phase == Joined(call.id)]:
        state, more = _end(state, other, _event(other, repeated, now, announce), now)
        outputs += more
    return state, outputs


def _may_be_repeated(call: Call, outcome: dict[str, Any] | Failure | None) -> bool:
    """Tell whether another call with the same arguments, made before this one ended, is to end like it."""
    if call.rules.effect == "read" or call.run or call.rules.mode == "alarm":
        return False
    return call.rules.mode == "run" or not isinstance(outcome, Failure)


def repeat(result: dict[str, Any]) -> dict[str, Any]:
    """Return a result for a call that was made again: it says that nothing ran a second time."""
    return {**result, "repeated": True}


def drop(state: State, call: Call, event: events.Event) -> Steps:
    """End a call that never ran with this event alone."""
    return _close(state, call, event)


def _end(state: State, call: Call, event: events.Event, now: int) -> Steps:
    """End a call and, without a result, the calls that joined it."""
    state, told = ends.ended(state, call, event, now)
    state, outputs = _close(state, call, event)
    outputs[1:1] = told  # before its message is acknowledged
    if call.answered and not call.started:  # an approved alarm that was never set
        outputs.insert(0, Append(TaskStarted(task_id=task_id(call.id), function=call.target.name, call_id=call.id)))
    if isinstance(event, TaskCancelled):
        for other in [one for one in state.open.values() if one.phase == Joined(call.id)]:
            state, more = _close(state, other, _event(other, cancellation(event.reason), now, ""))
            outputs += more
    return state, outputs


def _close(state: State, call: Call, event: events.Event) -> Steps:
    rest = {other_id: other for other_id, other in state.open.items() if other_id != call.id}
    state = replace(state, open=rest, ended=kept({**state.ended, call.id: call.seq}, ENDED_KEPT))
    told: list[Output] = [Append(event)]
    if call.run:
        told = [*(told if isinstance(event, ApprovalEnded) else []), StepEnded(call.run, call.id, event)]
    freed: list[Output] = [Release(call.account, call.id)] if call.rules.counted else []
    return state, [*told, CancelTimer(call.id), *freed, *done(state, call.seq)]


def done(state: State, seq: int) -> list[Output]:
    """Return the acknowledgement of an event, unless calls that it led to are still open: a run's steps, and the alarms that they set."""
    return [] if any(one.seq == seq for one in state.open.values()) else [Done(seq)]


def _event(call: Call, outcome: dict[str, Any] | Failure | None, now: int, announce: str) -> events.Event:
    function, task, outlives = call.target.name, task_id(call.id), call.rules.outlives
    if not call.answered:
        if outcome is None:
            return ToolInterrupted(call_id=call.id, name=call.name)
        if isinstance(outcome, Failure):
            return ToolFailed(call_id=call.id, name=call.name, error=outcome, ms=ms(call, now))
        return ToolCompleted(call_id=call.id, name=call.name, result=outcome, ms=ms(call, now))
    if outcome is None:
        return TaskInterrupted(task_id=task, function=function, outlives=outlives)
    if isinstance(outcome, Failure):
        return TaskFailed(task_id=task, function=function, error=outcome, outlives=outlives)
    announce = announce or str(outcome.get("announce", ""))
    return TaskCompleted(task_id=task, function=function, result=outcome, announce=announce, outlives=outlives)


def kept(entries: dict[str, _V], limit: int) -> dict[str, _V]:
    """Return the newest entries."""
    while len(entries) > limit:
        del entries[next(iter(entries))]
    return entries


def words(name: str) -> str:
    """Return the name of a function as words."""
    return " ".join(filter(None, name.split("_")))  # the tool of a server has two between the names


def cancellation(reason: str) -> Failure:
    """Return the error of a cancelled call."""
    return Failure(code=Code.CANCELLED, message=f"Cancelled: {reason}.")


def ms(call: Call, now: int) -> int:
    """Return for how long the function has run, ms."""
    return max(0, (now - call.phase.started_at) // 1_000) if isinstance(call.phase, Running) else 0


def _late(call: Call, running: Running) -> Failure:
    length = (running.ends_at - running.started_at) // 1_000
    return Failure(code=Code.TIMED_OUT, message=f"{call.target.name} did not end within {length} ms.", retryable=True)


def _is_task(call: Call) -> bool:
    return call.answered and isinstance(call.phase, Running) and call.rules.mode != "alarm"


def _ends_at(call: Call, now: int) -> int:
    ends_at = now + call.rules.timeout_ms * 1_000
    if (call.run or call.rules.mode != "task") and not call.answered and call.deadline_ms > 0:
        ends_at = min(ends_at, call.called_at + call.deadline_ms * 1_000)
    return ends_at
