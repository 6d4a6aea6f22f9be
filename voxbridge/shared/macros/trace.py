"""The trace of a run, folded from its events alone: what each step came to, where the run stands, and what it waits for. Pure.

For those who show or list runs without the journal.
"""

from __future__ import annotations

from typing import Any, Final, Literal

import msgspec
from msgspec.structs import replace

from voxbridge.shared import events
from voxbridge.shared.events import tools as ev
from voxbridge.shared.events.voice import Failure

ATTEMPTS_KEPT: Final = 200
"""Attempts of steps in a trace."""

EXCERPT_CHARACTERS: Final = 1_000
"""Characters of arguments and of a result, as JSON, in a trace."""

RUN_EVENTS: Final = (
    *(ev.RunStarted, ev.RunStepStarted, ev.RunStepCompleted, ev.RunStepFailed, ev.RunStepSkipped),
    *(ev.RunWaiting, ev.RunCompleted, ev.RunFailed, ev.RunCancelled),
)

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
    given: str = ""
    """Its arguments, without pipes, as the beginning of their JSON."""

    result: str = ""
    """Its result, alike."""

    error: Failure | None = None


class Trace(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A run as its events tell it."""

    run_id: str
    name: str
    state: State = "running"
    kind: Literal["macro", "workflow"] = "macro"
    steps: int = 0
    inputs: dict[str, Any] = {}
    started_at: int = 0
    ended_at: int = 0
    step: str = ""
    """Step that waits for an answer."""

    waits_for: str = ""
    """Reason for which it waits: `queued`, `ask`, `error`, `approval`, `step` or `confirm`; empty unless it waits."""

    expires_at: int = 0
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
        state: State = "queued" if event.reason == "queued" else "waiting"
        return replace(
            trace, state=state, question=event.question, waits_for=event.reason, step=event.step, expires_at=event.expires_ts or 0
        )
    if isinstance(event, ev.RunStarted):
        trace = trace or Trace(run_id=event.run_id, name=event.name)
        return replace(_running(trace), state="running", kind=event.kind, steps=event.steps, inputs=event.inputs, started_at=at)
    if trace is None:
        return None
    match event:
        case ev.RunStepStarted(step=step, attempt=attempt, action=action, target=target, given=given):
            started = Attempt(step=step, attempt=attempt, action=action, target=target, started_at=at, given=given)
            return replace(_running(trace), attempts=(*trace.attempts, started)[-ATTEMPTS_KEPT:])
        case ev.RunStepSkipped():
            skipped = Attempt(step=event.step, attempt=0, action="", state="skipped", started_at=at, ended_at=at)
            return replace(_running(trace), attempts=(*trace.attempts, skipped)[-ATTEMPTS_KEPT:])
        case ev.RunStepCompleted(step=step, attempt=attempt, result=result):
            return _ended(_running(trace), (step, attempt), state="completed", ended_at=at, result=result)
        case ev.RunStepFailed(step=step, attempt=attempt, error=error, known=known):
            return _ended(_running(trace), (step, attempt), state="failed" if known else "interrupted", ended_at=at, error=error)
        case ev.RunCompleted():
            return replace(_running(trace), state="completed", result=event.result, ended_at=at)
        case ev.RunFailed():
            return replace(_running(trace), state="failed", error=event.error, ended_at=at)
        case ev.RunCancelled():
            return replace(_running(trace), state="cancelled", reason=event.reason, ended_at=at)
    return trace


def run_of(event: events.Event) -> str:
    """Return the id of the run that an event belongs to; empty for another event."""
    return event.run_id if isinstance(event, RUN_EVENTS) else ""


def excerpt(value: Any) -> str:
    """Return the beginning of a value's JSON."""
    text = msgspec.json.encode(value).decode()
    return text if len(text) <= EXCERPT_CHARACTERS else f"{text[:EXCERPT_CHARACTERS]}…"


def _running(trace: Trace) -> Trace:
    state: State = "running" if trace.state in ("waiting", "queued") else trace.state
    return replace(trace, state=state, question="", waits_for="", step="", expires_at=0)


def _ended(trace: Trace, which: tuple[str, int], **outcome: Any) -> Trace:
    attempts = tuple(
        replace(one, **outcome) if (one.step, one.attempt) == which and one.state == "running" else one for one in trace.attempts
    )
    return replace(trace, attempts=attempts)
