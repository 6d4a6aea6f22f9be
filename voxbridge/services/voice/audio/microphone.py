"""A session's microphone: turns frames into detections, and notes their place in the session for a successor.

Owns the end of speech when no frame arrives any more, and the replay of frames that no worker heard. A crash loses nothing that
the bus keeps: the last ten seconds (`voxbridge.shared.log.streams.MICROPHONE_S`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any, Final

from voxbridge.services.voice.audio import catch_up as audio_catch_up
from voxbridge.services.voice.audio.speech_buffer import SpeechBuffer, Voice
from voxbridge.services.voice.audio.vad import VoiceModel
from voxbridge.services.voice.core import inputs
from voxbridge.services.voice.core.state import State
from voxbridge.shared.audio import frames

STALLED_S: Final = 1.0
"""Seconds without a frame in the middle of speech after which the speech has ended: the client stopped sending without notice. While the
bus is away, missing frames prove nothing."""

MARK_MS: Final = 1_500
"""Milliseconds between two notes of the microphone's place: even a late successor finds the last one among the frames in the bus."""

_MARK_SAMPLES: Final = MARK_MS * frames.INPUT_RATE // 1_000


class Microphone:
    """Microphone of one session: takes whole frames and gives the core `MicrophoneAt`, `VoiceStarted`, `VoicePaused` and
    `VoiceStopped`."""

    def __init__(self, vad: VoiceModel, take: Callable[[Any], None], reached: Callable[[], bool], *, pauses: bool = True) -> None:
        """Create the microphone. `reached` tells whether frames can arrive now; without `pauses` no `VoicePaused` is given."""
        self._pauses = pauses
        self._reached = reached
        self._take = take
        self._ears = SpeechBuffer(vad, self._changed)
        self._mark: inputs.MicrophoneAt | None = None
        """Place of the frame that is being heard."""

        self._passed: bytes | None = None
        """Newest frame, if another listener heard it; its prefix is not parsed yet."""

        self._noted: inputs.MicrophoneAt | None = None
        self._changes: list[tuple[inputs.MicrophoneAt, Voice]] | None = None
        self._stalled: asyncio.TimerHandle | None = None
        self._cut = False
        """True if no frame could arrive at the last check."""

    def hear(self, frame: bytes) -> int:
        """Listen to a frame; return the sample of the session at which it ends."""
        mark = self._next(frame)
        if self._noted is None or mark.samples - self._noted.samples >= _MARK_SAMPLES:
            self._note(mark)
        self._ears.listen(memoryview(frame)[frames.PREFIX_SIZE :])
        self._watch()
        return mark.samples

    def pass_by(self, frame: bytes) -> int:
        """Count a frame that another listener hears; return the sample of the session at which it ends."""
        count = audio_catch_up.samples(frame)
        end = self._ears.samples + count
        if self._noted is None or end - self._noted.samples >= _MARK_SAMPLES:
            self._note(self._next(frame))
        self._ears.skip(count)
        self._passed = frame
        return end

    def skip_to(self, samples: int) -> None:
        """Skip the audio up to this sample of the session, which another listener heard."""
        self._ears.skip(samples - self._ears.samples)

    def recall(self, state: State, placed: audio_catch_up.Placed) -> None:
        """Replay, without reports, the frames that a dead worker had heard: the audio that it was about to transcribe is here again."""
        utterance = state.utterance
        self._ears.restore(
            placed.start,
            (memoryview(frame)[frames.PREFIX_SIZE :] for frame in placed.heard),
            utterance_ms=utterance.from_ms if utterance is not None else None,
            speaking=utterance is not None and utterance.to_ms is None,
        )

    def catch_up(self, unheard: Sequence[bytes]) -> None:
        """Listen to frames that no worker heard, and report all that follows from them."""
        changes = self._changes = []
        for frame in unheard:
            self._next(frame)
            self._ears.listen(memoryview(frame)[frames.PREFIX_SIZE :])
        self._changes = None
        for index, (mark, change) in enumerate(changes):
            self._note(mark)
            if isinstance(change, inputs.VoiceStopped):  # the length of the silence is known by now
                end = changes[index + 1][1].audio_ms if index + 1 < len(changes) else self._ears.end_ms
                self._take(inputs.VoiceStopped(change.audio_ms, end - change.audio_ms))
            else:
                self._take(change)
        self._watch()

    def close(self) -> None:
        """Reset the microphone that the client released: no speech is in progress any more."""
        self._ears.close()
        if self._passed is not None:
            self._mark = _mark(self._passed, self._ears.samples)
        if self._mark is not None:
            self._note(self._mark)

    def release(self) -> None:
        """Stop keeping the audio of an utterance: none needs it any more."""
        self._ears.release()

    def stop(self) -> None:
        """Report nothing more: cancel the timer that ends stalled speech."""
        if self._stalled is not None:
            self._stalled.cancel()

    @property
    def end_ms(self) -> int:
        """End of the audio heard so far, ms."""
        return self._ears.end_ms

    def audio(self, from_ms: int, to_ms: int) -> bytes:
        """Return the PCM16 of a range, as far as it is kept."""
        return self._ears.audio(from_ms, to_ms)

    def _next(self, frame: bytes) -> inputs.MicrophoneAt:
        self._mark, self._passed = _mark(frame, self._ears.samples + audio_catch_up.samples(frame)), None
        return self._mark

    def _note(self, mark: inputs.MicrophoneAt) -> None:
        self._noted = mark
        self._take(mark)

    def _changed(self, change: Voice) -> None:
        mark = self._mark
        if mark is None or (isinstance(change, inputs.VoicePaused) and not self._pauses):
            return
        if self._changes is not None:
            if not isinstance(change, inputs.VoicePaused):  # it is over by now
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
