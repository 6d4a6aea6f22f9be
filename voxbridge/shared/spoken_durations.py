"""Lengths of time as people say them: "an hour and a half" is 5,400 s. English. Pure.

A small model writes 9 for "nine minutes" where seconds are asked for; what a length comes to can be read off the words.
"""

from __future__ import annotations

import re
from itertools import pairwise
from typing import Final

from voxbridge.shared.spoken_numbers import in_figures

LIMIT_S: Final = 366 * 86_400
"""Longest length that is understood."""

_EXACT_S: Final = 300

_UNITS: Final = {
    name: seconds
    for names, seconds in (
        ("second seconds sec secs s", 1),
        ("minute minutes min mins", 60),
        ("hour hours hr hrs h", 3_600),
        ("day days", 86_400),
        ("week weeks", 7 * 86_400),
    )
    for name in names.split()
}
_AMOUNTS: Final = (
    (r"(?:a )?half(?: an?)?", 0.5),
    (r"(?:a )?quarter(?: of)?(?: an?)?", 0.25),
    (r"3 quarters(?: of)?(?: an?)?", 0.75),
    (r"a couple(?: of)?", 2.0),
    (r"a dozen", 12.0),
    (r"an?", 1.0),
)
_PARTS: Final = {"a half": 0.5, "a quarter": 0.25, "3 quarters": 0.75}
_WORDED: Final = "|".join(f"(?P<worded{place}>{pattern})" for place, (pattern, _) in enumerate(_AMOUNTS))
_UNIT: Final = "|".join(sorted(_UNITS, key=len, reverse=True))
_LENGTH: Final = re.compile(
    rf"(?<![\w.])(?:(?P<figure>\d+(?:\.\d+)?)[\s-]*|(?:{_WORDED})[\s-]+)(?P<unit>{_UNIT})\b"
    rf"(?: and (?P<part>a half|a quarter|3 quarters)(?! (?:(?:of )?an? )?(?:{_UNIT})\b))?"
)
_BETWEEN: Final = re.compile(r"[\s,]*(?:and\s+)?", re.ASCII)


def seconds(said: str) -> int | None:
    """Return the length of time that a text names, in s; None if it names none, or several that are no sum."""
    plain = " ".join(in_figures(said).split())
    found = list(_LENGTH.finditer(plain))
    whole = all(_BETWEEN.fullmatch(plain[one.end() : other.start()]) for one, other in pairwise(found))
    total = sum(map(_value, found))
    return round(total) if found and whole and 1 <= total <= LIMIT_S else None


def without(said: str) -> str:
    """Return a text without the lengths of time in it."""
    return " ".join(_LENGTH.sub(" ", " ".join(in_figures(said).split())).split())


def in_words(length_s: int) -> str:
    """Return a length of time as it is said, in full: "1 hour, 5 minutes and 1 second"."""
    hours, rest = divmod(length_s, 3_600)
    minutes, left = divmod(rest, 60)
    parts = [
        f"{count} {unit}{'' if count == 1 else 's'}" for count, unit in ((hours, "hour"), (minutes, "minute"), (left, "second")) if count
    ]
    return f"{', '.join(parts[:-1])} and {parts[-1]}" if len(parts) > 1 else parts[0] if parts else "0 seconds"


def about(length_s: int) -> str:
    """Return a length of time as a person says how much is left: from five minutes on without the seconds."""
    return in_words(length_s if length_s < _EXACT_S else round(length_s / 60) * 60)


def _value(length: re.Match[str]) -> float:
    worded = next((amount for place, (_, amount) in enumerate(_AMOUNTS) if length[f"worded{place}"]), 0.0)
    number = float(length["figure"]) if length["figure"] else worded
    return (number + _PARTS.get(length["part"] or "", 0)) * _UNITS[length["unit"]]
