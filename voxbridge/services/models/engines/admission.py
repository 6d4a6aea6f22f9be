"""Admission of requests to the models: one bounded queue for each model."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Final

from voxbridge.shared.errors import Code, VoxbridgeError

WAITING: Final = 32
RETRY_AFTER_MS: Final = 1_000


class Line:
    """A queue with at most `at_once` requests at work and `waiting` behind them; the next one is refused with `OVERLOADED`."""

    def __init__(self, name: str, at_once: int, waiting: int = WAITING) -> None:
        self.name, self._limit = name, at_once + waiting
        self._gate = asyncio.Semaphore(at_once)
        self._inside = 0
        self.changed: Callable[[], None] | None = None
        """Called when a request comes or leaves."""

    @property
    def inside(self) -> int:
        """Number of requests at work and waiting."""
        return self._inside

    @asynccontextmanager
    async def enter(self, *, waits: bool = True) -> AsyncIterator[None]:
        """Wait for a place and hold it for the block. One who does not wait is refused as well if there is none at once."""
        if self._inside >= self._limit or (self._gate.locked() and not waits):
            raise VoxbridgeError(
                Code.OVERLOADED,
                f"{self._limit} requests for {self.name} are at work or waiting; try again in a moment.",
                limit=self._limit,
                retry_after_ms=RETRY_AFTER_MS,
            )
        self._count(1)
        try:
            async with self._gate:
                yield
        finally:
            self._count(-1)

    def _count(self, more: int) -> None:
        self._inside += more
        if self.changed is not None:
            self.changed()
