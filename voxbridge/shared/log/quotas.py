"""Quotas of the log: how much of it one client, one account and the whole installation may fill, and how fast.

Owns the counting, in memory, with the time given to it, and the errors that name the exceeded limit. Does not own where quotas are checked
(`voxbridge.services.gateway.door.admission`, `voxbridge.shared.log.writer`). A crash here loses the counts: the next process counts anew.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from voxbridge.shared.errors import Code, VoxbridgeError

BURST_S: Final = 4.0
"""Seconds' worth of the rate that may come at once, after an idle time."""

LARGEST_BYTES: Final = 1024 * 1024
"""Bytes of a single message that always fits into a full bucket, however low the rate is."""

ALMOST_FULL: Final = 0.8
"""Fraction of the room from which on the log is reported as filling up."""

RESERVE: Final = 0.95
"""Fraction of the room from which on no call begins: the rest is for calls in progress."""


class Bucket:
    """Token bucket: lets `rate` a second pass, and `burst` at once."""

    def __init__(self, rate: float, burst: float, clock: Callable[[], float]) -> None:
        self._rate = rate
        self._burst = burst
        self._clock = clock
        self._left = burst
        self._at = clock()

    def has(self, amount: float) -> bool:
        """Return whether `amount` may pass now."""
        now = self._clock()
        self._left = min(self._burst, self._left + (now - self._at) * self._rate)
        self._at = now
        return self._left >= amount

    def take(self, amount: float) -> None:
        """Count `amount` as passed."""
        self._left -= amount

    def wait_s(self, amount: float) -> float:
        """Return the seconds until `amount` may pass."""
        return max(0.0, (amount - self._left) / self._rate)


@dataclass(frozen=True, slots=True)
class Rates:
    """Amounts that may be written per second; `whose` says whose limit it is (`session`, `account`)."""

    whose: str
    events: int
    bytes: int


class Rated:
    """Token buckets of one session, or of one account."""

    def __init__(self, rates: Rates, clock: Callable[[], float]) -> None:
        self._rates = rates
        self._events = Bucket(rates.events, rates.events * BURST_S, clock)
        self._bytes = Bucket(rates.bytes, max(rates.bytes * BURST_S, LARGEST_BYTES), clock)

    def check(self, size: int) -> None:
        """Raise `OVERLOADED` when an event of `size` bytes comes too soon."""
        whose = self._rates.whose
        if not self._events.has(1):
            raise _too_fast(f"{whose}_events_per_s", f"{self._rates.events} events", whose, self._rates.events, self._events.wait_s(1))
        if not self._bytes.has(size):
            bound = self._rates.bytes
            raise _too_fast(f"{whose}_kb_per_s", f"{bound // 1_000} kB", whose, bound // 1_000, self._bytes.wait_s(size))

    def take(self, size: int) -> None:
        """Count an event of `size` bytes as written."""
        self._events.take(1)
        self._bytes.take(size)


class Quota:
    """Quota of one client in the log: its own rate, the rate it shares with others of its account, and its total bytes."""

    def __init__(self, session: Rated, account: Rated, *, max_bytes: int) -> None:
        self.written = 0
        """Bytes of events written so far."""
        self._session = session
        self._account = account
        self._max_bytes = max_bytes

    def take(self, size: int) -> None:
        """Count an event of `size` bytes; raises `OVERLOADED`, and counts nothing, when a limit is exceeded."""
        if self.written + size > self._max_bytes:
            limit = self._max_bytes // 1_000_000
            message = f"A client may write {limit} MB into the log of its session, and this one did. Begin a new session."
            raise VoxbridgeError(Code.OVERLOADED, message, field="session_mb", limit=limit, retryable=False)
        self._session.check(size)
        self._account.check(size)
        self._session.take(size)
        self._account.take(size)
        self.written += size


def _too_fast(field: str, what: str, whose: str, limit: int, wait_s: float) -> VoxbridgeError:
    message = f"One {whose} may write {what} a second into the log; this is more, and was not written. Slow down."
    return VoxbridgeError(Code.OVERLOADED, message, field=field, limit=limit, retry_after_ms=max(1, round(wait_s * 1_000)))


class Starts:
    """Limit of session starts per second; `BURST_S` seconds' worth may start at once."""

    def __init__(self, per_s: int, clock: Callable[[], float]) -> None:
        self._per_s = per_s
        self._bucket = Bucket(per_s, per_s * BURST_S, clock)

    def take(self) -> None:
        """Count a start; raises `OVERLOADED` when there are too many."""
        if not self._bucket.has(1):
            message = f"Calls begin faster than {self._per_s} a second here. Try again in a moment."
            wait_ms = max(1, round(self._bucket.wait_s(1) * 1_000))
            raise VoxbridgeError(Code.OVERLOADED, message, field="starts_per_s", limit=self._per_s, retry_after_ms=wait_ms)
        self._bucket.take(1)


def full(used: int, room: int) -> float:
    """Return the used fraction of the room."""
    return used / room if room else 0.0


def filling_up(used: int, room: int) -> str:
    """Return the warning for a log that has used this many of its bytes; empty while there is room."""
    part = full(used, room)
    if part < ALMOST_FULL:
        return ""
    does = f"{used // 1_000_000:,} of {room // 1_000_000:,} MB (VOXBRIDGE_LOG_MB) are used"
    do = "Keep events for fewer days (VOXBRIDGE_EVENT_RETENTION_DAYS), or give the log more room."
    if part < RESERVE:
        return f"The event log fills up: {does}. {do}"
    return f"The event log is almost full: {does}. No call begins until there is room; those that are going on have the rest. {do}"
