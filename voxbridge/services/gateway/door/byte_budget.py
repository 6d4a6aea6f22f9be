"""Bytes that a gateway holds for its clients: messages that have not come whole, answers that are not read.

Owns the bound over all of them and who has to go at it: whoever holds the most, so that a few that hold much do not shut out the many
that hold little. A crash here loses nothing that was taken.
"""

from __future__ import annotations

from typing import Final, Protocol

BUDGET: Final = 32 * 1024 * 1024
"""Bytes of one kind that all connections may hold together."""


class Holder(Protocol):
    """A connection that holds bytes."""

    def shed(self) -> None:
        """Close, and hold nothing any more."""


class Budget:
    """The bytes that are held, by holder."""

    def __init__(self, limit: int = BUDGET) -> None:
        self.held = 0
        self.limit = limit
        self._by: dict[Holder, int] = {}

    def hold(self, holder: Holder, size: int) -> None:
        """`holder` holds `size` bytes now; 0 is nothing any more."""
        self.held += size - self._by.pop(holder, 0)
        if size:
            self._by[holder] = size
        while self.held > self.limit:
            largest = max(self._by, key=self._by.__getitem__)
            self.held -= self._by.pop(largest)
            largest.shed()
