"""Words of notes and questions as they are compared: in any script, without accents, case and common endings. Pure.

Scripts that put no spaces between words are compared by pairs of letters.
"""

from __future__ import annotations

import re
import unicodedata
from typing import Final

_EMPTY: Final = frozenset(
    re.findall(
        r"\S+",
        "a about an and any are at be can did do does for from had has have he her his i in is it its me my note notes of on or our "
        "remember she tell that the their them they this to was we were what when where which who with you your "
        "我的 你的 他的 她的 在哪 哪里 什么 怎么 是什 多少 です ます した どこ なに 私の 何の 내가 나의",
    )
)
"""Words and pairs of letters that say nothing of what is asked for."""

_ENDINGS: Final = (("ies", "y"), ("sses", "ss"), ("ing", ""), ("ed", ""), ("es", ""), ("s", ""))
_WITHOUT_SPACES: Final = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u1100-\u11ff\u3040-\u30ff\u3130-\u318f\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff]+"
)
"""Runs of Thai, Lao, Burmese, Khmer, Japanese and Chinese; of Korean too, whose words end in particles."""

_RELATED: Final = 5
_SHARE: Final = 0.7
"""Letters, and share of the longer word, with which two words of one kind begin alike: "allergic" and "allergy"."""


def stems(text: str) -> frozenset[str]:
    """Return the meaningful words of a text."""
    found: set[str] = set()
    for word in _words(text):
        rest = word
        for run in _WITHOUT_SPACES.findall(word):
            found |= {run[at : at + 2] for at in range(max(1, len(run) - 1))}
            rest = rest.replace(run, " ", 1)
        found |= {_stem(part) for part in rest.split() if part not in _EMPTY}
    return frozenset(found - _EMPTY)


def shared(wanted: frozenset[str], found: frozenset[str]) -> float:
    """Return how many of the words that are wanted were found; half of one that only begins like a word that was found."""
    same = wanted & found
    return len(same) + 0.5 * sum(any(_related(word, other) for other in found) for word in wanted - same)


def _words(text: str) -> list[str]:
    """Return the words: letters with the marks that belong to them, and figures. Of words with a hyphen also the whole: "Wi-Fi", "wifi"."""
    folded = unicodedata.normalize("NFC", text.casefold())
    kept = "".join(letter if unicodedata.category(letter)[0] in "LMN" or letter == "-" else " " for letter in folded)
    words: list[str] = []
    for word in kept.split():
        parts = [part for part in map(_without_accents, word.split("-")) if part]
        words += [*parts, "".join(parts)] if len(parts) > 1 else parts
    return words


def _without_accents(word: str) -> str:
    """Return a word of Latin, Greek or Cyrillic letters without accents; the marks of other scripts are letters of their own."""
    if not any(unicodedata.category(letter) == "Ll" for letter in word):
        return word
    return "".join(letter for letter in unicodedata.normalize("NFKD", word) if not unicodedata.combining(letter))


def _stem(word: str) -> str:
    for ending, instead in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            word = word.removesuffix(ending) + instead
            break
    return word.removesuffix("e") if len(word) > 3 else word


def _related(word: str, other: str) -> bool:
    length = next((at for at, (one, two) in enumerate(zip(word, other, strict=False)) if one != two), min(len(word), len(other)))
    return length >= _RELATED and length >= _SHARE * max(len(word), len(other))
