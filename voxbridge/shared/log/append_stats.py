"""How this process's appends to the log go: how long they take, how long the oldest waits, and what that means to a person.

Owns the figures behind `event_log` in `/readyz` and behind `log` in a service's health. Pure but for the clock that it is given.
Does not own the appending (`voxbridge.shared.log.writer`). Nothing is lost with it.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from typing import Final

from nats.js.errors import APIError

from voxbridge.shared.condition import Condition

RECENT_S: Final = 30.0
"""How long a figure counts as news."""

SLOW_S: Final = 0.5
"""An append that takes longer is late: with `sync_interval: always` a healthy disk takes a few milliseconds."""

STUCK_S: Final = 2.5
"""An append that waits longer, while the connection is there, meets a log that takes nothing."""

_KEPT: Final = 512
_FULL: Final = frozenset({10023, 10028, 10047, 10077, 10122})
"""`insufficient resources`, `resource limits exceeded`, `insufficient storage`, `maximum bytes exceeded`, `message store failed`."""


class Appends:
    """The figures of one process. An append is `begun`, and then `ended` with or without its acknowledgement."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self.acknowledged = 0
        """Events that the log took."""
        self._clock = clock
        self._open: dict[int, float] = {}
        self._begun = 0
        self._recent: deque[tuple[float, float]] = deque(maxlen=_KEPT)
        self._full_at = -RECENT_S

    def begin(self) -> int:
        """An append goes out; returns its number."""
        self._begun += 1
        self._open[self._begun] = self._clock()
        return self._begun

    def end(self, number: int, *, acknowledged: bool) -> float:
        """An append is over; returns how many seconds it took."""
        now = self._clock()
        took = now - self._open.pop(number)
        if acknowledged:
            self.acknowledged += 1
            if took < STUCK_S:  # one that waited through an outage says nothing of the disk
                self._recent.append((now, took))
            self._full_at = -RECENT_S
        return took

    def refused(self, *, full: bool) -> None:
        """The log did not take an event, and whether it said that it has no room."""
        if full:
            self._full_at = self._clock()

    def waiting_s(self) -> float:
        """How long the oldest append waits; 0 when none does."""
        # Insertion order is age.
        return self._clock() - next(iter(self._open.values())) if self._open else 0.0

    def slow_s(self) -> float:
        """The time within which nineteen of twenty appends of the last `RECENT_S` were acknowledged; 0 without any."""
        since = self._clock() - RECENT_S
        took = sorted(seconds for at, seconds in self._recent if at >= since)
        return took[min(len(took) - 1, int(len(took) * 0.95))] if took else 0.0

    def condition(self, *, connected: bool = True) -> Condition:
        """What that means. Without a connection nothing is said here: NATS itself is down, and said to be."""
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
    """Whether NATS refused an event because it has no room."""
    return isinstance(error, APIError) and error.err_code in _FULL
