"""The arithmetic of the benchmarks: quantiles, ladders, settled readings. Pure, and tested without a clock."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

import msgspec

PERCENTILES: Final = (0, 1, 5, 10, 25, 50, 75, 90, 95, 99, 99.5, 99.9, 100)
LATE_MS: Final = 5.0
"""Lateness of the client's own sending, p99, from which a run is called noisy."""


class Series(msgspec.Struct, frozen=True):
    """Figures of one kind, as what is needed of them. A lost one is infinitely late: `None`, because JSON has no infinity."""

    count: int
    lost: int
    p50: float | None
    p95: float | None
    p99: float | None
    longest: float | None
    curve: list[tuple[float, float]]
    """`(percent, value)`: what a plot needs."""


def quantile(ordered: Sequence[float], percent: float) -> float:
    """The smallest value that at least `percent` of the values do not exceed (nearest rank); raises `ValueError` without any."""
    if not ordered:
        raise ValueError("there are no values")
    rank = math.ceil(round(len(ordered) * percent / 100, 9))
    return ordered[min(len(ordered), max(1, rank)) - 1]


def series(values: Sequence[float], *, lost: int = 0) -> Series:
    """Sum up values, with those that never came counted as infinite; raises `ValueError` when there is nothing to sum up."""
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
    """The numbers of sessions to try, ascending."""
    return list(range(first, top + 1, step))


def sustained(rungs: Sequence[tuple[int, float | None]], limit_ms: float) -> int:
    """The most sessions whose p99 stayed within the limit, before the first that did not; 0 when none did."""
    best = 0
    for sessions, p99_ms in rungs:
        if p99_ms is None or p99_ms > limit_ms:
            break
        best = sessions
    return best


def settled(readings: Sequence[float], *, last: int, within: float) -> bool:
    """Whether the last readings lie within this share of each other."""
    tail = readings[-last:]
    return len(tail) == last and max(tail) - min(tail) <= within * max(tail)


def per_further(few: float, many: float, further: int) -> float:
    """What one further session costs, from a reading with few and one with `further` more."""
    if further <= 0:
        raise ValueError("there must be further sessions")
    return (many - few) / further


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None
