"""Length of a spoken reply: a small model that talks on, or in circles, is stopped at a whole sentence. Pure.

Owns what is too much. A reply of the installation's own model has so many sentences unless its user asked for something long; a reply of
any model ends where it says again what it said.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

SENTENCES_LIMIT: Final = 3
"""Sentences of a reply of the installation's own model."""

SAME_WORDS: Final = 4
"""Words of a sentence that counts as said again."""

BEGINNINGS: Final = 3
"""Words with which sentences of a list begin alike, and the number of such sentences that are said."""

TIMES: Final = 3
"""Times that a few words may stand behind each other: "no, no, no"."""

_GRAMS: Final = range(2, 9)
_ENDS: Final = re.compile(r"[.!?…。！？।؟][\"'”’»)\]]*$")
_LONG: Final = re.compile(
    r"\b(?:stor(?:y|ies)|tales?|poems?|songs?|lyrics|jokes?|riddles?|explain|describe|details?|detailed|everything|steps?|recipes?|essay|speech|lists?"
    r"|summar\w*|long|longer|length|depth|paragraphs?|recite|read|translate|write|quote|compare|difference|how does|how do i|why"
    r"|geschichten?|märchen|gedichte?|lied|witze?|erklär\w*|beschreib\w*|ausführlich\w*|schritte?|rezepte?|liste|lang|länger|lies|übersetz\w*|warum"
    r"|histoires?|poèmes?|chanson|blagues?|expliqu\w*|décri\w*|détails?|étapes|recettes?|pourquoi"
    r"|historias?|cuentos?|poemas?|canción|chistes?|explica\w*|describ\w*|detalles?|pasos|recetas?|lista"
    r"|storie|storia|poesie?|canzone|barzellett\w|spiega\w*|descriv\w*|dettagli\w*|passi|ricett\w|elenco|perché"
    r"|histórias?|canção|piadas?|descrev\w*|detalhes?|passos|receitas?)\b"
    r"|\b(?:count|name|list|give me|tell me)\b.*\b(?:\d+|four|five|six|seven|eight|nine|ten|twelve|fifteen|twenty|thirty|hundred|many)\b"
    r"|\b(?:\d+|four|five|six|seven|eight|nine|ten|twenty|many)\s+(?:sentences|things|reasons|ways|examples|words|facts|ideas|tips|items)\b",
    re.IGNORECASE,
)


def is_long(said: str) -> bool:
    """Tell whether a user asked for something that takes more than a few sentences."""
    return _LONG.search(said) is not None


def kept(said: Sequence[str], pieces: Sequence[str], *, most: int | None) -> tuple[list[str], bool]:
    """Return the pieces that are to be said after those that were, and whether the reply is over with them. `most` is the number of its
    sentences; None for any."""
    found: list[str] = []
    for piece in pieces:
        before = [*said, *found]
        if most is not None and sum(_ENDS.search(one) is not None for one in before) >= most:
            return found, True
        if _again(before, piece):
            return found, True
        once = _once(piece)
        found.append(once)
        if once != piece:
            return found, True
    return found, False


def _again(before: Sequence[str], piece: str) -> bool:
    """Tell whether a piece says what was said, or is one more of a list of sentences that begin alike."""
    words = _words(piece)
    if len(words) >= SAME_WORDS and any(words == _words(one) for one in before):
        return True
    alike = [one for one in before if len(words) > BEGINNINGS and _words(one)[:BEGINNINGS] == words[:BEGINNINGS]]
    return len(alike) >= BEGINNINGS


def _once(piece: str) -> str:
    """Return a piece to the end of the first of a few words that stand behind each other again and again."""
    parts = piece.split()
    words = [part.strip(".,;:!?…\"'").casefold() for part in parts]
    for size in _GRAMS:
        for at in range(len(words) - size * (TIMES + 1) + 1):
            gram = words[at : at + size]
            if all(words[at + size * time : at + size * (time + 1)] == gram for time in range(1, TIMES + 1)):
                return " ".join(parts[: at + size])
    return piece


def _words(text: str) -> list[str]:
    return re.findall(r"\w+", text.casefold())
