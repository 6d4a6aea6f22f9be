"""What came of one response of OpenAI Realtime: how much audio, in which items, and how loud. Pure.

Keeps the durations that a truncation must not exceed, and says when the audio is due for a report. A crash loses it with its
connection.
"""

from __future__ import annotations

from typing import Final

import numpy as np

BYTES_PER_MS: Final = 48
QUIET_PEAK: Final = 128
"""Of 32,768: audio that stays below is next to silence."""

_REPORT_MS: Final = 1_000


class Spoken:
    """The audio of one response."""

    def __init__(self, id: str) -> None:
        self.id = id
        self._quiet = True
        self._bytes = 0
        self._reported = -1
        self._odd = b""
        self._items: dict[tuple[str, int], int] = {}

    @property
    def ms(self) -> int:
        """Audio that was played, whole ms."""
        return self._bytes // BYTES_PER_MS

    @property
    def quiet(self) -> bool:
        """All that was played is next to silence; not so where nothing was."""
        return self._quiet and self._bytes > 0

    def count(self, item: str, content_index: int, size: int) -> None:
        """So many bytes of an item exist, heard or not."""
        part = (item, content_index)
        self._items[part] = self._items.get(part, 0) + size

    def play(self, delta: bytes) -> bytes:
        """The samples of a delta that is played. Half a sample waits for its other half."""
        if self._odd or len(delta) & 1:
            delta = self._odd + delta
            whole = len(delta) & ~1
            self._odd = delta[whole:]
            delta = delta[:whole]
        self._bytes += len(delta)
        # Once it was loud it stays so: most deltas are never looked at.
        if self._quiet and delta and int(np.abs(np.frombuffer(delta, "<i2").astype(np.int32)).max()) >= QUIET_PEAK:
            self._quiet = False
        return delta

    def due(self, *, last: bool = False) -> bool:
        """Whether the audio is to be reported now: the first, each second, and the last."""
        ms = self.ms
        if self._reported < 0 or ms - self._reported >= _REPORT_MS or (last and ms != self._reported):
            self._reported = ms
            return True
        return False

    def cut(self, heard_ms: int) -> list[tuple[str, int, int]]:
        """Forget what lies beyond `heard_ms`: item, content index and where each item that changes ends, in ms. Never beyond what came."""
        changed: list[tuple[str, int, int]] = []
        start = 0
        for (item, content_index), size in self._items.items():
            length = size // BYTES_PER_MS
            end = min(length, max(0, heard_ms - start))
            if end < length:
                self._items[item, content_index] = end * BYTES_PER_MS
                changed.append((item, content_index, end))
            start += length
        return changed
