"""Placement of audio frames on a session's clock, the same for what is drawn and what is exported.

Owns the rules: a microphone frame ended when it arrived, a reply's frame is heard after those before it were played, and no frame of a
flushed generation is heard from the flush on. Pure; keeps only the place of the last frame.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from voxbridge.shared.audio import frames

SLACK_MS: Final = 120
"""Milliseconds that a frame may arrive too early or too late and still count as delayed on its way, not as displaced."""

_SAMPLE: Final = 2


class Placed(NamedTuple):
    """PCM16 of a generation at `rate`, from `at_ms` on. `joined` is true if it follows the audio before it without a gap."""

    generation: int
    at_ms: float
    pcm: memoryview
    rate: int
    joined: bool


class Cut(NamedTuple):
    """From `at_ms` on, audio placed before is not heard if it is of this generation or of an earlier one."""

    generation: int
    at_ms: float


class Placing:
    """Placement of one channel of one session. `began_ms` is moment 0 on the Unix clock; earlier frames are skipped."""

    def __init__(self, channel: str, began_ms: int, *, longest_ms: int) -> None:
        self.next_ms = 0.0
        """End of the audio placed so far."""
        self._heard = channel == "in"
        self._began = began_ms & 0xFFFF_FFFF
        self._longest = longest_ms
        self._generation = -1
        self._flushed = -1

    def take(self, frame: bytes) -> Placed | Cut | None:
        """Place the next frame; None if it is not a frame, is outside of the session, or is not heard."""
        if len(frame) < frames.PREFIX_SIZE:
            return None
        prefix = frames.parse(frame)
        time_ms = (prefix.time_ms - self._began) & 0xFFFF_FFFF
        if time_ms > self._longest:
            return None
        if prefix.kind == frames.FLUSH:
            return self._flush(prefix.generation, time_ms)
        size = (len(frame) - frames.PREFIX_SIZE) & ~1
        if prefix.kind != frames.PCM16 or size < _SAMPLE or prefix.generation <= self._flushed:
            return None
        rate = frames.INPUT_RATE if self._heard or prefix.flags & frames.RATE_16K else frames.OUTPUT_RATE
        joins, before = self._generation == prefix.generation, self.next_ms
        at = self._place(prefix.generation, time_ms, size / _SAMPLE / rate * 1_000)
        pcm = memoryview(frame)[frames.PREFIX_SIZE : frames.PREFIX_SIZE + size]
        return Placed(prefix.generation, at, pcm, rate, joins and at == before)

    def _place(self, generation: int, time_ms: int, length_ms: float) -> float:
        at = float(time_ms) - length_ms if self._heard else float(time_ms)
        if generation != self._generation:
            self._generation = generation
        elif self._heard:
            at = self.next_ms if abs(at - self.next_ms) <= SLACK_MS else at
        else:
            at = max(at, self.next_ms)
        at = max(0.0, at)
        self.next_ms = at + length_ms
        return at

    def _flush(self, generation: int, time_ms: int) -> Cut | None:
        self._flushed = max(self._flushed, generation)
        if self._heard or self._generation > generation:
            return None
        self.next_ms = min(self.next_ms, time_ms)
        return Cut(generation, time_ms)
