"""The two clocks of the system, and nothing else reads them: the wall clock of the log and the monotonic one.

A `core.py` never imports this module: time comes to it as an argument.
"""

from __future__ import annotations

import time
from typing import Protocol

MICROSECONDS = 1_000_000


class Clock(Protocol):
    """What a service shell needs of time; tests pass one of their own."""

    def now_us(self) -> int:
        """Microseconds of the Unix clock."""


class SystemClock:
    """The machine's clock, held to one direction: a step backwards of the wall clock shows as standing still."""

    def __init__(self) -> None:
        self._last = 0

    def now_us(self) -> int:
        """Microseconds of the Unix clock, never less than the last answer."""
        self._last = max(self._last, time.time_ns() // 1_000)
        return self._last


def wall_ms32() -> int:
    """Milliseconds of the Unix clock modulo 2**32, as audio frames carry them."""
    return (time.time_ns() // 1_000_000) & 0xFFFF_FFFF
