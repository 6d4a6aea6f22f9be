"""A limit on the bytes that a gateway holds for its clients: incomplete messages and unread answers.

Owns the limit over all of them, and which connection is closed above it: the one that holds the most, so that a few large holders do not
shut out many small ones. A crash here loses nothing that was taken.
"""

from __future__ import annotations

from typing import Final, Protocol

BUDGET: Final = 32 * 1024 * 1024
"""Bytes of one kind that all connections together may hold."""


class Holder(Protocol):
    """A connection that holds bytes."""

    def shed(self) -> None:
        """Close, and release all bytes."""


class Budget:
    """The bytes held, by holder."""

    def __init__(self, limit: int = BUDGET) -> None:
        self.held = 0
        self.limit = limit
        self._by: dict[Holder, int] = {}

    def hold(self, holder: Holder, size: int) -> None:
        """Set the bytes that `holder` holds to `size`; 0 removes it. Close the largest holders while the sum is above the limit."""
        self.held += size - self._by.pop(holder, 0)
        if size:
            self._by[holder] = size
        while self.held > self.limit:
            largest = max(self._by, key=self._by.__getitem__)
            self.held -= self._by.pop(largest)
            largest.shed()
