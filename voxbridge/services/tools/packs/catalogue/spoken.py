"""Lists and names as people say them."""

from __future__ import annotations

import difflib
import re
from collections.abc import Sequence
from typing import Final

_CLOSE: Final = 0.6
_AHEAD: Final = 0.05
"""Similarity by which the best name must be ahead of the next."""


def listed(names: Sequence[str], most: int = 12) -> str:
    """Return names as a sentence says them, at most so many, and how many more there are."""
    shown = list(names[:most])
    if len(names) > most:
        shown.append(f"{len(names) - most} more")
    return shown[0] if len(shown) == 1 else f"{', '.join(shown[:-1])} and {shown[-1]}" if shown else "nothing"


def match(said: str, names: Sequence[str]) -> str | None:
    """Return the name that was meant: the same, the one that shares most words, or the closest; None if none or several fit."""
    wanted = _plain(said)
    for name in names:
        if _plain(name) == wanted:
            return name
    words = set(wanted.split())
    shared = sorted(((len(words & set(_plain(name).split()) - {"the"}), name) for name in names), reverse=True)
    if shared and shared[0][0] and (len(shared) == 1 or shared[0][0] > shared[1][0]):
        return shared[0][1]
    close = sorted(((difflib.SequenceMatcher(None, wanted, _plain(name)).ratio(), name) for name in names), reverse=True)
    if not close or close[0][0] < _CLOSE or (len(close) > 1 and close[0][0] - close[1][0] < _AHEAD):
        return None
    return close[0][1]


def _plain(text: str) -> str:
    return " ".join(re.findall(r"[a-z0-9]+", text.casefold()))
