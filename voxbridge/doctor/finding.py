"""Findings of `voxbridge doctor`: for each thing that was checked its state and what to do about it. Pure data."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, Literal

import msgspec

Level = Literal["OK", "WARN", "FAIL"]
LEVELS: Final[tuple[Level, ...]] = ("OK", "WARN", "FAIL")


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """A finding. `area` groups, `name` is the thing, `says` its state, `do` the remedy (empty when nothing is wrong)."""

    area: str
    name: str
    level: Level
    says: str
    do: str = ""


def ok(area: str, name: str, says: str) -> Finding:
    """Build the finding that nothing is wrong."""
    return Finding(area=area, name=name, level="OK", says=says)


def warn(area: str, name: str, says: str, do: str) -> Finding:
    """Build the finding that something works, and may fail soon."""
    return Finding(area=area, name=name, level="WARN", says=says, do=do)


def fail(area: str, name: str, says: str, do: str) -> Finding:
    """Build the finding that something does not work."""
    return Finding(area=area, name=name, level="FAIL", says=says, do=do)


def worst(findings: Iterable[Finding]) -> Level:
    """Return the worst level among the findings."""
    return max((finding.level for finding in findings), key=LEVELS.index, default="OK")
