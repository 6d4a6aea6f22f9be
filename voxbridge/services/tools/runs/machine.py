"""One run as a state machine: from step to step, until it waits for something or ends.

Owns the order of steps, conditions, attempts, and how a run ends. Does not own which runs may be open at a time (`modes`). Every attempt of
a step has a number, and a call is named by its run, its step and that number, so what is asked for twice is one call. Pure.
"""

from __future__ import annotations

from typing import Any, Final, Literal

import msgspec
from msgspec.structs import replace

from voxbridge.services.tools.runs import ending, failures, step_questions
from voxbridge.services.tools.runs.conditions import holds
from voxbridge.services.tools.runs.document import DEPTH_LIMIT, Action, Ask, Call, Fallback, RunMacro, Say, Stop, Wait
from voxbridge.services.tools.runs.inputs import Answered, Confirmed, Decided, Failed, Held, Returned, Start, Stepped
from voxbridge.services.tools.runs.outputs import CancelCall, CancelTimer, Finished, Output, SetTimer, StartCall
from voxbridge.services.tools.runs.pipes import Outcome, Resolver, Scope
from voxbridge.services.tools.runs.state import (
    Asking,
    Calling,
    Confirming,
    Deciding,
    Frame,
    Pausing,
    Ready,
    Run,
    Stepping,
    Stopping,
    Waiting,
)
from voxbridge.services.tools.runs.values import given
from voxbridge.shared.errors import Code, VoxbridgeError
from voxbridge.shared.events.tools import (
    RunCompleted,
    RunStarted,
    RunStepCompleted,
    RunStepFailed,
    RunStepSkipped,
    RunStepStarted,
    RunWaiting,
)
from voxbridge.shared.events.voice import Failure
from voxbridge.shared.macros.trace import excerpt
from voxbridge.shared.step.fold import Append

STEPS_OF_RUN: Final = 200
"""Attempts of steps in one run, with those of the macros that it runs."""

RESULTS_BYTES: Final = 1_048_576
"""Size of all results of one run as JSON."""

CONFIRM_US: Final = 120_000_000
"""µs for which a run waits to be confirmed."""

DECIDE_US: Final = 300_000_000
"""µs for which a run waits to be told how to go on after a failed step."""

ANSWER_CHARACTERS: Final = 2_000
"""Characters of an answer that are kept."""

SAID_CHARACTERS: Final = 4_000
"""Characters of what a run said that its result repeats."""

Steps = tuple[Run | None, list[Output]]
"""The run, None once it has ended, and what follows."""


def opened(start: Start, now: int) -> Steps:
    """Return a new run: it begins, or asks a person first. Raises `INVALID_ARGUMENT` for inputs that do not fit."""
    document = start.document
    expires = now + CONFIRM_US
    run = Run(
        id=start.run_id,
        kind=start.kind,
        frames=(Frame(document=document, inputs=given(document, start.inputs)),),
        macros=start.macros,
        phase=Confirming(expires),
        started_at=now,
        ends_at=now + _us(document.timeout_s),
        stepwise=start.stepwise,
    )
    if document.confirm == "always" or (document.confirm == "first" and not start.approved) or start.unsure:
        question = f"Shall I run {document.name}? Please say yes or no."
        return run, [*_asked(run, "confirm", question, expires), SetTimer(run.id, expires)]
    return _gone_on(_begun(run, now), now)


def took(run: Run, input: Returned | Failed | Held | Confirmed | Answered | Decided | Stepped, now: int) -> Steps:
    """Take an answer. One that nobody waits for, or waits for any more, changes nothing."""
    return _gone_on(_taken(run, input, now), now)


def woken(run: Run, now: int) -> Steps:
    """Handle the timer: what was waited for is due, or the time for it, or for the whole run, is over."""
    at = run.due
    return (run, [SetTimer(run.id, at)]) if now < at else _gone_on(_timed(run, now), now)


def cancelled(run: Run, reason: str, now: int) -> Steps:
    """Cancel a run. A call that it made is stopped first; its end is recorded."""
    return (run, []) if isinstance(run.phase, Stopping) else ending.stop(run, reason, None, now)


def resumed(run: Run) -> list[Output]:
    """Return what a process does that takes the run on from one that is gone: the timer, and the call, under the id that it has."""
    outputs: list[Output] = [SetTimer(run.id, run.due)]
    if isinstance(run.phase, Calling):
        outputs.append(_call(run, run.phase))
    elif isinstance(run.phase, Stopping):
        outputs.append(CancelCall(run.id, run.phase.call_id))
    return outputs


def _taken(run: Run, input: Returned | Failed | Held | Confirmed | Answered | Decided | Stepped, now: int) -> Steps:
    phase = run.phase
    if isinstance(input, Returned | Failed | Held):
        if not isinstance(phase, Calling | Stopping) or phase.call_id != input.call_id:
            return run, []
        if isinstance(input, Held):
            return _held(run, phase, input)
        if isinstance(phase, Stopping):
            return ending.stopped(run, phase, input, now)
        return _completed(run, input.result, now) if isinstance(input, Returned) else _failed(run, input.error, now, known=input.known)
    if isinstance(input, Confirmed) and isinstance(phase, Confirming):
        return _begun(run, now) if input.yes else cancelled(run, "it was not confirmed", now)
    if isinstance(input, Answered) and isinstance(phase, Asking):
        text = input.text[:ANSWER_CHARACTERS]
        return _completed(_not_counting(run, phase, now), {"text": text}, now)
    if isinstance(input, Decided) and isinstance(phase, Deciding):
        return _decided(_not_counting(run, phase, now), phase, input.choice, now)
    if isinstance(input, Stepped) and isinstance(phase, Stepping):
        run = _not_counting(run, phase, now)
        return (_allowed(run), []) if input.yes else _skipped(run)
    return run, []


def _not_counting(run: Run, phase: Asking | Deciding | Stepping, now: int) -> Run:
    """Return the run with the time that a person took to answer added to its own."""
    return replace(run, ends_at=run.ends_at + max(0, now - phase.since)) if phase.since else run


def _timed(run: Run, now: int) -> Steps:
    phase = run.phase
    if isinstance(phase, Confirming):
        return cancelled(run, "nobody confirmed it in time", now)
    if isinstance(phase, Stopping):
        lost = Failure(code=Code.INTERRUPTED, message=f"It is not known how far {run.frame.path} came.")
        return ending.stopped(run, phase, Failed(run_id=run.id, call_id=phase.call_id, error=lost, known=False), now)
    if isinstance(phase, Asking):
        wait_s = (now - phase.since) // 1_000_000
        message = f'Nobody answered "{phase.question[:100]}" within {wait_s} s. Run {run.name} again when you can answer.'
        return _failed(_not_counting(run, phase, now), Failure(code=Code.TIMED_OUT, message=message), now)
    if isinstance(phase, Stepping):
        return cancelled(_not_counting(run, phase, now), "nobody said in time whether to go on", now)
    if isinstance(phase, Deciding):
        return _decided(_not_counting(run, phase, now), phase, "stop", now)
    if now >= run.ends_at:
        message = f"{run.name} took longer than {run.frames[0].document.timeout_s:g} s and was stopped."
        return ending.stop(run, message, Failure(code=Code.TIMED_OUT, message=message), now)
    match phase:
        case Waiting():
            return _completed(run, {}, now)
        case Pausing():
            return replace(run, phase=Ready()), []
    return run, []


def _begun(run: Run, now: int) -> Steps:
    document = run.frame.document
    run = replace(run, phase=Ready(), started_at=now, ends_at=now + _us(document.timeout_s))
    started = RunStarted(run_id=run.id, name=run.name, kind=run.kind, steps=len(document.steps), inputs=dict(run.frame.inputs))
    return run, [Append(started)]


def _gone_on(steps: Steps, now: int) -> Steps:
    """Begin one step after the other, until one takes time or the run ends."""
    run, outputs = steps
    while run is not None and isinstance(run.phase, Ready):
        run, more = _attempted(run, now)
        outputs += more
    return run, outputs


def _attempted(run: Run, now: int) -> Steps:
    """Begin an attempt of the step that is reached, or of its fallback; skip it, or end the document, if that is what comes next."""
    frame = run.frame
    if frame.at >= len(frame.document.steps):
        return _returned(run, frame.steps[frame.last].result if frame.last else {}, now)
    if run.count >= STEPS_OF_RUN:
        message = f"{run.name} ran {STEPS_OF_RUN} steps without an end and was stopped. Split it, or run less within it."
        return ending.over(run, "", Failure(code=Code.TOO_LARGE, message=message), now)
    resolver = Resolver(Scope(inputs=frame.inputs, steps=frame.steps, last=frame.last))
    action = _action(frame)
    try:
        if frame.step.when and not frame.substituted and not holds(frame.step.when, resolver):
            return _skipped(run)
    except VoxbridgeError as error:
        run, event = _numbered(run, action)
        run_after, outputs = _failed(run, _failure(error), now)
        return run_after, [Append(event), *outputs]
    if run.stepwise and not frame.allowed:
        waits = Stepping(step_questions.question(run, action, resolver), now + step_questions.STEP_US, now)
        run, outputs = _wait(run, waits)
        return run, [*_asked(run, "step", waits.question, waits.expires_at), *outputs]
    run, event = _numbered(run, action)
    try:
        run_after, outputs = _acted(run, action, resolver, now)
    except VoxbridgeError as error:
        run_after, outputs = _failed(run, _failure(error), now)
    call = next((output for output in outputs if isinstance(output, StartCall)), None)
    if call is not None:
        event = replace(event, given=excerpt(call.arguments))
    return run_after, [Append(event), *outputs]


def _allowed(run: Run) -> Run:
    """Return the run with the step that is reached allowed, in all its attempts."""
    return replace(run, frames=(*run.frames[:-1], replace(run.frame, allowed=True)), phase=Ready())


def _skipped(run: Run) -> Steps:
    event = RunStepSkipped(run_id=run.id, step=run.frame.path)
    return _next(replace(run, count=run.count + 1), Outcome(state="skipped")), [Append(event)]


def _action(frame: Frame) -> Action:
    policy = failures.policy_of(frame)
    return policy.step if frame.substituted and isinstance(policy, Fallback) else frame.step.action


def _numbered(run: Run, action: Action) -> tuple[Run, RunStepStarted]:
    """Return the run with one attempt more, and the event of its beginning."""
    frame = replace(run.frame, attempt=run.frame.attempt + 1)
    run = replace(run, frames=(*run.frames[:-1], frame), count=run.count + 1)
    target = action.function if isinstance(action, Call) else action.name if isinstance(action, RunMacro) else ""
    kind = str(action.__struct_config__.tag)
    return run, RunStepStarted(run_id=run.id, step=frame.path, attempt=frame.attempt, action=kind, target=target)


def _acted(run: Run, action: Action, resolver: Resolver, now: int) -> Steps:
    """Do what a step says. Raises what its pipes raise."""
    frame = run.frame
    match action:
        case Call():
            call_id = f"{run.id}.{frame.path}.{frame.attempt}"
            calling = Calling(call_id, action.function, resolver.value(action.arguments), frame.step.timeout_s)
            run = replace(run, phase=calling)
            return run, [_call(run, calling), SetTimer(run.id, run.due)]
        case Say():
            return _completed(run, {"spoken": resolver.text(action.text)}, now)
        case Wait():
            return _wait(run, Waiting(now + _us(action.seconds)))
        case Ask():
            asking = Asking(resolver.text(action.question), now + _us(action.timeout_s), now)
            run, outputs = _wait(run, asking)
            return run, [*_asked(run, "ask", asking.question, asking.expires_at), *outputs]
        case Stop():
            reason = resolver.text(action.reason)
            if action.error:
                error = Failure(code=Code.CANCELLED, message=reason or f"{run.name} stopped with an error.")
                return _left(run, error, now)
            result = resolver.value(action.result)
            completed = RunStepCompleted(run_id=run.id, step=frame.path, attempt=frame.attempt)
            run_after, outputs = _returned(run, {"stopped": reason} if result is None else result, now)
            return run_after, [Append(completed), *outputs]
        case RunMacro():
            return _entered(run, action, resolver), []


def _entered(run: Run, action: RunMacro, resolver: Resolver) -> Run:
    document = run.macros.get(action.name)
    if document is None:
        raise VoxbridgeError(Code.NOT_FOUND, f"There is no macro {action.name!r} any more.", field="name")
    if len(run.frames) >= DEPTH_LIMIT:
        message = f"Macros run within one another {DEPTH_LIMIT} deep at most."
        raise VoxbridgeError(Code.TOO_LARGE, message, field="name", limit=DEPTH_LIMIT)
    prefix = f"{run.frame.path}.{run.frame.attempt}."
    frame = Frame(document=document, inputs=given(document, resolver.value(action.inputs)), prefix=prefix)
    return replace(run, frames=(*run.frames, frame), phase=Ready())


def _returned(run: Run, result: Any, now: int) -> Steps:
    """End the last frame well: the run, or the step that ran it."""
    if len(run.frames) > 1:
        return _completed(replace(run, frames=run.frames[:-1]), result, now)
    outcome = dict(result) if isinstance(result, dict) else {"result": result}
    said = " ".join(run.said)[:SAID_CHARACTERS]
    outcome["spoken"] = said or outcome.get("spoken") or f"{run.name} is done."
    event = RunCompleted(run_id=run.id, name=run.name, result=outcome, steps=run.count, ms=ending.ms(run, now))
    return None, [Append(event), CancelTimer(run.id), Finished(run.id, outcome)]


def _completed(run: Run, result: Any, now: int) -> Steps:
    """End the step that is reached well."""
    frame = run.frame
    spoken = result["spoken"] if isinstance(_action(frame), Say) else ""
    event = RunStepCompleted(run_id=run.id, step=frame.path, attempt=frame.attempt, spoken=spoken, result=excerpt(result))
    run = replace(run, kept=run.kept + len(msgspec.json.encode(result)), said=(*run.said, spoken) if spoken else run.said)
    if run.kept > RESULTS_BYTES:
        message = f"The results of {run.name} have more than {RESULTS_BYTES} bytes, so it was stopped."
        run_after, outputs = ending.over(run, "", Failure(code=Code.TOO_LARGE, message=message), now)
        return run_after, [Append(event), *outputs]
    return _next(run, Outcome(state="completed", result=result)), [Append(event)]


def _next(run: Run, outcome: Outcome) -> Run:
    """Return the run at its next step."""
    frame = run.frame
    steps = {**frame.steps, frame.step.id: outcome}
    last = frame.step.id if outcome.state == "completed" else frame.last
    frame = replace(frame, at=frame.at + 1, attempt=0, substituted=False, allowed=False, steps=steps, last=last)
    return replace(run, frames=(*run.frames[:-1], frame), phase=Ready())


def _failed(run: Run, error: Failure, now: int, *, known: bool = True) -> Steps:
    """End an attempt as failed, and do what the step's policy says."""
    frame = run.frame
    event = RunStepFailed(run_id=run.id, step=frame.path, attempt=frame.attempt, error=error, known=known)
    outputs: list[Output]
    after: Run | None
    match failures.verdict(frame, error, known=known):
        case failures.Again(after_us=0):
            after, outputs = replace(run, phase=Ready()), []
        case failures.Again(after_us=after_us):
            after, outputs = _wait(run, Pausing(now + after_us))
        case failures.Substitute():
            frames = (*run.frames[:-1], replace(frame, substituted=True))
            after, outputs = replace(run, frames=frames, phase=Ready()), []
        case failures.GoOn():
            after, outputs = _next(run, Outcome(state="failed", error=error)), []
        case failures.AskUser(question=question):
            expires = now + DECIDE_US
            waiting, more = _wait(run, Deciding(error, known, question, expires, now))
            after, outputs = waiting, [*_asked(waiting, "error", question, expires), *more]
        case failures.GiveUp():
            after, outputs = _given_up(run, error, now, known=known)
    return after, [Append(event), *outputs]


def _left(run: Run, error: Failure, now: int) -> Steps:
    """End the document at a `stop` step with an error, whatever the step's policy."""
    event = RunStepFailed(run_id=run.id, step=run.frame.path, attempt=run.frame.attempt, error=error)
    after, outputs = _given_up(run, error, now, known=True)
    return after, [Append(event), *outputs]


def _given_up(run: Run, error: Failure, now: int, *, known: bool) -> Steps:
    """End the last frame as failed: the run, or the step that ran it, which has a policy of its own."""
    if len(run.frames) > 1:
        return _failed(replace(run, frames=run.frames[:-1]), error, now, known=known)
    return ending.over(run, "", error, now)


def _decided(run: Run, phase: Deciding, choice: str, now: int) -> Steps:
    if choice == "again" and run.frame.attempt < failures.ATTEMPTS_LIMIT:
        return replace(run, phase=Ready()), []
    if choice == "go_on":
        return _next(run, Outcome(state="failed", error=phase.error)), []
    return _given_up(run, phase.error, now, known=phase.known)


def _held(run: Run, phase: Calling | Stopping, input: Held) -> Steps:
    if not isinstance(phase, Calling) or phase.held:
        return run, []
    return replace(run, phase=replace(phase, held=input.question)), _asked(run, "approval", input.question, None)


def _wait(run: Run, phase: Waiting | Asking | Pausing | Deciding | Stepping) -> tuple[Run, list[Output]]:
    run = replace(run, phase=phase)
    return run, [SetTimer(run.id, run.due)]


def _asked(run: Run, reason: Literal["confirm", "ask", "error", "approval", "step"], question: str, expires: int | None) -> list[Output]:
    step = "" if reason == "confirm" else run.frame.path
    return [Append(RunWaiting(run_id=run.id, name=run.name, reason=reason, step=step, question=question, expires_ts=expires))]


def _call(run: Run, calling: Calling) -> StartCall:
    return StartCall(
        run_id=run.id,
        call_id=calling.call_id,
        function=calling.function,
        arguments=calling.arguments,
        timeout_s=calling.timeout_s,
    )


def _failure(error: VoxbridgeError) -> Failure:
    return Failure(code=error.code, message=error.message, retryable=error.retryable)


def _us(seconds: float) -> int:
    return round(seconds * 1_000_000)
