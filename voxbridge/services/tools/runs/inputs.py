"""Inputs of runs: their start and cancellation, the ends of the calls that they made, answers of people, and their timer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import msgspec

from voxbridge.services.tools.runs.document import Document
from voxbridge.shared.events.voice import Failure

Kind = Literal["macro", "workflow"]


class Start(msgspec.Struct, frozen=True, kw_only=True, tag="run_start", omit_defaults=True):
    """Start a document. `macros` holds all documents that it runs, by name, as they are now: a later change of one changes no run.

    `approved` says that a person has approved it before (for `confirm: first`), `unsure` that it was meant only probably, so that it is
    confirmed whatever its document says.
    """

    run_id: str
    document: Document
    kind: Kind = "macro"
    macros: Mapping[str, Document] = {}
    inputs: dict[str, Any] = {}
    approved: bool = False
    unsure: bool = False
    stepwise: bool = False
    """Ask the user before each step."""


class Returned(msgspec.Struct, frozen=True, kw_only=True, tag="run_returned"):
    """A call of the run returned its result."""

    run_id: str
    call_id: str
    result: dict[str, Any]


class Failed(msgspec.Struct, frozen=True, kw_only=True, tag="run_failed", omit_defaults=True):
    """A call of the run failed. Where it is not `known` how far it came, it is not repeated without a person's word."""

    run_id: str
    call_id: str
    error: Failure
    known: bool = True


class Held(msgspec.Struct, frozen=True, kw_only=True, tag="run_held"):
    """A call of the run waits for a person's approval."""

    run_id: str
    call_id: str
    question: str


class Confirmed(msgspec.Struct, frozen=True, kw_only=True, tag="run_confirmed"):
    """A person answered whether the run may begin."""

    run_id: str
    yes: bool


class Answered(msgspec.Struct, frozen=True, kw_only=True, tag="run_answered"):
    """The user answered the question of an `ask` step."""

    run_id: str
    text: str


class Decided(msgspec.Struct, frozen=True, kw_only=True, tag="run_decided"):
    """The user said how to go on after a failed step."""

    run_id: str
    choice: Literal["again", "go_on", "stop"]


class Stepped(msgspec.Struct, frozen=True, kw_only=True, tag="run_stepped"):
    """The user said whether the next step of a run that goes step by step may begin; one that may not is left out."""

    run_id: str
    yes: bool


class Cancel(msgspec.Struct, frozen=True, kw_only=True, tag="run_cancel"):
    """Cancel the run."""

    run_id: str
    reason: str


class Broken(msgspec.Struct, frozen=True, kw_only=True, tag="run_broken"):
    """An input of the run could not be taken; it ends there, as failed."""

    run_id: str
    error: Failure


class TimerFired(msgspec.Struct, frozen=True, kw_only=True, tag="run_timer"):
    """The timer of the run fired."""

    run_id: str


Input = Start | Returned | Failed | Held | Confirmed | Answered | Decided | Stepped | Cancel | Broken | TimerFired
