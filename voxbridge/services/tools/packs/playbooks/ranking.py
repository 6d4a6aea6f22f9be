"""Ranking of texts by the words of a question: BM25 over headings and text. Pure.

Owns the words and the weights. The words of a section's own heading count five times, and a heading that has all of the question's words
doubles the score. A word's plural and its other common endings count as the word.
"""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Sequence
from typing import Final

K1: Final = 1.2
B: Final = 0.75
HEADING_WEIGHT: Final = 5
QUERY_WORDS: Final = 32
"""Words of a question that count."""

_WORD: Final = re.compile(r"[^\W_]+")
_ENDINGS: Final = ("ings", "ing", "ies", "ed", "es", "s")
_COMMON_WORDS: Final = """
a an and are as at be been but by can could did do does for from had has have how i if in into is it its me my no not of on or our
please should so tell than that the their them then there these they this to us was we were what when where which who why will
with would you your
"""
_COMMON: Final = frozenset(re.findall(r"\w+", _COMMON_WORDS))


class Ranking:
    """An index over texts, each given with its own heading."""

    def __init__(self, texts: Sequence[tuple[str, str]]) -> None:
        self._found: dict[str, list[tuple[int, int]]] = defaultdict(list)
        self._lengths: list[int] = []
        self._headings = [frozenset(words(heading)) for heading, _ in texts]
        for index, (heading, text) in enumerate(texts):
            counts = Counter(words(text))
            for word in words(heading):
                counts[word] += HEADING_WEIGHT
            self._lengths.append(sum(counts.values()))
            for word, count in counts.items():
                self._found[word].append((index, count))
        self._mean = sum(self._lengths) / len(self._lengths) if self._lengths else 0.0

    def best(self, question: str, count: int) -> list[tuple[int, float]]:
        """Return the indexes and scores of the texts that fit best; of none that share a word with the question."""
        scores: dict[int, float] = defaultdict(float)
        total = len(self._lengths)
        asked = list(dict.fromkeys(words(question)))[:QUERY_WORDS]
        for word in asked:
            found = self._found.get(word, ())
            rarity = math.log(1 + (total - len(found) + 0.5) / (len(found) + 0.5))
            for index, times in found:
                length = self._lengths[index] / self._mean
                scores[index] += rarity * times * (K1 + 1) / (times + K1 * (1 - B + B * length))
        for index in scores:
            scores[index] *= 1 + len(self._headings[index].intersection(asked)) / len(asked)
        return sorted(scores.items(), key=lambda one: (-one[1], one[0]))[:count]


def words(text: str) -> list[str]:
    """Return the words that count, without their endings."""
    return [_stem(word) for word in _WORD.findall(text.casefold()) if word not in _COMMON]


def _stem(word: str) -> str:
    for ending in _ENDINGS:
        if len(word) > len(ending) + 2 and word.endswith(ending) and not word.endswith("ss"):
            stem = word.removesuffix(ending)
            stem = stem[:-1] if len(stem) > 3 and stem[-1] == stem[-2] else stem  # stopped, running
            return stem + "y" if ending == "ies" else stem.removesuffix("e")
    return word.removesuffix("e") if len(word) > 3 else word
