"""The trace of a run, folded from its events alone: what each step came to, where the run stands, and what it waits for. Pure.

For those who show or list runs without the journal. `of` gives the same of a live run.
"""

from __future__ import annotations

from typing import Any, Final, Literal

import msgspec
from msgspec.structs import replace

from voxbridge.services.tools.runs.state import Asking, Calling, Confirming, Deciding, Run, Stopping
from voxbridge.shared import events
from voxbridge.shared.events import tools as ev
from voxbridge.shared.events.voice import Failure

ATTEMPTS_KEPT: Final = 200
"""Attempts of steps in a trace."""

State = Literal["queued", "waiting", "running", "completed", "failed", "cancelled"]


class Attempt(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One attempt of a step. Times are µs of the Unix clock."""

    step: str
    attempt: int
    action: str
    target: str = ""
    state: Literal["running", "completed", "failed", "interrupted", "skipped"] = "running"
    started_at: int
    ended_at: int = 0
    error: Failure | None = None


class Trace(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A run as its events tell it."""

    run_id: str
    name: str
    state: State = "running"
    attempts: tuple[Attempt, ...] = ()
    question: str = ""
    result: dict[str, Any] | None = None
    error: Failure | None = None
    reason: str = ""

    @property
    def open(self) -> tuple[tuple[str, int], ...]:
        """Steps that have begun and not ended, with their attempts; the innermost last."""
        return tuple((one.step, one.attempt) for one in self.attempts if one.state == "running")


def apply(trace: Trace | None, event: events.Event, at: int) -> Trace | None:
    """Return the trace after an event of its run; None as long as there was none."""
    if isinstance(event, ev.RunWaiting):
        trace = trace or Trace(run_id=event.run_id, name=event.name)
        return replace(trace, state="queued" if event.reason == "queued" else "waiting", question=event.question)
    if isinstance(event, ev.RunStarted):
        return replace(trace or Trace(run_id=event.run_id, name=event.name), state="running", question="")
    if trace is None:
        return None
    match event:
        case ev.RunStepStarted():
            started = Attempt(step=event.step, attempt=event.attempt, action=event.action, target=event.target, started_at=at)
            return replace(_running(trace), attempts=(*trace.attempts, started)[-ATTEMPTS_KEPT:])
        case ev.RunStepSkipped():
            skipped = Attempt(step=event.step, attempt=0, action="", state="skipped", started_at=at, ended_at=at)
            return replace(trace, attempts=(*trace.attempts, skipped)[-ATTEMPTS_KEPT:])
        case ev.RunStepCompleted():
            return _ended(_running(trace), event.step, event.attempt, at, "completed", None)
        case ev.RunStepFailed():
            return _ended(_running(trace), event.step, event.attempt, at, "failed" if event.known else "interrupted", event.error)
        case ev.RunCompleted():
            return replace(trace, state="completed", result=event.result, question="")
        case ev.RunFailed():
            return replace(trace, state="failed", error=event.error, question="")
        case ev.RunCancelled():
            return replace(trace, state="cancelled", reason=event.reason, question="")
    return trace


def of(run: Run) -> tuple[State, str, tuple[tuple[str, int], ...]]:
    """Return the state, the question and the open steps of a live run, as its trace has them."""
    phase = run.phase
    question = phase.question if isinstance(phase, Asking | Deciding) else phase.held if isinstance(phase, Calling | Stopping) else ""
    if isinstance(phase, Confirming):
        return "waiting", f"Shall I run {run.name}? Please say yes or no.", ()
    frames = run.frames if run.is_open else run.frames[:-1]
    return "waiting" if question else "running", question, tuple((frame.path, frame.attempt) for frame in frames)


def _running(trace: Trace) -> Trace:
    return replace(trace, state="running", question="") if trace.state == "waiting" else trace


def _ended(trace: Trace, step: str, attempt: int, at: int, state: Any, error: Failure | None) -> Trace:
    attempts = tuple(
        replace(one, state=state, ended_at=at, error=error) if (one.step, one.attempt, one.state) == (step, attempt, "running") else one
        for one in trace.attempts
    )
    return replace(trace, attempts=attempts)
