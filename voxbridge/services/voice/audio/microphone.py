"""A session's microphone: frames into detections, with their place in the session noted for a successor.

Owns when speech counts as over because no frame comes any more, and hearing again what nobody heard. A crash loses nothing that
the bus keeps: its last ten seconds (`voxbridge.shared.log.streams.MICROPHONE_S`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any, Final

from voxbridge.services.voice.audio import catch_up as audio_catch_up
from voxbridge.services.voice.audio.speech_buffer import Ears
from voxbridge.services.voice.core import inputs
from voxbridge.services.voice.core.state import State
from voxbridge.shared.audio import frames

STALLED_S: Final = 1.0
"""After this long without a frame in the middle of speech, the speech has ended: its client went silent without a word. While the bus is
away nobody can tell."""

MARK_MS: Final = 1_500
"""Between two notes of where the microphone is: a successor finds the last one among what the bus keeps, also where it comes late."""

_MARK_SAMPLES: Final = MARK_MS * frames.INPUT_RATE // 1_000
Voice = inputs.VoiceStarted | inputs.VoiceStopped


class Microphone:
    """Takes whole frames; gives the core `MicrophoneAt`, `VoiceStarted` and `VoiceStopped`."""

    def __init__(self, vad: Any, take: Callable[[Any], None], reached: Callable[[], bool]) -> None:
        """`reached` says whether frames can come now."""
        self._reached = reached
        self._take = take
        self._ears = Ears(vad, self._changed)
        self._mark: inputs.MicrophoneAt | None = None
        """The frame that is being heard."""

        self._passed: bytes | None = None
        """The newest frame that somebody else listened to, and nobody read."""

        self._noted: inputs.MicrophoneAt | None = None
        self._changes: list[tuple[inputs.MicrophoneAt, Voice]] | None = None
        self._stalled: asyncio.TimerHandle | None = None
        self._cut = False
        """No frame could come at the last look."""

    def hear(self, frame: bytes) -> int:
        """A frame came; returns the sample of the session at which it ends."""
        mark = self._next(frame)
        if self._noted is None or mark.samples - self._noted.samples >= _MARK_SAMPLES:
            self._note(mark)
        self._ears.listen(memoryview(frame)[frames.PREFIX_SIZE :])
        self._watch()
        return mark.samples

    def pass_by(self, frame: bytes) -> int:
        """A frame came that somebody else listens to; returns the sample of the session at which it ends."""
        count = audio_catch_up.samples(frame)
        end = self._ears.samples + count
        if self._noted is None or end - self._noted.samples >= _MARK_SAMPLES:
            self._note(self._next(frame))
        self._ears.skip(count)
        self._passed = frame
        return end

    def skip_to(self, samples: int) -> None:
        """Audio up to this sample of the session was heard by somebody else."""
        self._ears.skip(samples - self._ears.samples)

    def recall(self, state: State, placed: audio_catch_up.Placed) -> None:
        """Hear in silence what a dead worker had heard: what it was about to have transcribed is there again."""
        utterance = state.utterance
        self._ears.restore(
            placed.start,
            (memoryview(frame)[frames.PREFIX_SIZE :] for frame in placed.heard),
            utterance_ms=utterance.from_ms if utterance is not None else None,
            speaking=utterance is not None and utterance.to_ms is None,
        )

    def catch_up(self, unheard: Sequence[bytes]) -> None:
        """Hear what nobody heard, with all that follows from it."""
        changes = self._changes = []
        for frame in unheard:
            self._next(frame)
            self._ears.listen(memoryview(frame)[frames.PREFIX_SIZE :])
        self._changes = None
        for index, (mark, change) in enumerate(changes):
            self._note(mark)
            if isinstance(change, inputs.VoiceStopped):  # it is known by now how long the silence lasted
                end = changes[index + 1][1].audio_ms if index + 1 < len(changes) else self._ears.end_ms
                self._take(inputs.VoiceStopped(change.audio_ms, end - change.audio_ms))
            else:
                self._take(change)
        self._watch()

    def close(self) -> None:
        """The client released it: no speech is in progress any more."""
        self._ears.close()
        if self._passed is not None:
            self._mark = _mark(self._passed, self._ears.samples)
        if self._mark is not None:
            self._note(self._mark)

    def release(self) -> None:
        """No utterance needs its audio any more."""
        self._ears.release()

    def stop(self) -> None:
        """Tell nothing more."""
        if self._stalled is not None:
            self._stalled.cancel()

    def audio(self, from_ms: int, to_ms: int) -> bytes:
        """PCM16 of a range, as far as it is kept."""
        return self._ears.audio(from_ms, to_ms)

    def _next(self, frame: bytes) -> inputs.MicrophoneAt:
        self._mark, self._passed = _mark(frame, self._ears.samples + audio_catch_up.samples(frame)), None
        return self._mark

    def _note(self, mark: inputs.MicrophoneAt) -> None:
        self._noted = mark
        self._take(mark)

    def _changed(self, change: Voice) -> None:
        mark = self._mark
        if mark is None:
            return
        if self._changes is not None:
            self._changes.append((mark, change))
            return
        self._note(mark)
        self._take(change)

    def _watch(self) -> None:
        if self._ears.speaking and self._stalled is None:
            self._stalled = asyncio.get_running_loop().call_later(STALLED_S, self._look, self._ears.end_ms)

    def _look(self, end_ms: int) -> None:
        self._stalled = None
        ears = self._ears
        if not ears.speaking:
            return
        was_cut, self._cut = self._cut, not self._reached()
        if ears.end_ms > end_ms or was_cut or self._cut:
            self._watch()
            return
        self.close()
        self._take(inputs.VoiceStopped(end_ms, round(STALLED_S * 1_000)))


def _mark(frame: bytes, end: int) -> inputs.MicrophoneAt:
    prefix = frames.parse(frame)
    return inputs.MicrophoneAt(samples=end, sequence=prefix.sequence, time_ms=prefix.time_ms)
