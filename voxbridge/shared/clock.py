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
    """The machine's clock, made to never go backwards, nor to stand still: when the wall clock is set back, this one goes on by the time
    that passes, a hundredth slower until both agree. Standing still would have a timer of a minute wait for the hour that was set back."""

    def __init__(self) -> None:
        self._last = 0
        self._steady = time.monotonic_ns()

    def now_us(self) -> int:
        """Return the microseconds of the Unix clock, never less than the last answer."""
        steady = time.monotonic_ns()
        passed, self._steady = (steady - self._steady) * 99 // 100_000, steady
        self._last = max(self._last + passed, time.time_ns() // 1_000) if self._last else time.time_ns() // 1_000
        return self._last


def suspended_s() -> float:
    """Return the seconds that this machine has been suspended since it was started; 0 where it does not say."""
    boot = getattr(time, "CLOCK_BOOTTIME", None)  # Linux alone has it
    return 0.0 if boot is None else time.clock_gettime(boot) - time.clock_gettime(time.CLOCK_MONOTONIC)


def wall_ms32() -> int:
    """Return the milliseconds of the Unix clock modulo 2**32, as audio frames carry them."""
    return (time.time_ns() // 1_000_000) & 0xFFFF_FFFF
