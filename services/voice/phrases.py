"""Cutting a growing reply into pieces that can be spoken, and text into what a voice should say.

The first piece is cut early, at a clause, because it decides when the user hears something.
"""

from __future__ import annotations

import re
from typing import Final

FIRST_CLAUSE: Final = 18
"""Characters after which the first piece may end at a comma."""

LONGEST: Final = 280
"""Characters of the longest piece; a longer one is cut at a space."""

_SENTENCE_END: Final = re.compile(r"[.!?…]+[\"'”’)\]]*(?=\s)|\n+|[。！？]")
_CLAUSE_END: Final = re.compile(r"[,;:–—](?=\s)")
_ABBREVIATIONS: Final = frozenset({"mr.", "mrs.", "ms.", "dr.", "st.", "vs.", "e.g.", "i.e.", "etc.", "no.", "approx.", "a.m.", "p.m."})
_LINK: Final = re.compile(r"\[([^\]]*)\]\([^)]*\)")
_MARKUP: Final = re.compile(r"[*_`#>|~]+|^\s*[-•]\s+", re.MULTILINE)
_SILENT: Final = re.compile("[\U0001f000-\U0001faff\u2600-\u27bf\ufe0f\u200d]")


def cut(text: str, *, first: bool) -> tuple[list[str], str]:
    """Split what is complete off `text`: `(pieces, rest)`. `first` allows a clause as the first piece."""
    pieces: list[str] = []
    while True:
        end = _end_of_piece(text, first=first and not pieces)
        if end is None:
            return pieces, text
        piece, text = text[:end], text[end:].lstrip()
        if piece.strip():
            pieces.append(piece.strip())


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


def speakable(text: str) -> str:
    """The text without what a voice would stumble over: markup, links, emoji."""
    text = _LINK.sub(r"\1", text)
    text = _MARKUP.sub("", text)
    text = _SILENT.sub("", text)
    return " ".join(text.split())
