"""The load of a voice process, which `$SRV.STATS` reports beside its sessions.

Owns two figures over the last `WINDOW_S` seconds: how late the event loop runs tasks that are due, which callers of a full worker
notice first, and the share of one core that the process used. Decides nothing. A crash loses ten seconds of figures.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections import deque
from collections.abc import Callable
from typing import Final

EVERY_S: Final = 0.25
REST_S: Final = 2.0
"""Seconds between two samples of a process that has no sessions."""

WINDOW_S: Final = 10.0
SAMPLES: Final = round(WINDOW_S / EVERY_S)
PERCENTILE: Final = 0.95


class Load:
    """Load figures, measured while `keep` runs."""

    def __init__(self) -> None:
        self._late: deque[float] = deque(maxlen=SAMPLES)
        self._used: deque[tuple[float, float]] = deque(maxlen=SAMPLES)
        """Time of each sample, and the CPU time used by then; both in seconds."""

    async def keep(self, busy: Callable[[], bool]) -> None:
        """Measure until cancelled."""
        loop = asyncio.get_running_loop()
        while True:
            every_s = EVERY_S if busy() else REST_S
            due = loop.time() + every_s
            await asyncio.sleep(every_s)
            self.add(max(0.0, loop.time() - due), time.monotonic(), time.process_time())

    def add(self, late_s: float, at_s: float, cpu_s: float) -> None:
        """Add a sample: how late the loop was, and the process's CPU time at this moment."""
        while self._used and at_s - self._used[0][0] > WINDOW_S:
            self._used.popleft()
            self._late.popleft()
        self._late.append(late_s)
        self._used.append((at_s, cpu_s))

    def figures(self) -> dict[str, float]:
        """Return `loop_lag_p95_ms`, and `cpu_share` of one core (1.0 is a whole core); both are zero before there are samples."""
        return {"loop_lag_p95_ms": self._lag_ms(), "cpu_share": self._share()}

    def _lag_ms(self) -> float:
        if not self._late:
            return 0.0
        return round(sorted(self._late)[math.ceil(PERCENTILE * len(self._late)) - 1] * 1_000, 3)

    def _share(self) -> float:
        if len(self._used) < 2:
            return 0.0
        (first, before), (last, after) = self._used[0], self._used[-1]
        return round((after - before) / (last - first), 4) if last > first else 0.0
