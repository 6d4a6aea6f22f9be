"""Figures of this process's appends to the log: how long they take, how long the oldest waits, and the condition that follows from it.

Owns the figures behind `event_log` in `/readyz` and behind `log` in a service's health. Pure but for the clock that it is given. Does not
own the appending (`voxbridge.shared.log.writer`). A crash here loses nothing.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from typing import Final

from nats.js.errors import APIError

from voxbridge.shared.condition import Condition

RECENT_S: Final = 30.0
"""Seconds for which a figure counts as recent."""

SLOW_S: Final = 0.5
"""Seconds above which an append is slow: with `sync_interval: always` a healthy disk takes a few milliseconds."""

STUCK_S: Final = 2.5
"""Seconds after which an append that waits on an open connection shows that the log accepts nothing."""

_KEPT: Final = 512
_FULL: Final = frozenset({10023, 10028, 10047, 10077, 10122})
"""`insufficient resources`, `resource limits exceeded`, `insufficient storage`, `maximum bytes exceeded`, `message store failed`."""


class Appends:
    """Append figures of one process. `begin` opens an append; `end` closes it, acknowledged or not."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self.acknowledged = 0
        """Events that the log acknowledged."""
        self._clock = clock
        self._open: dict[int, float] = {}
        self._begun = 0
        self._recent: deque[tuple[float, float]] = deque(maxlen=_KEPT)
        self._full_at = -RECENT_S

    def begin(self) -> int:
        """Record that an append was sent; return its number."""
        self._begun += 1
        self._open[self._begun] = self._clock()
        return self._begun

    def end(self, number: int, *, acknowledged: bool) -> float:
        """Record that an append is over; return how many seconds it took."""
        now = self._clock()
        took = now - self._open.pop(number)
        if acknowledged:
            self.acknowledged += 1
            if took < STUCK_S:  # a longer wait was an outage and tells nothing about the disk
                self._recent.append((now, took))
            self._full_at = -RECENT_S
        return took

    def refused(self, *, full: bool) -> None:
        """Record that the log refused an event; `full` when it said that it has no room."""
        if full:
            self._full_at = self._clock()

    def waiting_s(self) -> float:
        """Return the seconds that the oldest append has waited; 0 when none waits."""
        # The dict keeps insertion order, so the first entry is the oldest.
        return self._clock() - next(iter(self._open.values())) if self._open else 0.0

    def slow_s(self) -> float:
        """Return the 95th percentile of the acknowledgement times of the last `RECENT_S`, in seconds; 0 without any."""
        since = self._clock() - RECENT_S
        took = sorted(seconds for at, seconds in self._recent if at >= since)
        return took[min(len(took) - 1, int(len(took) * 0.95))] if took else 0.0

    def condition(self, *, connected: bool = True) -> Condition:
        """Return the condition that the figures show. Without a connection no delay is judged: NATS itself is reported as down."""
        if self._clock() - self._full_at < RECENT_S:
            return Condition(
                "down", "The event log is full: NATS has no room for another event. Free some space or raise max_file_store; calls go on."
            )
        if not connected:
            return Condition("degraded", "Events wait until NATS is back.") if self._open else Condition()
        waiting, slow = self.waiting_s(), self.slow_s()
        if waiting > STUCK_S:
            return Condition(
                "down",
                f"The event log has taken no event for {waiting:.0f} s though NATS answers: its disk may be full, broken or very slow. "
                "Look at the disk and at the log of nats-server; calls go on meanwhile.",
            )
        if slow > SLOW_S:
            return Condition("degraded", f"The event log's disk is slow: an event takes {slow * 1_000:.0f} ms (calls are not affected).")
        return Condition("ok", f"an event takes {slow * 1_000:.1f} ms" if slow else "")


def is_full(error: BaseException) -> bool:
    """Return whether NATS refused an event because it has no room."""
    return isinstance(error, APIError) and error.err_code in _FULL
