"""Error policies: the consequence of a failed attempt, by the policy of its step or of its document. Pure."""

from __future__ import annotations

from typing import Final

import msgspec

from voxbridge.services.tools.runs.document import Fallback, OnError, Retry
from voxbridge.services.tools.runs.state import Frame
from voxbridge.shared.errors import Code
from voxbridge.shared.events.voice import Failure

ATTEMPTS_LIMIT: Final = 10
"""Attempts of one step, also by a person's word."""

PAUSE_LIMIT_US: Final = 60_000_000
"""Longest pause before a further attempt, in µs."""

PERMANENT: Final = frozenset({Code.INVALID_ARGUMENT, Code.NOT_FOUND, Code.PERMISSION_DENIED, Code.TOO_LARGE, Code.CANCELLED})
"""Errors that a further attempt would meet again, or that a person wanted."""


class Again(msgspec.Struct, frozen=True):
    """Try the step again, after a pause."""

    after_us: int


class Substitute(msgspec.Struct, frozen=True):
    """Run the step's fallback."""


class GoOn(msgspec.Struct, frozen=True):
    """Leave the step failed and run the next."""


class AskUser(msgspec.Struct, frozen=True):
    """Ask the user how to go on."""

    question: str


class GiveUp(msgspec.Struct, frozen=True):
    """End the document as failed."""


Verdict = Again | Substitute | GoOn | AskUser | GiveUp


def policy_of(frame: Frame) -> OnError:
    """Return the error policy of the step that is reached."""
    return frame.step.on_error if frame.step.on_error is not None else frame.document.on_error


def verdict(frame: Frame, error: Failure, *, known: bool) -> Verdict:
    """Return what follows from a failed attempt.

    Where it is not `known` how far a call came it may have taken effect, so neither a further attempt nor a fallback is made without a
    person's word.
    """
    policy = policy_of(frame)
    if isinstance(policy, Retry):
        if known and error.code not in PERMANENT and frame.attempt <= policy.n:
            return Again(min(round(policy.backoff_s * 1_000_000) << (frame.attempt - 1), PAUSE_LIMIT_US))
        policy = policy.then
    if isinstance(policy, Fallback):
        return Substitute() if known and not frame.substituted else GiveUp()
    if policy == "continue":
        return GoOn()
    if policy == "ask":
        return AskUser(_question(frame, error, known=known))
    return GiveUp()


def _question(frame: Frame, error: Failure, *, known: bool) -> str:
    step = frame.step.id.replace("_", " ")
    what = f"The step {step} failed: {error.message}" if known else f"It is not known whether the step {step} took effect."
    return f"{what} Shall I try it again, go on without it, or stop?"
