"""The audio that the bus kept while no worker held a session, and its place in the session.

The bus keeps ten seconds of the microphone and four of the reply (`voxbridge.shared.log.streams`). A microphone frame is identified by its
number and the gateway's time. The newest frame whose place is in the journal (`inputs.MicrophoneAt`) gives the place of all others, so
positions in the log stay true over a takeover.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from voxbridge.services.voice.core.state import Mark
from voxbridge.shared.audio import frames
from voxbridge.shared.bus import subjects
from voxbridge.shared.log.reader import Log, position

FRAMES_LIMIT: Final = 2_048
"""Frames read of each direction; ten seconds are 500 frames of 20 ms."""

_SAMPLES_PER_MS: Final = frames.INPUT_RATE // 1_000
_LOST_LIMIT: Final = 3_600 * frames.INPUT_RATE
"""Samples of lost audio that are believed; a larger gap means that the client began to count anew."""


class Kept(NamedTuple):
    """Frames that the bus kept in both directions, whole and in order."""

    microphone: list[bytes]
    spoken: list[bytes]

    def left_ms(self, generation: int) -> int:
        """Return how many ms of a generation's audio left for the client."""
        sizes = (len(frame) - frames.PREFIX_SIZE for frame in self.spoken if frames.parse(frame).generation == generation)
        return sum(sizes) * 1_000 // (2 * frames.OUTPUT_RATE)

    def next_sequence(self) -> int | None:
        """Return the number after that of the last frame that left; None when no frame is kept."""
        return (frames.parse(self.spoken[-1]).sequence + 1) & 0xFFFFFFFF if self.spoken else None


class Placed(NamedTuple):
    """Microphone frames with their place in the session."""

    start: int
    """Sample of the session at which the first frame begins."""

    heard: list[bytes]
    """Frames that the dead worker had heard."""

    unheard: list[bytes]
    lost: int
    """Number of samples missing before `start`."""

    @property
    def start_ms(self) -> int:
        """Start of the first frame, in ms of the session."""
        return self.start // _SAMPLES_PER_MS

    @property
    def end_ms(self) -> int:
        """End of the last frame, in ms of the session."""
        return (self.start + sum(samples(frame) for frame in (*self.heard, *self.unheard))) // _SAMPLES_PER_MS

    @property
    def lost_ms(self) -> int:
        """Milliseconds missing before the first frame."""
        return self.lost // _SAMPLES_PER_MS


async def read(log: Log, sid: str) -> Kept:
    """Read the audio that the bus has of a session, up to now. Raises `UNAVAILABLE`."""
    microphone, reply = subjects.kept_audio(sid)
    return Kept(await _stored(log, *microphone), await _stored(log, *reply))


async def _stored(log: Log, stream: str, subject: str) -> list[bytes]:
    found: list[bytes] = []
    after, more = 0, True
    while more and len(found) < FRAMES_LIMIT:
        page = await log.frames(stream, subject, after=after)
        found += [message.data for message in page.messages]
        more = page.more and bool(page.messages)
        after = position(page.messages[-1]) if page.messages else after
    return found


def place(kept: Sequence[bytes], mark: Mark | None) -> Placed:
    """Place the kept microphone frames in the session, by the newest frame whose place is known (`mark`)."""
    if mark is None:
        return Placed(0, [], list(kept), 0)
    for index, frame in enumerate(kept):
        prefix = frames.parse(frame)
        if (prefix.sequence, prefix.time_ms) == (mark.sequence, mark.time_ms):
            heard = list(kept[: index + 1])
            while sum(map(samples, heard)) > mark.samples:
                del heard[0]
            return Placed(mark.samples - sum(map(samples, heard)), heard, list(kept[index + 1 :]), 0)
    lost = 0
    if kept:
        missed = (frames.parse(kept[0]).sequence - mark.sequence - 1) & 0xFFFFFFFF
        lost = missed * samples(kept[0])
    lost = lost if lost <= _LOST_LIMIT else 0
    return Placed(mark.samples + lost, [], list(kept), lost)


def newer(live: Sequence[bytes], kept: Sequence[bytes]) -> list[bytes]:
    """Return the live frames after the last one that is also among the kept frames."""
    known = {_id(frame) for frame in kept}
    last = max((index for index, frame in enumerate(live) if _id(frame) in known), default=-1)
    return list(live[last + 1 :])


def samples(frame: bytes) -> int:
    """Return the number of samples in a microphone frame."""
    return (len(frame) - frames.PREFIX_SIZE) // 2


def _id(frame: bytes) -> tuple[int, int]:
    prefix = frames.parse(frame)
    return prefix.sequence, prefix.time_ms
