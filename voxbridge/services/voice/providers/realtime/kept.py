"""The last seconds of the microphone, kept for a connection that is opened in the middle of speech.

Owns which frames are kept, and the messages between them that belong there, such as the end of speech: a connection that hears the audio
again gets these messages again. Does not own when they are sent (`link`). A crash loses them; the bus keeps the audio.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from typing import Final

from voxbridge.services.voice.audio.catch_up import samples as samples_of
from voxbridge.services.voice.providers.realtime.base import Connection
from voxbridge.shared.audio.frames import INPUT_RATE

KEPT_MS: Final = 10_000
"""Milliseconds of the microphone that are kept for a connection opened in the middle of speech."""

RESTING_MS: Final = 3_000
"""The same while a connection hears the audio and the user waits for no answer. The audio that is replayed then is the last
`core.realtime.connection.REPLAY_MS`, or begins a second before words that came a moment ago."""

KEPT_LIMIT: Final = 4_096
"""Number of frames, and of messages between them, that are kept; of tiny frames the oldest are dropped sooner."""

_SAMPLES_PER_MS: Final = INPUT_RATE // 1_000

Saying = Callable[[Connection], Awaitable[None]]
"""A message to a model, as the call that sends it."""


@dataclass(frozen=True)
class Activity:
    """Message that the user began or stopped speaking."""

    speaking: bool

    async def __call__(self, connection: Connection) -> None:
        """Send the message."""
        await connection.activity(speaking=self.speaking)


class KeptMicrophone:
    """Frames and messages, oldest first, each with its number and the sample it ends at."""

    def __init__(self) -> None:
        self._kept: deque[tuple[int, int, bytes | Saying]] = deque(maxlen=KEPT_LIMIT)
        self._number = 0
        self._opened = 0
        """Number of the last entry before the current connection was asked for."""

        self._samples = 0

    @property
    def ms(self) -> int:
        """Milliseconds of the session's microphone audio heard so far."""
        return self._samples // _SAMPLES_PER_MS

    @property
    def long(self) -> bool:
        """True if more is kept than is needed at rest."""
        return self._kept[0][1] < self._samples - RESTING_MS * _SAMPLES_PER_MS

    def restore(self, start: int, frames: Iterable[bytes]) -> int:
        """Add frames from the sample `start` on; return the sample at which they end."""
        self._samples = start
        for frame in frames:
            self.add(frame, self._samples + samples_of(frame))
        return self._samples

    def add(self, frame: bytes, samples: int) -> None:
        """Add a frame, which ends at this sample of the session."""
        self._samples = samples
        self._append(frame)

    def mark(self, saying: Saying) -> None:
        """Add a message that belongs after the last frame."""
        self._append(saying)

    def shorten(self, *, resting: bool) -> None:
        """Drop what no connection will hear again."""
        kept, first = self._kept, self._samples - (RESTING_MS if resting else KEPT_MS) * _SAMPLES_PER_MS
        while kept[0][1] < first:
            kept.popleft()

    def begin_connection(self) -> None:
        """Drop the activity that was reported to the last connection: the next one's `Connect` says whether the user speaks."""
        self._opened = self._number
        self._kept = deque((one for one in self._kept if not isinstance(one[2], Activity)), maxlen=KEPT_LIMIT)

    def before(self, from_ms: int) -> int:
        """Return the number of the last entry that the current connection does not hear: it hears the audio from `from_ms` on, and all
        that came since it was asked for."""
        start = from_ms * _SAMPLES_PER_MS
        return next((number for number, end, _ in self._kept if end > start or number > self._opened), self._number + 1) - 1

    def after(self, sent: int) -> list[tuple[int, bytes | Saying]]:
        """Return the entries after this number."""
        return [(number, what) for number, _, what in self._kept if number > sent]

    def _append(self, what: bytes | Saying) -> None:
        self._number += 1
        self._kept.append((self._number, self._samples, what))
