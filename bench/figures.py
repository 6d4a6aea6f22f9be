"""Arithmetic of the benchmarks: quantiles, ladders, settled readings. Pure, and tested without a clock."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

import msgspec

PERCENTILES: Final = (0, 1, 5, 10, 25, 50, 75, 90, 95, 99, 99.5, 99.9, 100)
LATE_MS: Final = 5.0
"""Milliseconds by which the client's own sending may be late (p99) before a run is called noisy."""


class Series(msgspec.Struct, frozen=True):
    """Quantiles of a series of values. A lost value counts as infinite and is shown as `None`, because JSON has no infinity."""

    count: int
    lost: int
    p50: float | None
    p95: float | None
    p99: float | None
    longest: float | None
    curve: list[tuple[float, float]]
    """Points `(percent, value)` for a plot."""


def quantile(ordered: Sequence[float], percent: float) -> float:
    """Return the smallest value that at least `percent` of the values do not exceed (nearest rank); raises `ValueError` without any."""
    if not ordered:
        raise ValueError("there are no values")
    rank = math.ceil(round(len(ordered) * percent / 100, 9))
    return ordered[min(len(ordered), max(1, rank)) - 1]


def series(values: Sequence[float], *, lost: int = 0) -> Series:
    """Summarise values, with `lost` ones counted as infinite; raises `ValueError` when there are none."""
    ordered = [*sorted(values), *([math.inf] * lost)]
    curve = [(percent, quantile(ordered, percent)) for percent in PERCENTILES]
    return Series(
        count=len(ordered),
        lost=lost,
        p50=_finite(quantile(ordered, 50)),
        p95=_finite(quantile(ordered, 95)),
        p99=_finite(quantile(ordered, 99)),
        longest=_finite(ordered[-1]),
        curve=[(percent, value) for percent, value in curve if math.isfinite(value)],
    )


def ladder(first: int, step: int, top: int) -> list[int]:
    """Return the numbers of sessions to try, ascending."""
    return list(range(first, top + 1, step))


def sustained(rungs: Sequence[tuple[int, float | None]], limit_ms: float) -> int:
    """Return the most sessions whose p99 stayed within the limit, before the first that exceeded it; 0 when none did."""
    best = 0
    for sessions, p99_ms in rungs:
        if p99_ms is None or p99_ms > limit_ms:
            break
        best = sessions
    return best


def settled(readings: Sequence[float], *, last: int, within: float) -> bool:
    """Return whether the last readings lie within this share of each other."""
    tail = readings[-last:]
    return len(tail) == last and max(tail) - min(tail) <= within * max(tail)


def per_further(few: float, many: float, further: int) -> float:
    """Return the cost of one further session, from a reading with few and one with `further` more."""
    if further <= 0:
        raise ValueError("there must be further sessions")
    return (many - few) / further


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None
