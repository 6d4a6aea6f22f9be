"""Segmenter, which cuts a growing reply into pieces that can be spoken. Pure. `speakable` spells out the figures in a piece.

Where a sentence ends is `sentencex`'s to say, which knows the abbreviations and the marks of 40 languages. A reply grows at its end, so a
sentence is over only when what follows cannot take that back: "It starts on Jan." may go on with "5". The first piece is cut early, at a
clause, because it determines when the user hears something.
"""

from __future__ import annotations

import re
from typing import Final

import sentencex

from voxbridge.services.voice.core import inputs

FIRST_CLAUSE: Final = 18
"""Characters after which the first piece may end at a comma."""

LONGEST: Final = 280
"""Characters of the longest piece; longer text is cut at a space."""

LANGUAGE: Final = "en"
"""Language of a reply of which nobody knows the language."""

_LINE_END: Final = re.compile(r"\n+")
_CLAUSE_END: Final = re.compile(r"[,;:–—،؛](?=\s)|[、，；：]")
_CLOSING: Final = re.compile(r"[\"'”’»)\]]+(?=\s)")
_NUMBER: Final = re.compile(r"\s*\d+[.)]")
"""Number of a point of a list, alone."""

_GOES_ON: Final = re.compile(r"(?:^|[\s(])(?:[^\W\d_]|dr|mr|mrs|ms|prof|st|mt|approx|vs|fig|डॉ|श्री)\.$", re.IGNORECASE)
"""End of a text that no sentence ends with, and that the library takes for one in some language: titles, and a letter alone."""

_QUOTES: Final = "\"'”’»)]」』"
_WHOLE: Final = ("!", "?", "。", "！", "？", "।", "॥", "؟", "۔")
"""Marks behind which a sentence is over."""

_WORD: Final = re.compile(r"\s*\S+\s")
_ORDINAL: Final = re.compile(r"\d\.\s*$")
"""A number before a word that nobody knows yet: "am 3." may go on with "Mai"."""

_PROBES: Final = ("5", "Aa", "aa")
"""Beginnings of what may follow."""

_PROBES_BEFORE: Final = _PROBES[:2]
"""Probes by which journals of before `GOES_ON` were cut."""

_SPACES: Final = {code: " " for code in range(0x80, 0x3001) if chr(code).isspace()}
"""Spaces of more than one byte, of which sentencex 1.0.32 panics before a full stop: "a\u00a0.". Each is replaced by one character."""


def cut(text: str, *, first: bool, language: str = "", rules: int = inputs.RULES) -> tuple[list[str], str]:
    """Split complete pieces off `text`. Return `(pieces, rest)`. `first` allows a clause as the first piece, `language` is a BCP 47 tag,
    `rules` are those of the session (`inputs`)."""
    pieces: list[str] = []
    while True:
        early = first and not pieces
        if rules < inputs.SENTENCES:
            end = _end_by_marks(text, first=early)
        else:
            end = _end_of_piece(text, language or LANGUAGE, rules, first=early)
        if end is None:
            return pieces, text
        piece, text = text[:end], text[end:].lstrip()
        if piece.strip():
            pieces.append(piece.strip())


def _end_of_piece(text: str, language: str, rules: int, *, first: bool) -> int | None:
    line = _LINE_END.search(text)
    sentence = _end_of_sentence(text, language, rules)
    ends = [end for end in (line and line.end(), sentence) if end is not None]
    return min(ends) if ends else _end_without_sentence(text, first=first)


def _end_of_sentence(text: str, language: str, rules: int) -> int | None:
    """Return the end of the first sentence that is certainly over."""
    end = 0
    for sentence in _sentences(text, language, rules):
        end += len(sentence)
        closed = _CLOSING.match(text, end)
        end = closed.end() if closed else end
        begun = text[:end]
        whole = end < len(text) and _is_whole(begun)
        known = whole or _WORD.match(text, end) is not None
        if _is_over(begun) and (known or _is_certain(begun, language, rules)):
            return end
        if closed or not known:  # the library found the next sentences at another place, or may find another end here
            return None
    return None


def _is_certain(text: str, language: str, rules: int) -> bool:
    """Tell whether a sentence ends with a text, whatever is said next."""
    if not text[-1].isspace() or _ORDINAL.search(text):
        return False
    probes = _PROBES if rules >= inputs.GOES_ON else _PROBES_BEFORE
    return _is_whole(text) or all(_sentences(text + probe, language, rules)[-1] == probe for probe in probes)


def _sentences(text: str, language: str, rules: int) -> list[str]:
    """Return the sentences of a text, as long as they stand in it."""
    found: list[str] = sentencex.segment(language, text.translate(_SPACES) if rules >= inputs.GOES_ON else text)
    return found


def _is_whole(text: str) -> bool:
    return text.rstrip().rstrip(_QUOTES).endswith(_WHOLE)


def _is_over(text: str) -> bool:
    said = text.strip()
    return _NUMBER.fullmatch(said) is None and _GOES_ON.search(said) is None


def _end_without_sentence(text: str, *, first: bool) -> int | None:
    if first:
        for match in _CLAUSE_END.finditer(text):
            if match.end() >= FIRST_CLAUSE:
                return match.end()
    if len(text) > LONGEST:
        space = text.rfind(" ", 0, LONGEST)
        return space if space > 0 else LONGEST
    return None


_MARKS: Final = re.compile(r"[.!?…]+[\"'”’)\]]*(?=\s)|\n+|[。！？]")
_ABBREVIATIONS: Final = frozenset({"mr.", "mrs.", "ms.", "dr.", "st.", "vs.", "e.g.", "i.e.", "etc.", "no.", "approx.", "a.m.", "p.m."})


def _end_by_marks(text: str, *, first: bool) -> int | None:
    for match in _MARKS.finditer(text):
        words = text[: match.end()].split()
        if words and words[-1].lower() not in _ABBREVIATIONS and not re.fullmatch(r"\d+\.", words[-1]):
            return match.end()
    return _end_without_sentence(text, first=first)
