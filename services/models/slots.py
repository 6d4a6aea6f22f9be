"""Which of the engine's slots works on a prompt, so that what it has already read is not read again.

A slot keeps the prompt it read last. Conversations of one agent share their beginning (a family), which costs seconds to
read and nothing to keep: they go to the slot of their family, one at a time; a new family takes the slot that was idle the
longest. A crash here loses warm prompts only.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager


class Slots:
    """`count` slots; use `async with slots.hold(family) as index`."""

    def __init__(self, count: int) -> None:
        self._families: list[str | None] = [None] * count
        self._busy = [False] * count
        self._used = [0] * count
        self._uses = 0
        self._changed = asyncio.Condition()

    @property
    def busy(self) -> int:
        """Slots at work now."""
        return sum(self._busy)

    def choose(self, family: str) -> int | None:
        """The slot for a family: its own, else the one idle longest; None when that one is at work."""
        if family in self._families:
            index = self._families.index(family)
            return None if self._busy[index] else index
        idle = [index for index, busy in enumerate(self._busy) if not busy]
        return min(idle, key=lambda index: (self._families[index] is not None, self._used[index]), default=None)

    @asynccontextmanager
    async def hold(self, family: str) -> AsyncIterator[int]:
        """Wait for the slot of a family and keep it for the block."""
        async with self._changed:
            while (index := self.choose(family)) is None:
                await self._changed.wait()
            self._uses += 1
            self._families[index], self._busy[index], self._used[index] = family, True, self._uses
        try:
            yield index
        finally:
            # Without a wait in between, so that a cancelled request frees its slot at once.
            self._busy[index] = False
            await asyncio.shield(self._wake())

    async def _wake(self) -> None:
        async with self._changed:
            self._changed.notify_all()
