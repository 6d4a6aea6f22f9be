"""A process that stands by for another: it has loaded its code, and waits for the signal to begin.

Loading is most of what a service needs to start, so a service that died is back at once if its next process stands by. Owns that process
until it begins. Does not own when one is needed (`voxbridge.supervisor.supervisor`). A process that dies while it stands by is replaced by
the next `prepare`; until then a process is started the usual way.
"""

from __future__ import annotations

import asyncio
import logging
import signal
from collections.abc import Awaitable, Callable
from contextlib import suppress

from voxbridge.shared.embedded.child import end_group
from voxbridge.supervisor.children import Command

_log = logging.getLogger(__name__)


class Standby:
    """Starter of one program's processes. `start` is told whether the process is to stand by; it raises `OSError`."""

    def __init__(self, start: Callable[[bool], Awaitable[Command]]) -> None:
        self._start = start
        self._waiting: Command | None = None
        self._starting: asyncio.Task[None] | None = None
        self._closed = False

    @property
    def pid(self) -> int:
        """Id of the process that stands by; 0 if there is none."""
        return self._waiting.pid if self._waiting is not None and not self._waiting.ended else 0

    async def spawn(self) -> Command:
        """Let the process on standby begin, or start one. Raises `OSError`."""
        waiting, self._waiting = self._waiting, None
        if waiting is not None and not waiting.ended:
            with suppress(OSError):  # the process died a moment ago
                waiting.begin()
                return waiting
        if waiting is not None:
            await waiting.wait()
        return await self._start(False)

    def prepare(self) -> None:
        """Start a process on standby if there is none; returns at once."""
        if not self.pid and not self._closed and (self._starting is None or self._starting.done()):
            self._starting = asyncio.create_task(self._prepare())

    async def close(self) -> None:
        """End the process on standby, and prepare no further one."""
        self._closed = True
        if self._starting is not None:
            await self._starting
        if self._waiting is not None:
            end_group(self._waiting.pid, signal.SIGKILL)
            await self._waiting.wait()

    async def _prepare(self) -> None:
        ended, self._waiting = self._waiting, None
        if ended is not None:
            await ended.wait()
        try:
            self._waiting = await self._start(True)
        except OSError as error:
            _log.warning("nothing stands by: %s", error)
