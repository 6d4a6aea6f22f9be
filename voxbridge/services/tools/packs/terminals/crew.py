"""News of programs in terminals that nobody asked for: one asks something, is done with its work, or has ended. Pure."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from typing import Final, NamedTuple

from msgspec.structs import replace

from voxbridge.shared.terminals.model import Card, State

LONG_S: Final = 10
"""Seconds that a command of a shell takes at least before its end is told."""

WORDS: Final = 150
"""Characters that are told of what a program asks."""

TOLD: Final = 3
"""Programs that are told of at a time; the others are counted."""

AGAIN_S: Final = 300.0
"""Seconds after which a question that a program still asks is put to the user once more."""

_PHASES: Final = {
    "starting": "is starting", "idle": "is idle", "working": "is working", "done": "is done", "dead": "has ended", "unknown": "is unknown",
}  # fmt: skip
_ASKS: Final = {"permission": "asks for permission", "auth": "wants a password"}


def doing(card: Card) -> str:
    """Return what the program of a terminal does, as it is told behind its name."""
    if card.state.phase == "blocked":
        question = f": {card.state.words}" if card.state.words and card.state.reason != "auth" else ""
        return f"{_ASKS.get(card.state.reason, 'asks something')}{question}"
    if card.state.phase == "done" and card.state.reason == "error":
        return "is done, with an error"
    return _PHASES[card.state.phase]


def asking(before: Mapping[str, Card], now: Sequence[Card]) -> list[Card]:
    """Return the coding agents that ask what a yes answers, and did not before."""
    return [card for card in now if card.kind == "agent" and card.state.reason == "permission" and _is_news(before.get(card.id), card)]


class _Put(NamedTuple):
    question: tuple[int, str]
    again_at: float


class Reminders:
    """Reminders of what programs ask: once, `AGAIN_S` after it was put to the user, if it is still asked then."""

    def __init__(self) -> None:
        self._put: dict[str, _Put] = {}

    def due(self, now: Sequence[Card], at_s: float) -> list[Card]:
        """Return the terminals whose question is to be put again at a time (seconds of any steady clock)."""
        put: dict[str, _Put] = {}
        due: list[Card] = []
        for card in now:
            if card.state.phase != "blocked":
                continue
            question = _question(card.state)
            known = self._put.get(card.id)
            if known is None or known.question != question:
                known = _Put(question, at_s + AGAIN_S)
            elif at_s >= known.again_at:
                due.append(card)
                known = _Put(question, math.inf)
            put[card.id] = known
        self._put = put
        return due


def unasked(card: Card) -> Card:
    """Return a terminal as it was before its program asked."""
    return replace(card, state=replace(card.state, phase="working"))


def _question(state: State) -> tuple[int, str]:
    return state.since, state.words


def report(before: Mapping[str, Card], now: Sequence[Card], asked: Collection[str] = (), *, since: int = 0) -> str:
    """Return what is told of the difference between two lists of terminals, before by id, but of those that are asked about; empty for
    nothing. `since`: the time (µs) at which the watch began.

    Told are a question, what a program says to the officer, the end of a coding agent's turn or of a long command that nobody has looked
    at since, and the end of a program.
    What only silence says is a guess and is not told.
    """
    news = [f"{card.name} {doing(card)[:WORDS]}." for card in now if card.id not in asked and _is_news(before.get(card.id), card)]
    news += [_said(card) for card in now if card.said.at > max(since, before[card.id].said.at if card.id in before else 0)]
    more = f" And {len(news) - TOLD} more." if len(news) > TOLD else ""
    return " ".join(news[:TOLD]) + more


def _said(card: Card) -> str:
    by = f", for {card.said.by}" if card.said.by and card.said.by.casefold() != card.name.casefold() else ""
    return f"{card.name} says{by}: {card.said.text}"


def _is_news(before: Card | None, card: Card) -> bool:
    state = card.state
    was = before.state if before is not None and before.run == card.run else None
    if state.phase == "blocked":
        return was is None or was.phase != "blocked" or (was.words, was.reason) != (state.words, state.reason)
    if was is None or state.source == "silence":
        return False
    if state.phase == "dead":
        return was.phase != "dead"
    if state.phase not in ("done", "idle") or (state.phase == "done" and card.seen):
        return False
    if card.kind == "agent":  # a short turn may have begun and ended since
        return state.phase == "done" and (was.phase != "done" or was.since != state.since)
    return was.phase == "working" and state.since - was.since >= LONG_S * 1_000_000
