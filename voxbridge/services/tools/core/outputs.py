"""Outputs of the tools core, beside events to append."""

from __future__ import annotations

from typing import Any

import msgspec

from voxbridge.services.tools.core.inputs import TaskEnd, UndoEntry
from voxbridge.shared import events
from voxbridge.shared.step.fold import Append


class Resolve(msgspec.Struct, frozen=True):
    """Look the function up and check its arguments: answered by `Accepted` or `Rejected`."""

    call_id: str
    name: str
    arguments: dict[str, Any]
    account: str
    allowed: tuple[str, ...] | None = None
    """Functions that the caller may call, where it matters; None stands for all."""

    unattended: bool = False
    """True where nobody can be asked for approval."""


class StartEffect(msgspec.Struct, frozen=True):
    """Run the function now: the log has acknowledged its start."""

    call_id: str
    attempt: int
    name: str
    arguments: dict[str, Any]
    account: str
    definition: str = ""
    """Digest of the function that a person approved; empty where nobody was asked."""

    allowed: tuple[str, ...] | None = None
    time_zone: str = ""


class CancelEffect(msgspec.Struct, frozen=True):
    """Stop the function, if it runs here."""

    call_id: str


class SetTimer(msgspec.Struct, frozen=True):
    """Deliver `TimerFired` at `at` µs; replaces the call's previous timer."""

    call_id: str
    at: int


class CancelTimer(msgspec.Struct, frozen=True):
    """Cancel the timer of a call."""

    call_id: str


class Grant(msgspec.Struct, frozen=True):
    """Keep a standing approval of an account: for a function, or only for these arguments of it."""

    approval_id: str
    account: str
    name: str
    arguments: dict[str, Any] | None
    definition: str = ""


class Tell(msgspec.Struct, frozen=True):
    """Put an end that this session did not tell into the log of its account: answered by `Passed`."""

    end: TaskEnd


class Remember(msgspec.Struct, frozen=True):
    """Put a call that can be taken back into the log of its account: answered by `UndoKept`."""

    entry: UndoEntry


class Count(msgspec.Struct, frozen=True):
    """Count a call among the tasks of its account. One that is not `forced` waits for the answer, which is `Counted`; a timer is `listed`
    and takes up no room."""

    account: str
    call_id: str
    forced: bool = False
    listed: bool = False


class Release(msgspec.Struct, frozen=True):
    """Count a task of an account no longer: it is over."""

    account: str
    call_id: str


class StepEnded(msgspec.Struct, frozen=True):
    """Tell a run how a call that is one of its steps ended. The step of a session settles it (`core/runs.py`); it never leaves the core."""

    run_id: str
    call_id: str
    event: events.Event


class Done(msgspec.Struct, frozen=True):
    """Acknowledge the event at this log position: its work is complete, and it need not be delivered again."""

    seq: int


Output = (
    Append | Resolve | StartEffect | CancelEffect | SetTimer | CancelTimer
    | Grant | Tell | Remember | Count | Release | StepEnded | Done
)  # fmt: skip
