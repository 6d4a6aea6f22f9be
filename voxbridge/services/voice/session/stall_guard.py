"""Guard against stalls of this process: after a stall, it does not count as the owner of its sessions until its leases were checked.

A process that was stopped and resumed (SIGSTOP and SIGCONT, a suspended machine, a swapping one) does not know that its leases ran
out meanwhile and that other workers took over its calls. The log refuses its events; this guard keeps it from sending anything else. A
process without sessions owns nothing and is not watched. A crash loses nothing.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from typing import Final

BEAT_S: Final = 0.2
STALL_S: Final = 1.0
"""Seconds of a stall after which the loop does not know who owns its sessions. Leases are renewed each second and last three, so none
has run out during a shorter stall."""

_log = logging.getLogger(__name__)


class StallGuard:
    """Heartbeat of the event loop."""

    def __init__(self) -> None:
        self._beat = time.monotonic()
        self._steady = asyncio.Event()
        self._steady.set()
        self._needed = asyncio.Event()

    def need(self) -> None:
        """Watch from now on: the process has a session."""
        if not self._needed.is_set():
            self._beat = time.monotonic()
            self._needed.set()

    def steady(self) -> bool:
        """Tell whether the loop has run without a stall, or the leases were checked since the last stall."""
        if self._needed.is_set() and time.monotonic() - self._beat > STALL_S:
            self._steady.clear()
        return self._steady.is_set()

    async def hold(self) -> None:
        """Wait until `steady` returns True."""
        while not self.steady():
            await self._steady.wait()

    async def keep(self, look: Callable[[], Awaitable[None]], busy: Callable[[], bool]) -> None:
        """Run until cancelled. After a stall, `look` checks the leases before anything more is sent or written. While the process is not
        `busy`, wait until it is needed."""
        while True:
            if not busy():
                self._needed.clear()
                await self._needed.wait()
            await asyncio.sleep(BEAT_S)
            if not self.steady():
                _log.warning("this process stood still for %.1f s and looks whether its sessions are still its own", self.stood_s())
                await look()
                self._beat = time.monotonic()
                self._steady.set()
            self._beat = time.monotonic()

    def stood_s(self) -> float:
        """Return the seconds since the last beat."""
        return time.monotonic() - self._beat
