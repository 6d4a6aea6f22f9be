"""The terminal that is meant by what was said of it. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from difflib import SequenceMatcher
from typing import Final

from voxbridge.shared.errors import Code, VoxbridgeError
from voxbridge.shared.terminals.model import Card

CLOSE: Final = 0.75
"""Likeness from which a name counts as misheard, where no other one comes near."""

FAINT: Final = 0.65
UNLIKE: Final = 0.45
"""Likeness from which it does where all others are no more alike than this: Claude was heard as "quad" and "card"."""

_PLACES: Final = {"first": 0, "left": 0, "second": 1, "right": -1, "third": 2, "fourth": 3, "last": -1}
_SOUNDS: Final = (
    ("ph", "f"),
    ("ck", "k"),
    ("x", "ks"),
    ("c", "k"),
    ("q", "k"),
    ("z", "s"),
    ("y", "i"),
    ("aw", "au"),
    ("ow", "au"),
    ("ou", "au"),
    ("w", "u"),
)
_CONDITION: Final = re.compile(
    r"(?:^|[.;:!?,]\s|\s(?=(?:and|then|but)\s))"
    r"(?=(?P<clause>(?:(?:and|then|but)\s+)*(?:when|whenever|once|as soon as|after)\s+(?P<of>[^.;:!?]+)))",
    re.IGNORECASE,
)
"""Clause with a condition, up to the end of its sentence."""

_EMPTY: Final = re.compile(r"\b(?:the|terminal|window|pane|one|program|in|my)\b")


def find(cards: Sequence[Card], said: str) -> Card:
    """Return the terminal that is meant: by its id, its name, its program, its place, or a name that sounds alike; of nothing, the active
    one. Raises `NOT_FOUND` with the names that there are, `CONFLICT` where it could be several."""
    if not cards:
        raise VoxbridgeError(Code.NOT_FOUND, "There is no terminal. Start one first.", field="terminal")
    wanted = _plain(said)
    if not wanted or wanted in ("active", "current", "this", "that"):
        return _active(cards)
    for names in (_names, _programs):
        found = [card for card in cards if wanted in names(card)]
        if found:
            return _only(found, said)
    if wanted in _PLACES and -len(cards) <= _PLACES[wanted] < len(cards):
        return cards[_PLACES[wanted]]
    found = [card for card in cards if any(wanted in name or name in wanted for name in _names(card))]
    if found:
        return _only(found, said)
    near = sorted(((_likeness(card, wanted), card.id) for card in cards), reverse=True)
    best, second = near[0][0], near[1][0] if len(near) > 1 else 0.0
    if (best >= CLOSE and second < best - 0.1) or (best >= FAINT and second <= UNLIKE):
        return next(card for card in cards if card.id == near[0][1])
    message = f"There is no terminal {said[:64]!r}. There {'is' if len(cards) == 1 else 'are'} {listed(cards)}."
    raise VoxbridgeError(Code.NOT_FOUND, message, field="terminal")


def listed(cards: Sequence[Card]) -> str:
    """Return the names as they are told."""
    names = [card.name for card in cards]
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def condition(cards: Sequence[Card], card: Card, text: str) -> str:
    """Return the clause of a text for `card` that says what is to happen when another agent has done something; "" if there is none. Only
    who gives the orders can see to that, so the clause was meant for them, and was not understood. A shell that is called build is another
    matter: an agent may well be told what to do when the build is done."""
    others = {name for other in cards if other.id != card.id and other.kind == "agent" for name in _names(other)} - set(_names(card))
    for found in _CONDITION.finditer(text):
        subject = f"{_plain(found['of'])} "
        if any(subject.startswith(f"{name} ") for name in others if name):
            return found["clause"].strip()
    return ""


def _active(cards: Sequence[Card]) -> Card:
    active = [card for card in cards if card.active]
    return active[0] if len(active) == 1 else _only(cards, "")


def _only(found: Sequence[Card], said: str) -> Card:
    if len(found) > 1:
        which = f"{said[:64]!r} could be" if said else "Say which terminal is meant:"
        raise VoxbridgeError(Code.CONFLICT, f"{which} {listed(found)}.", field="terminal")
    return found[0]


def _names(card: Card) -> tuple[str, ...]:
    return (card.id, _plain(card.name))


def _programs(card: Card) -> tuple[str, ...]:
    return (card.definition, card.kind)


def _likeness(card: Card, wanted: str) -> float:
    heard = _sound(wanted)
    known = [_sound(name) for name in (*_names(card), card.definition)]
    pairs = [(name, heard) for name in known] + [(name.removesuffix("e"), heard.removesuffix("e")) for name in known]
    return max(SequenceMatcher(None, *pair).ratio() for pair in pairs)


def _sound(name: str) -> str:
    """Return a name about as it sounds: a recogniser writes Codex as codecs, and Claude as cloud."""
    for letters, sound in _SOUNDS:
        name = name.replace(letters, sound)
    return re.sub(r"(.)\1", r"\1", name)


def _plain(said: str) -> str:
    return " ".join(_EMPTY.sub(" ", said.casefold().replace("'s", "")).split()) or ""
