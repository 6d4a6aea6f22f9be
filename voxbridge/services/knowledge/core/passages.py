"""Passages of a document: pieces that are short enough to be shown and spoken about, each with the headings that it stands under. Pure.

Owns where a passage begins and ends: at a heading, else between paragraphs, else between sentences, else between words. The same text gives
the same passages.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from voxbridge.shared.sections import sections

TARGET: Final = 600
"""Characters after which a passage ends where it can."""

LIMIT: Final = 900
"""Characters of a passage."""

_PARAGRAPHS: Final = re.compile(r"\n[ \t]*\n+")
_SENTENCE_END: Final = re.compile(r"(?<=[.!?])[\"')\]]*\s+")


@dataclass(frozen=True, slots=True)
class Passage:
    """A passage: the headings from the outermost in, the line of the innermost (from 1), and its text."""

    headings: tuple[str, ...]
    line: int
    text: str


def passages(title: str, text: str) -> list[Passage]:
    """Return the passages of a text in their order. What stands before the first heading is below the title; a heading with
    nothing below it is a passage of its own."""
    found: list[Passage] = []
    for section in sections(title, text, limit=len(text), bare=True):
        found += [Passage(section.headings, section.line, piece) for piece in _pieces(section.text)]
    return found


def _pieces(text: str) -> list[str]:
    """Put paragraphs together up to `TARGET`, and divide those that are longer than `LIMIT`."""
    found: list[str] = []
    piece = ""
    for part in _parts(text):
        if piece and len(piece) + len(part) + 2 > TARGET:
            found.append(piece)
            piece = part
        else:
            piece = f"{piece}\n\n{part}" if piece else part
    return [*found, piece] if piece else found


def _parts(text: str) -> list[str]:
    found: list[str] = []
    for paragraph in _PARAGRAPHS.split(text):
        found += [paragraph.strip()] if len(paragraph) <= LIMIT else _sentences(paragraph)
    return [part for part in found if part]


def _sentences(paragraph: str) -> list[str]:
    found: list[str] = []
    piece = ""
    for sentence in _SENTENCE_END.split(paragraph):
        for part in _cut(sentence.strip()):
            if piece and len(piece) + len(part) + 1 > TARGET:
                found.append(piece)
                piece = part
            else:
                piece = f"{piece} {part}" if piece else part
    return [*found, piece]


def _cut(sentence: str) -> list[str]:
    """Divide a sentence that is longer than `LIMIT` between words, or anywhere where it has none."""
    found: list[str] = []
    while len(sentence) > LIMIT:
        at = sentence.rfind(" ", 1, LIMIT)
        at = at if at > 0 else LIMIT
        found.append(sentence[:at])
        sentence = sentence[at:].lstrip()
    return [*found, sentence] if sentence else found
