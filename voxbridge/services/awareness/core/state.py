"""The screen of one account: the projection of what clients reported and how calls ended. Immutable."""

from __future__ import annotations

from typing import Final

import msgspec

from voxbridge.shared.awareness.view import ERRORS, FACTS, NOTHING, PAGES, Fact, Problem, View, Visit

OWNER: Final = "~local"
VISITS_KEPT: Final = 50
PROBLEMS_KEPT: Final = 20
FACTS_KEPT: Final = 20
COUNTED_PAGES: Final = 100
"""Pages of which visits are counted."""

ENDS_REMEMBERED: Final = 256
"""Ends of calls that are remembered, so that one which is delivered again counts once; more than may be delivered at a time."""


class Erasure(msgspec.Struct, frozen=True):
    """Sources of which everything up to a position is to be erased."""

    sources: tuple[str, ...]
    up_to: int


class State(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The projection; lists are newest first."""

    apart: bool = False
    """True for an account that several people may share: an agent is then told what came from its own session alone."""

    visits: tuple[Visit, ...] = ()
    problems: tuple[Problem, ...] = ()
    facts: tuple[Fact, ...] = ()
    counts: dict[str, int] = {}
    """Visits by page."""

    off: tuple[str, ...] = ()
    """Sources of which nothing is kept."""

    taken: int = 0
    """Position of the last report of a client that was taken."""

    ends: tuple[str, ...] = ()
    """The last ends of calls that were taken, by session and position."""

    told: View = NOTHING
    """Entries as `awareness.changed` said them last."""

    erasing: tuple[Erasure, ...] = ()
    """Sources that are still to be erased."""

    inputs: int = 0
    """Inputs since the log was erased the last time."""

    since: int = 0
    """Time of the first of them, µs."""


def initial(log_id: str) -> State:
    """Return the state before the first input. The owner of the machine is one person, whatever session is open; an account that access
    tokens are given for may be that of a company."""
    return State(apart=log_id != OWNER)


def view(state: State) -> View:
    """Return the entries that an agent is told, or those of all sessions, of which each agent is told its own."""
    if state.apart:
        return View(pages=state.visits, errors=state.problems, context=state.facts)
    return View(pages=state.visits[:PAGES], errors=state.problems[:ERRORS], context=state.facts[:FACTS])
