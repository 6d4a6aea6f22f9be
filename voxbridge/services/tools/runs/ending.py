"""The end of a run before its time: a call that it made is stopped first, and its end is recorded. Pure."""

from __future__ import annotations

from typing import Final

from msgspec.structs import replace

from voxbridge.services.tools.runs.inputs import Failed, Returned
from voxbridge.services.tools.runs.outputs import CancelCall, CancelTimer, Finished, Output, SetTimer
from voxbridge.services.tools.runs.state import Calling, Run, Stopping
from voxbridge.shared.errors import Code
from voxbridge.shared.events.tools import RunCancelled, RunFailed, RunStepCompleted, RunStepFailed
from voxbridge.shared.events.voice import Failure
from voxbridge.shared.step.fold import Append

STOPPING_US: Final = 10_000_000
"""µs for which a run that ends waits for its call to stop."""

Steps = tuple[Run | None, list[Output]]
"""The run, None once it has ended, and what follows."""


def stop(run: Run, reason: str, error: Failure | None, now: int) -> Steps:
    """End a run before its time: at once, or when the call that it made has ended."""
    if isinstance(run.phase, Calling):
        stopping = Stopping(run.phase.call_id, now + STOPPING_US, reason, error, run.phase.held)
        return replace(run, phase=stopping), [CancelCall(run.id, stopping.call_id), SetTimer(run.id, stopping.until)]
    return over(run, reason, error, now, is_open=run.is_open)


def stopped(run: Run, phase: Stopping, input: Returned | Failed, now: int) -> Steps:
    """Record the end of the call that a run waited for before it ends itself."""
    frame = run.frame
    event: RunStepCompleted | RunStepFailed = RunStepCompleted(run_id=run.id, step=frame.path, attempt=frame.attempt)
    if isinstance(input, Failed):
        event = RunStepFailed(run_id=run.id, step=frame.path, attempt=frame.attempt, error=input.error, known=input.known)
    after, outputs = over(run, phase.reason, phase.error, now)
    return after, [Append(event), *outputs]


def over(run: Run, reason: str, error: Failure | None, now: int, *, is_open: bool = False) -> Steps:
    """End the run as failed with `error`, or as cancelled. The steps that run other documents end with it, and, where it `is_open`, the one
    that is reached."""
    cut = error or Failure(code=Code.CANCELLED, message=f"{run.name} was cancelled: {reason}.")
    outputs: list[Output] = [
        Append(RunStepFailed(run_id=run.id, step=frame.path, attempt=frame.attempt, error=cut))
        for frame in reversed(run.frames if is_open else run.frames[:-1])
    ]
    if error is not None:
        path = run.frame.path if run.frame.at < len(run.frame.document.steps) else ""
        outputs.append(Append(RunFailed(run_id=run.id, name=run.name, error=error, step=path, ms=ms(run, now))))
    else:
        outputs.append(Append(RunCancelled(run_id=run.id, name=run.name, reason=reason, ms=ms(run, now))))
    return None, [*outputs, CancelTimer(run.id), Finished(run.id, error, reason)]


def ms(run: Run, now: int) -> int:
    """Return for how long a run has gone on, ms."""
    return max(0, now - run.started_at) // 1_000
