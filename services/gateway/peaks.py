"""The peaks of a channel's audio on the session's clock: what a waveform is drawn from.

Owns where a frame lies in time and how frames become bins. Does not own where frames are read (`waveforms`). A bin holds the least and
the greatest sample of 20 ms. All of it is a cache of the recording; a crash loses nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from services.gateway.waveforms import LONGEST_MS
from shared import frames

BIN_MS: Final = 20
SLACK_MS: Final = 120
"""A frame that comes so much earlier or later than its turn was only held up on its way."""

SCALE: Final = 127
_FIRST: Final = 4_096
_NONE_LOW: Final = 32_767
_NONE_HIGH: Final = -32_768


class Peaks:
    """One channel of one session. `began_ms` is the session's start on the Unix clock."""

    def __init__(self, channel: str, began_ms: int) -> None:
        self.end_ms = 0
        """Where the audio ends that was taken so far."""
        self._heard = channel == "in"
        self._began = began_ms & 0xFFFF_FFFF
        self._low: NDArray[np.int16] = np.full(_FIRST, _NONE_LOW, np.int16)
        self._high: NDArray[np.int16] = np.full(_FIRST, _NONE_HIGH, np.int16)
        self._next_ms = 0.0
        self._generation = -1
        self._flushed = -1

    def take(self, taken: Sequence[bytes]) -> None:
        """Take frames in the order in which they were sent. What is no frame is passed over."""
        groups: dict[tuple[int, int], list[tuple[int, bytes]]] = {}
        for frame in taken:
            if len(frame) < frames.PREFIX_SIZE:
                continue
            prefix = frames.parse(frame)
            time_ms = (prefix.time_ms - self._began) & 0xFFFF_FFFF
            if time_ms > LONGEST_MS:
                continue
            if prefix.kind == frames.FLUSH:
                self._put(groups)
                self._flush(prefix.generation, time_ms)
                continue
            size = len(frame) - frames.PREFIX_SIZE
            if prefix.kind != frames.PCM16 or size < 2 or prefix.generation <= self._flushed:
                continue
            rate = frames.INPUT_RATE if self._heard or prefix.flags & frames.RATE_16K else frames.OUTPUT_RATE
            at = self._place(prefix.generation, time_ms, size / 2_000 / rate * 1_000_000)
            groups.setdefault((size & ~1, rate), []).append((round(at / BIN_MS), frame))
        self._put(groups)

    def between(self, from_ms: int, to_ms: int, bins: int) -> tuple[list[int | None], list[int | None]]:
        """The least and the greatest sample of each of `bins` equal parts, of `SCALE`; nothing where there was no audio."""
        edges = np.linspace(from_ms / BIN_MS, to_ms / BIN_MS, bins + 1)
        first = np.floor(edges[:-1]).astype(np.int64)
        last = np.maximum(np.ceil(edges[1:]).astype(np.int64), first + 1)
        size = int(last[-1])
        low, high = _filled(self._low, size, _NONE_LOW), _filled(self._high, size, _NONE_HIGH)
        # Where parts are narrower than a bin they overlap, so that each begins and ends for itself.
        ends = np.column_stack((first, last)).ravel()
        least = np.minimum.reduceat(low, ends)[::2]
        most = np.maximum.reduceat(high, ends)[::2]
        return _scaled(least, least <= most), _scaled(most, least <= most)

    def _place(self, generation: int, time_ms: int, length_ms: float) -> float:
        """Where a frame is heard: a microphone's when it came, a reply's when those before it were played."""
        at = float(time_ms) - length_ms if self._heard else float(time_ms)
        if generation != self._generation:
            self._generation = generation
        elif self._heard:
            at = self._next_ms if abs(at - self._next_ms) <= SLACK_MS else at
        else:
            at = max(at, self._next_ms)
        at = max(0.0, at)
        self._next_ms = at + length_ms
        self.end_ms = max(self.end_ms, round(self._next_ms))
        return at

    def _flush(self, generation: int, time_ms: int) -> None:
        self._flushed = max(self._flushed, generation)
        if self._heard or self._generation > generation:
            return
        first = -(-time_ms // BIN_MS)
        self._low[first:] = _NONE_LOW
        self._high[first:] = _NONE_HIGH
        self._next_ms = min(self._next_ms, time_ms)
        self.end_ms = min(self.end_ms, time_ms)

    def _put(self, groups: dict[tuple[int, int], list[tuple[int, bytes]]]) -> None:
        for (size, rate), placed in groups.items():
            samples = size // 2
            width = rate * BIN_MS // 1_000
            parts = -(-samples // width)
            pcm = np.frombuffer(b"".join(frame[frames.PREFIX_SIZE : frames.PREFIX_SIZE + size] for _, frame in placed), "<i2")
            shaped: NDArray[np.int16] = np.pad(pcm.reshape(len(placed), samples), ((0, 0), (0, parts * width - samples)), mode="edge")
            shaped = shaped.reshape(len(placed) * parts, width)
            at = (np.array([bin for bin, _ in placed])[:, None] + np.arange(parts)).ravel()
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
    """The values, and nothing after them, so that `size` is a place in them."""
    return np.concatenate((values, np.full(max(1, size + 1 - len(values)), nothing, np.int16)))


def _scaled(values: NDArray[np.int16], there: NDArray[np.bool_]) -> list[int | None]:
    scaled: list[Any] = np.rint(values.astype(np.float32) * (SCALE / 32_768)).astype(int).tolist()
    return [value if known else None for value, known in zip(scaled, there.tolist(), strict=True)]
