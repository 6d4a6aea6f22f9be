"""Runs of macros and workflows among a session's calls. Pure.

A run is an open call whose own message stays open until it ends. Its steps are calls by the common path, with its message: they are looked
up, approved, begun and ended like any other, but their ends are told to the run and to nobody else. The run decides what comes next
(`voxbridge.services.tools.runs`); this translates between the two.
"""

from __future__ import annotations

from collections import deque
from typing import Any

from msgspec.structs import replace

from voxbridge.services.tools.core import calls, ends
from voxbridge.services.tools.core.calls import Steps, task_id
from voxbridge.services.tools.core.inputs import Target
from voxbridge.services.tools.core.outputs import CancelTimer, Output, SetTimer, StepEnded
from voxbridge.services.tools.core.state import Asking, Call, Following, State
from voxbridge.services.tools.runs import inputs, machine, modes, outputs
from voxbridge.services.tools.runs.state import Asking as Asked
from voxbridge.services.tools.runs.state import Deciding, Stepping
from voxbridge.shared import events
from voxbridge.shared.errors import Code
from voxbridge.shared.events.gateway import RunAnswerReceived
from voxbridge.shared.events.tools import ApprovalEnded, ApprovalRequested, TaskCompleted, TaskStarted, ToolCompleted, ToolFailed
from voxbridge.shared.events.voice import Failure, RunAnswered
from voxbridge.shared.macros.answers import choice_of, step_choice_of
from voxbridge.shared.step.fold import Append


def begun(state: State, call: Call, now: int) -> Steps:
    """Start the run of a call. One that ends at once answers the call with its result; any other goes on as a task."""
    start = call.rules.start
    if start is None:
        raise TypeError(f"{call.id} runs nothing")
    state = calls.put(state, replace(call, phase=Following()))
    state, outputs = _took(state, start, now)
    call = state.open.get(call.id, call)
    if not isinstance(call.phase, Following):
        return state, outputs
    name = start.document.name
    told: list[Output] = []
    if not call.answered:
        call, told = calls.answered(call, {"spoken": f"Started {name}."}, now)
    call = replace(call, started=True)
    task = TaskStarted(task_id=task_id(call.id), function=call.target.name, call_id=call.id, label=name)
    return calls.put(state, call), [*told, Append(task), *outputs]


def woken(state: State, call: Call, now: int) -> Steps:
    """Handle the timer of a run."""
    return _took(state, inputs.TimerFired(run_id=call.id), now)


def answered(state: State, event: RunAnswered | RunAnswerReceived, now: int) -> Steps:
    """Give a run the answer of the user to the question that it asks. One to another step's question, or that decides nothing, is none."""
    run = state.runs.open.get(event.run_id)
    if run is None or (event.step and event.step != run.frame.path):
        return state, []
    stepping = isinstance(run.phase, Stepping)
    wanted = step_choice_of(event.text) if stepping else None
    off = isinstance(event, RunAnswered) and event.cancelled
    if wanted == "stop" or (off and isinstance(run.phase, Asked | Deciding | Stepping)):
        return _took(state, inputs.Cancel(run_id=run.id, reason=ends.BY_THE_USER), now)
    if stepping:
        return (state, []) if wanted is None else _took(state, inputs.Stepped(run_id=run.id, yes=wanted == "yes"), now)
    if isinstance(run.phase, Asked):
        return _took(state, inputs.Answered(run_id=run.id, text=event.text), now)
    choice = choice_of(event.text) if isinstance(run.phase, Deciding) else None
    return (state, []) if choice is None else _took(state, inputs.Decided(run_id=run.id, choice=choice), now)


def cancelled(state: State, call: Call, reason: str, now: int) -> Steps:
    """Cancel a run."""
    return _took(state, inputs.Cancel(run_id=call.id, reason=reason), now)


def broken(state: State, call: Call, error: Failure, now: int) -> Steps:
    """End a run whose step could not be taken, as failed. One that still waits to begin is cancelled."""
    if call.id in state.runs.open:
        return _took(state, inputs.Broken(run_id=call.id, error=error), now)
    return cancelled(state, call, error.message, now)


def resumed(state: State, call: Call) -> Steps:
    """Take a run on from a process that is gone. Its calls have its message, and are taken on beside it."""
    run = state.runs.open.get(call.id)
    found = [] if run is None else machine.resumed(run)
    return state, [SetTimer(call.id, output.at) for output in found if isinstance(output, outputs.SetTimer)]


def settled(state: State, found: list[Output], now: int) -> Steps:
    """Tell runs how their calls ended, and do what they ask for, until nothing is left to tell."""
    done: list[Output] = []
    waiting = deque(found)
    while waiting:
        output = waiting.popleft()
        more: list[Output] = []
        if isinstance(output, StepEnded):
            state, more = _took(state, _outcome(output.run_id, output.call_id, output.event), now)
        else:
            done.append(output)
            if isinstance(output, Append) and isinstance(output.event, ApprovalRequested):
                state, more = _held(state, output.event, now)
        waiting.extendleft(reversed(more))
    return state, done


def _outcome(run_id: str, call_id: str, event: events.Event) -> inputs.Input:
    if isinstance(event, ToolCompleted | TaskCompleted):
        return inputs.Returned(run_id=run_id, call_id=call_id, result=event.result)
    if isinstance(event, ToolFailed):
        return inputs.Failed(run_id=run_id, call_id=call_id, error=event.error)
    if isinstance(event, ApprovalEnded):
        refused = Failure(code=Code.PERMISSION_DENIED, message=f"{calls.words(event.name)} was not approved ({event.outcome}).")
        return inputs.Failed(run_id=run_id, call_id=call_id, error=refused)
    lost = Failure(code=Code.INTERRUPTED, message="It was interrupted; whether it took effect is not known.")
    return inputs.Failed(run_id=run_id, call_id=call_id, error=lost, known=False)


def _held(state: State, event: ApprovalRequested, now: int) -> Steps:
    call = state.open.get(event.call_id)
    if call is None or not call.run:
        return state, []
    return _took(state, inputs.Held(run_id=call.run, call_id=call.id, question=event.question), now)


def _took(state: State, input: inputs.Input, now: int) -> Steps:
    runs, found = modes.step(state.runs, input, now)
    state = replace(state, runs=runs)
    done: list[Output] = []
    for output in found:
        state, more = _did(state, output, now)
        done += more
    return state, done


def _did(state: State, output: outputs.Output, now: int) -> Steps:
    """Do what a run asks for."""
    match output:
        case Append():
            return state, [output]
        case outputs.SetTimer(run_id=run_id, at=at):
            return state, [SetTimer(run_id, at)]
        case outputs.CancelTimer(run_id=run_id):
            return state, [CancelTimer(run_id)]
        case outputs.StartCall():
            return _called(state, output, now)
        case outputs.CancelCall(call_id=call_id):
            return _stopped(state, call_id, now)
        case outputs.Refused(run_id=run_id, error=error):
            return _ended(state, run_id, error, "", now)
        case outputs.Finished(run_id=run_id, outcome=outcome, reason=reason):
            return _ended(state, run_id, outcome, reason, now)


def _called(state: State, wanted: outputs.StartCall, now: int) -> Steps:
    run = state.open[wanted.run_id]
    call = Call(
        id=wanted.call_id,
        seq=run.seq,
        name=wanted.function,
        target=Target(wanted.function, wanted.arguments),
        called_at=now,
        deadline_ms=0 if wanted.timeout_s is None else round(wanted.timeout_s * 1_000),
        account=run.account,
        allowed=_allowed(run),
        unattended=run.unattended,
        time_zone=run.time_zone,
        by_program=run.by_program,
        run=run.id,
    )
    return calls.put(state, call), [calls.resolve(call)]


def _allowed(run: Call) -> tuple[str, ...] | None:
    """Return what the steps of a run may call: as much as whoever runs it. A workflow is the installation's own, and may call all."""
    own = run.rules.start is not None and run.rules.start.kind == "workflow"
    return None if own else run.allowed


def _stopped(state: State, call_id: str, now: int) -> Steps:
    call = state.open.get(call_id)
    if call is None:
        return state, []
    if isinstance(call.phase, Asking):
        ended = ApprovalEnded(approval_id=calls.approval_id(call_id), call_id=call_id, name=call.target.name, outcome="withdrawn")
        return calls.drop(state, call, ended)
    return calls.cancel(state, call, "its run was stopped", now)


def _ended(state: State, run_id: str, outcome: dict[str, Any] | Failure | None, reason: str, now: int) -> Steps:
    call = state.open.get(run_id)
    if call is None:
        return state, []
    if outcome is not None:
        return calls.close(state, call, outcome, now)
    if call.answered:
        return calls.cancelled(state, call, reason, now)
    return calls.close(state, call, calls.cancellation(reason), now)
