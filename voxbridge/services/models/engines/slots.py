"""Assignment of prompts to the engine's slots, so that a prompt already read is not read again.

A slot keeps the prompt it read last. Conversations of one agent share their beginning (a family), which takes seconds to read and costs
nothing to keep. They go to the slot of their family, one at a time; a new family takes the slot that was idle longest. A second
conversation of a family takes a further slot, where its caller says that one is to spare, and so drives out none. Changes are passed to a
callback, so that the next service knows the slots of an engine that it adopts. A crash here loses warm prompts only.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager

import msgspec

Wish = Callable[[int], bool]
"""Tells whether a slot may be used, by its index."""


class Held(msgspec.Struct, frozen=True):
    """A slot at work for a family. `fresh`: it held another family until now, and has read nothing of this one."""

    index: int
    fresh: bool


class Slots:
    """The `count` slots of an engine. Use `async with slots.hold(family) as held`. `families` are already in them; `tell` is called with
    the new list after each change."""

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
        """Number of slots at work."""
        return sum(self._busy)

    def is_busy(self, index: int) -> bool:
        """Tell whether this slot is at work."""
        return self._busy[index]

    def choose(self, family: str, suits: Wish = lambda _: True, spare: Wish = lambda _: False) -> int | None:
        """Return the slot for a family: of its own the last one that `suits`, else one to `spare`, else its own that was idle longest, or
        where it has none, that of all. None when that slot is at work."""
        idle = [index for index, busy in enumerate(self._busy) if not busy]
        own = [index for index in idle if self._families[index] == family]
        if fitting := [index for index in own if suits(index)]:
            return max(fitting, key=self._used.__getitem__)
        others = [index for index in idle if index not in own and (family not in self._families or spare(index))]
        first = others or own
        return min(first, key=lambda index: (self._families[index] is not None, self._used[index]), default=None)

    def forget(self, index: int) -> None:
        """Take note that a slot holds no family: what it was to be given did not get there."""
        self._families[index] = None

    @asynccontextmanager
    async def hold(self, family: str, suits: Wish = lambda _: True, spare: Wish = lambda _: False) -> AsyncIterator[Held]:
        """Wait for a slot of a family, as `choose` says, and hold it for the block."""
        async with self._changed:
            while (index := self.choose(family, suits, spare)) is None:
                await self._changed.wait()
            self._uses += 1
            fresh = self._families[index] != family
            self._families[index], self._busy[index], self._used[index] = family, True, self._uses
        try:
            if fresh:
                self._tell(self._families)
            yield Held(index, fresh)
        finally:
            # No await before this, so that a cancelled request frees its slot at once.
            self._busy[index] = False
            await asyncio.shield(self._wake())

    async def _wake(self) -> None:
        async with self._changed:
            self._changed.notify_all()
