"""What `voxbridge doctor` finds: one line for each thing it looked at, how it stands, and what to do about it. Pure data."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, Literal

import msgspec

Level = Literal["OK", "WARN", "FAIL"]
LEVELS: Final[tuple[Level, ...]] = ("OK", "WARN", "FAIL")


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """`area` groups, `name` is the thing, `says` how it stands, `do` what mends it (empty where nothing is wrong)."""

    area: str
    name: str
    level: Level
    says: str
    do: str = ""


def ok(area: str, name: str, says: str) -> Finding:
    """Nothing is wrong."""
    return Finding(area=area, name=name, level="OK", says=says)


def warn(area: str, name: str, says: str, do: str) -> Finding:
    """It works, and soon may not."""
    return Finding(area=area, name=name, level="WARN", says=says, do=do)


def fail(area: str, name: str, says: str, do: str) -> Finding:
    """It does not work."""
    return Finding(area=area, name=name, level="FAIL", says=says, do=do)


def worst(findings: Iterable[Finding]) -> Level:
    """The worst level among them."""
    return max((finding.level for finding in findings), key=LEVELS.index, default="OK")
