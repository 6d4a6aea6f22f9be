"""Clocks of the system: the log's clock, which never goes backwards, and the clock of audio frames.

A `core.py` never imports this module: time comes to it as an argument.
"""

from __future__ import annotations

import time
from typing import Protocol

MICROSECONDS = 1_000_000


class Clock(Protocol):
    """Clock that a service shell needs; tests pass their own."""

    def now_us(self) -> int:
        """Return the microseconds of the Unix clock."""


class SystemClock:
    """The machine's clock, made to never go backwards: while the wall clock steps back, it stands still."""

    def __init__(self) -> None:
        self._last = 0

    def now_us(self) -> int:
        """Return the microseconds of the Unix clock, never less than the last answer."""
        self._last = max(self._last, time.time_ns() // 1_000)
        return self._last


def wall_ms32() -> int:
    """Return the milliseconds of the Unix clock modulo 2**32, as audio frames carry them."""
    return (time.time_ns() // 1_000_000) & 0xFFFF_FFFF
