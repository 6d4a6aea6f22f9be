"""Whether this process may still be taken to own its sessions: not after it stood still, until its leases were looked at again.

A process that was stopped and goes on (SIGSTOP and SIGCONT, a suspended machine, a swapping one) does not know that its leases ran
out meanwhile and that others carry its calls on. The log keeps its events out; this keeps it quiet. A crash loses nothing.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from typing import Final

BEAT_S: Final = 0.2
STALL_S: Final = 1.0
"""A loop that stood still for longer does not know who owns its sessions. Leases are renewed each second and last three, so none
has run out in a shorter time."""

_log = logging.getLogger(__name__)


class Tenure:
    """Beats while the loop runs."""

    def __init__(self) -> None:
        self._beat = time.monotonic()
        self._steady = asyncio.Event()
        self._steady.set()

    def steady(self) -> bool:
        """Whether the loop has been running all along, or the leases were looked at since."""
        if time.monotonic() - self._beat > STALL_S:
            self._steady.clear()
        return self._steady.is_set()

    async def hold(self) -> None:
        """Wait until it is steady."""
        while not self.steady():
            await self._steady.wait()

    async def keep(self, look: Callable[[], Awaitable[None]]) -> None:
        """Run until cancelled; after a stall `look` has the leases looked at before anything more is said or written."""
        while True:
            await asyncio.sleep(BEAT_S)
            if not self.steady():
                _log.warning("this process stood still for %.1f s and looks whether its sessions are still its own", self.stood_s())
                await look()
                self._beat = time.monotonic()
                self._steady.set()
            self._beat = time.monotonic()

    def stood_s(self) -> float:
        """Seconds since the last beat."""
        return time.monotonic() - self._beat
