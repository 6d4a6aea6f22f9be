"""Lengths of time as people say them: "an hour and a half" is 5,400 s. English. Pure.

A small model writes 9 for "nine minutes" where seconds are asked for; what a length comes to can be read off the words.
"""

from __future__ import annotations

import re
from itertools import pairwise
from typing import Final

LIMIT_S: Final = 366 * 86_400
"""Longest length that is understood."""

_WORD: Final = re.compile(r"\d+(?:\.\d+)?|[a-z]+")
_ONES: Final = {
    word: number
    for number, word in enumerate(
        _WORD.findall(
            "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen "
            "nineteen"
        )
    )
}
_TENS: Final = {
    word: 10 * number for number, word in enumerate(_WORD.findall("twenty thirty forty fifty sixty seventy eighty ninety"), start=2)
}
_FEW: Final = {"a": 1.0, "an": 1.0, "couple": 2.0, "half": 0.5, "quarter": 0.25, "dozen": 12.0}
_UNITS: Final = {
    name: seconds
    for names, seconds in (
        ("second seconds sec secs", 1),
        ("minute minutes min mins", 60),
        ("hour hours hr hrs", 3_600),
        ("day days", 86_400),
    )
    for name in names.split()
}


def seconds(said: str) -> int | None:
    """Return the length of time that a text names, in s; None if it names none, or several that are no sum."""
    words = _WORD.findall(said.lower())
    found: list[tuple[int, int, float]] = []
    for place, word in enumerate(words):
        if word in _UNITS:
            start, number = _number(words, place)
            if number is None:
                continue
            after = words[place + 1 : place + 4]
            if after[:3] == ["and", "a", "half"] and not (len(words) > place + 4 and words[place + 4] in _UNITS):
                number += 0.5
            found.append((start, place, number * _UNITS[word]))
    whole = all(_joined(words, one[1], other[0]) for one, other in pairwise(found))
    total = sum(length for _, _, length in found)
    return round(total) if found and whole and 1 <= total <= LIMIT_S else None


def _joined(words: list[str], end: int, start: int) -> bool:
    """Return whether a length goes on: "two minutes thirty seconds", "an hour and ten minutes"."""
    return words[end + 1 : start] in ([], ["and"])


def _number(words: list[str], end: int) -> tuple[int, float | None]:
    """Return the number that ends before a word, and where it begins."""
    last = end
    while last and words[last - 1] in ("a", "an", "of"):
        last -= 1
    part = last < end and last and words[last - 1] in ("half", "quarter", "quarters", "couple")
    return _amount(words, last if part else end)


def _amount(words: list[str], end: int) -> tuple[int, float | None]:
    if end < 1:
        return end, None
    word = words[end - 1]
    if word[0].isdigit():
        return end - 1, float(word)
    if word == "half" and end >= 4 and words[end - 3 : end - 1] == ["and", "a"]:  # two and a half
        start, number = _amount(words, end - 3)
        return start, None if number is None else number + 0.5
    if word in _ONES:
        before = words[end - 2] if end >= 2 else ""
        if before in _TENS:
            return _hundreds(words, end - 2, _TENS[before] + _ONES[word])
        return _hundreds(words, end - 1, _ONES[word])
    if word in _TENS:
        return _hundreds(words, end - 1, _TENS[word])
    if word == "hundred":
        return _hundreds(words, end, 0)
    if word in _FEW:
        start = end - 1
        if word in ("half", "quarter", "couple", "dozen") and start and words[start - 1] in ("a", "an"):
            start -= 1
        return start, _FEW[word]
    if word == "quarters" and end >= 2 and words[end - 2] == "three":
        return end - 2, 0.75
    return end, None


def _hundreds(words: list[str], start: int, rest: int) -> tuple[int, float | None]:
    """Return a number with the hundreds that stand before it: "a hundred and twenty"."""
    place = start - 1 if start and words[start - 1] == "and" else start
    if place >= 2 and words[place - 1] == "hundred" and (words[place - 2] in _ONES or words[place - 2] == "a"):
        return place - 2, float(100 * _ONES.get(words[place - 2], 1) + rest)
    return start, float(rest) if rest else None
