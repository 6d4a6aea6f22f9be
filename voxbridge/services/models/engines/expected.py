"""The names that a prompt leads a recogniser to expect, as in "Tell Claude, in Build." Pure."""

from __future__ import annotations

import re
from typing import Final

SHORTEST: Final = 3
"""Letters that a name has at least: shorter ones are heard everywhere."""

_WORD: Final = re.compile(r"[^\W_]+")
_PLACED: Final = "in"
"""Word before the name of a place, which may begin with a small letter."""


def names(prompt: str) -> frozenset[str]:
    """Return the names in a prompt, in small letters: words with a capital, of which the first one begins a phrase and counts only if it
    is by itself, and those behind "in"."""
    found = set[str]()
    for phrase in re.split(r"[,.;:!?]", prompt):
        words = _WORD.findall(phrase)
        placed = words[:1] == [_PLACED]
        found.update(word for at, word in enumerate(words) if (placed and at) or (word[0].isupper() and (at or len(words) == 1)))
    return frozenset(word.casefold() for word in found if len(word) >= SHORTEST)


def has_one(text: str, expected: frozenset[str]) -> bool:
    """Tell whether one of the names stands in a text."""
    return not expected.isdisjoint(word.casefold() for word in _WORD.findall(text))
