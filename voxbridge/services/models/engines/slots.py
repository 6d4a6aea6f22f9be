"""Which of the engine's slots works on a prompt, so that what it has already read is not read again.

A slot keeps the prompt it read last. Conversations of one agent share their beginning (a family), which costs seconds to
read and nothing to keep: they go to the slot of their family, one at a time; a new family takes the slot that was idle the
longest. Which family is where is told to whoever asks for it, so that the next service knows the slots of an engine that it
adopts. A crash here loses warm prompts only.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager

import msgspec


class Held(msgspec.Struct, frozen=True):
    """A slot at work for a family. `fresh`: until now it was another one's, and knows nothing of this one."""

    index: int
    fresh: bool


class Slots:
    """`count` slots; use `async with slots.hold(family) as held`. `families` are known to be in them already; `tell` is called with the
    new list whenever one changes."""

    def __init__(
        self, count: int, families: Sequence[str | None] = (), tell: Callable[[Sequence[str | None]], None] = lambda _families: None
    ) -> None:
        self._families: list[str | None] = [*families, *[None] * count][:count]
        self._tell = tell
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
    async def hold(self, family: str) -> AsyncIterator[Held]:
        """Wait for the slot of a family and keep it for the block."""
        async with self._changed:
            while (index := self.choose(family)) is None:
                await self._changed.wait()
            self._uses += 1
            fresh = self._families[index] != family
            self._families[index], self._busy[index], self._used[index] = family, True, self._uses
        try:
            if fresh:
                self._tell(self._families)
            yield Held(index, fresh)
        finally:
            # Without a wait in between, so that a cancelled request frees its slot at once.
            self._busy[index] = False
            await asyncio.shield(self._wake())

    async def _wake(self) -> None:
        async with self._changed:
            self._changed.notify_all()
