"""Segmenter, which cuts a growing reply into pieces that can be spoken. Pure. `speakable` spells out the figures in a piece.

The first piece is cut early, at a clause, because it determines when the user hears something.
"""

from __future__ import annotations

import re
from typing import Final

from voxbridge.services.voice.speakable.markup import bare, unmarked

FIRST_CLAUSE: Final = 18
"""Characters after which the first piece may end at a comma."""

LONGEST: Final = 280
"""Characters of the longest piece; longer text is cut at a space."""

_SENTENCE_END: Final = re.compile(r"[.!?…]+[\"'”’)\]]*(?=\s)|\n+|[。！？]")
_CLAUSE_END: Final = re.compile(r"[,;:–—](?=\s)")
_ABBREVIATIONS: Final = frozenset({"mr.", "mrs.", "ms.", "dr.", "st.", "vs.", "e.g.", "i.e.", "etc.", "no.", "approx.", "a.m.", "p.m."})


def cut(text: str, *, first: bool) -> tuple[list[str], str]:
    """Split complete pieces off `text`. Return `(pieces, rest)`. `first` allows a clause as the first piece."""
    pieces: list[str] = []
    while True:
        end = _end_of_piece(text, first=first and not pieces)
        if end is None:
            return pieces, text
        piece, text = text[:end], text[end:].lstrip()
        if piece.strip():
            pieces.append(piece.strip())


def written(text: str) -> str:
    """Return a piece as it is shown and remembered: without markup and pictures, figures unchanged; empty if nothing is left to say."""
    return " ".join(bare(unmarked(text)).split())


def _end_of_piece(text: str, *, first: bool) -> int | None:
    for match in _SENTENCE_END.finditer(text):
        words = text[: match.end()].split()
        if words and words[-1].lower() not in _ABBREVIATIONS and not re.fullmatch(r"\d+\.", words[-1]):
            return match.end()
    if first:
        for match in _CLAUSE_END.finditer(text):
            if match.end() >= FIRST_CLAUSE:
                return match.end()
    if len(text) > LONGEST:
        space = text.rfind(" ", 0, LONGEST)
        return space if space > 0 else LONGEST
    return None
