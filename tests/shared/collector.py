"""A feed's handler for tests: keeps the events and wakes waiters."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

from voxbridge.shared import events

TIMEOUT_S = 20.0


class Collector:
    """Events in the order in which they were delivered."""

    def __init__(self) -> None:
        self.got: list[events.Recorded] = []
        self._more = asyncio.Event()

    def __call__(self, recorded: events.Recorded) -> None:
        self.got.append(recorded)
        self._more.set()

    @property
    def positions(self) -> list[int]:
        """Log positions in the order of delivery."""
        return [recorded.seq for recorded in self.got]

    async def until(self, enough: Callable[[Sequence[events.Recorded]], bool], timeout_s: float = TIMEOUT_S) -> None:
        """Wait until `enough`; raises `TimeoutError` after `timeout_s`."""
        async with asyncio.timeout(timeout_s):
            while not enough(self.got):
                self._more.clear()
                await self._more.wait()

    async def count(self, number: int, timeout_s: float = TIMEOUT_S) -> None:
        """Wait for `number` events."""
        await self.until(lambda got: len(got) >= number, timeout_s)
