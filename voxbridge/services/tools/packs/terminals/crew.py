"""News of programs in terminals that nobody asked for: one asks something, is done with its work, or has ended. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Final

from voxbridge.shared.terminals.model import Card

LONG_S: Final = 10
"""Seconds that a command of a shell takes at least before its end is told."""

WORDS: Final = 150
"""Characters that are told of what a program asks."""

TOLD: Final = 3
"""Programs that are told of at a time; the others are counted."""

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
