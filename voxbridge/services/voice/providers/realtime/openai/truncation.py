"""Audio of a response of OpenAI Realtime: how much of it there is, in which items, and how loud it is. Pure.

Keeps the durations that a truncation must not exceed, and tells when the audio is due for a report. A crash loses it with its
connection.
"""

from __future__ import annotations

from typing import Final

import numpy as np

BYTES_PER_MS: Final = 48
QUIET_PEAK: Final = 128
"""Peak, of 32,768, below which audio is next to silence."""

_REPORT_MS: Final = 1_000


class Spoken:
    """The audio of one response."""

    def __init__(self, response_id: str) -> None:
        self.id = response_id
        self._quiet = True
        self._bytes = 0
        self._reported = -1
        self._odd = b""
        self._items: dict[tuple[str, int], int] = {}

    @property
    def ms(self) -> int:
        """Whole milliseconds of audio that were played."""
        return self._bytes // BYTES_PER_MS

    @property
    def quiet(self) -> bool:
        """True if audio was played and all of it is next to silence."""
        return self._quiet and self._bytes > 0

    def count(self, item: str, content_index: int, size: int) -> None:
        """Count `size` more bytes of an item, heard or not."""
        part = (item, content_index)
        self._items[part] = self._items.get(part, 0) + size

    def play(self, delta: bytes) -> bytes:
        """Count a delta that is played, and return its samples. Half a sample waits for its other half."""
        if self._odd or len(delta) & 1:
            delta = self._odd + delta
            whole = len(delta) & ~1
            self._odd = delta[whole:]
            delta = delta[:whole]
        self._bytes += len(delta)
        # Checked only until the response was loud once, so most deltas are not scanned.
        if self._quiet and delta and int(np.abs(np.frombuffer(delta, "<i2").astype(np.int32)).max()) >= QUIET_PEAK:
            self._quiet = False
        return delta

    def due(self, *, last: bool = False) -> bool:
        """Tell whether the audio is to be reported now: the first, each second, and the last."""
        ms = self.ms
        if self._reported < 0 or ms - self._reported >= _REPORT_MS or (last and ms != self._reported):
            self._reported = ms
            return True
        return False

    def cut(self, heard_ms: int) -> list[tuple[str, int, int]]:
        """Forget the audio beyond `heard_ms`. Return item, content index and end (ms) of each item that changes, never beyond its audio."""
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
