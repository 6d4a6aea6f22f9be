"""Outputs of runs, beside events to append."""

from __future__ import annotations

from typing import Any

import msgspec

from voxbridge.shared.events.voice import Failure
from voxbridge.shared.step.fold import Append


class StartCall(msgspec.Struct, frozen=True, kw_only=True):
    """Make this call. An id names one attempt of one step, so a call that is asked for again under its id is the same call."""

    run_id: str
    call_id: str
    function: str
    arguments: dict[str, Any]
    timeout_s: float | None


class CancelCall(msgspec.Struct, frozen=True):
    """Stop a call of a run, whatever its effect."""

    run_id: str
    call_id: str


class SetTimer(msgspec.Struct, frozen=True):
    """Deliver `TimerFired` at `at` µs; replaces the run's previous timer."""

    run_id: str
    at: int


class CancelTimer(msgspec.Struct, frozen=True):
    """Cancel the timer of a run."""

    run_id: str


class Refused(msgspec.Struct, frozen=True):
    """Report that the run was not started, and never will be."""

    run_id: str
    error: Failure


class Finished(msgspec.Struct, frozen=True):
    """Report that the run has ended: with its result, its error, or the reason why it was cancelled."""

    run_id: str
    outcome: dict[str, Any] | Failure | None
    reason: str = ""


Output = Append | StartCall | CancelCall | SetTimer | CancelTimer | Refused | Finished
