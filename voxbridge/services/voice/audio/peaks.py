"""The peaks of a channel's audio on the session's clock, from which a waveform is drawn.

Owns the conversion of frames to bins. Does not own a frame's place in time (`voxbridge.shared.audio.timeline`) nor the reading of frames
(`waveforms`). A bin holds the least and the greatest sample of 20 ms. All of it is a cache of the recording; a crash loses nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from voxbridge.shared.audio.recordings import LONGEST_MS
from voxbridge.shared.audio.timeline import Placed, Placing

BIN_MS: Final = 20
SCALE: Final = 127
_FIRST: Final = 4_096
_NONE_LOW: Final = 32_767
_NONE_HIGH: Final = -32_768


class Peaks:
    """Peaks of one channel of one session. `began_ms` is the session's start on the Unix clock."""

    def __init__(self, channel: str, began_ms: int) -> None:
        self.end_ms = 0
        """End of the audio taken so far, ms."""
        self._placing = Placing(channel, began_ms, longest_ms=LONGEST_MS)
        self._low: NDArray[np.int16] = np.full(_FIRST, _NONE_LOW, np.int16)
        self._high: NDArray[np.int16] = np.full(_FIRST, _NONE_HIGH, np.int16)

    def take(self, taken: Sequence[bytes]) -> None:
        """Take frames in the order in which they were sent. Anything that is not a frame is skipped."""
        groups: dict[tuple[int, int], list[tuple[int, memoryview]]] = {}
        for frame in taken:
            found = self._placing.take(frame)
            if isinstance(found, Placed):
                groups.setdefault((len(found.pcm), found.rate), []).append((round(found.at_ms / BIN_MS), found.pcm))
                self.end_ms = max(self.end_ms, round(self._placing.next_ms))
            elif found is not None:
                self._put(groups)
                self._cut(round(found.at_ms))
        self._put(groups)

    def between(self, from_ms: int, to_ms: int, bins: int) -> tuple[list[int | None], list[int | None]]:
        """Return the least and the greatest sample of each of `bins` equal parts, scaled to `SCALE`; None where there was no audio."""
        edges = np.linspace(from_ms / BIN_MS, to_ms / BIN_MS, bins + 1)
        first = np.floor(edges[:-1]).astype(np.int64)
        last = np.maximum(np.ceil(edges[1:]).astype(np.int64), first + 1)
        size = int(last[-1])
        low, high = _filled(self._low, size, _NONE_LOW), _filled(self._high, size, _NONE_HIGH)
        # Parts narrower than a bin overlap, so each part has its own start and end.
        ends = np.column_stack((first, last)).ravel()
        least = np.minimum.reduceat(low, ends)[::2]
        most = np.maximum.reduceat(high, ends)[::2]
        return _scaled(least, least <= most), _scaled(most, least <= most)

    def _cut(self, at_ms: int) -> None:
        first = -(-at_ms // BIN_MS)
        self._low[first:] = _NONE_LOW
        self._high[first:] = _NONE_HIGH
        self.end_ms = min(self.end_ms, at_ms)

    def _put(self, groups: dict[tuple[int, int], list[tuple[int, memoryview]]]) -> None:
        for (size, rate), placed in groups.items():
            samples = size // 2
            width = rate * BIN_MS // 1_000
            parts = -(-samples // width)
            taken = np.frombuffer(b"".join(pcm for _, pcm in placed), "<i2")
            shaped: NDArray[np.int16] = np.pad(taken.reshape(len(placed), samples), ((0, 0), (0, parts * width - samples)), mode="edge")
            shaped = shaped.reshape(len(placed) * parts, width)
            at = (np.array([bucket for bucket, _ in placed])[:, None] + np.arange(parts)).ravel()
            self._grow(int(at.max()) + 1)
            np.minimum.at(self._low, at, shaped.min(axis=1))
            np.maximum.at(self._high, at, shaped.max(axis=1))
        groups.clear()

    def _grow(self, size: int) -> None:
        if size > len(self._low):
            more = max(size, 2 * len(self._low)) - len(self._low)
            self._low = np.concatenate((self._low, np.full(more, _NONE_LOW, np.int16)))
            self._high = np.concatenate((self._high, np.full(more, _NONE_HIGH, np.int16)))


def _filled(values: NDArray[np.int16], size: int, nothing: int) -> NDArray[np.int16]:
    """Return the values, padded with `nothing` so that `size` is a valid index."""
    return np.concatenate((values, np.full(max(1, size + 1 - len(values)), nothing, np.int16)))


def _scaled(values: NDArray[np.int16], there: NDArray[np.bool_]) -> list[int | None]:
    scaled: list[Any] = np.rint(values.astype(np.float32) * (SCALE / 32_768)).astype(int).tolist()
    return [value if known else None for value, known in zip(scaled, there.tolist(), strict=True)]
