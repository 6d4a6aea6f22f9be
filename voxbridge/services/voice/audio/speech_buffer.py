"""A session's microphone audio: detects speech in it and keeps what may have to be transcribed.

Audio is addressed in ms from the first sample of the session. The last seconds are kept, and all of the current utterance up to
`LONGEST_MS`. A crash loses the audio; the bus keeps its last seconds, from which a successor continues (`restore`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

from voxbridge.services.voice.audio.vad import WINDOW, WINDOW_MS, Detector, VoiceModel
from voxbridge.services.voice.core import inputs
from voxbridge.services.voice.core.outputs import AUDIO_END
from voxbridge.shared.audio.frames import INPUT_RATE

PREROLL_MS: Final = 2_000
"""Milliseconds kept while the user is silent: speech starts before it is detected."""

LONGEST_MS: Final = 120_000
"""Milliseconds kept of one utterance. A longer one is transcribed in pieces, cut at pauses; of one without a pause, the end is kept. The
models take a little more."""

Voice = inputs.VoiceStarted | inputs.VoicePaused | inputs.VoiceStopped
_BYTES_PER_MS: Final = INPUT_RATE * 2 // 1_000
_WINDOW_BYTES: Final = WINDOW * 2
_TRIM_AT: Final = 64 * 1024


class SpeechBuffer:
    """Speech detector and audio buffer: takes PCM16 at 16 kHz; calls `hear` with `VoiceStarted`, `VoicePaused` and `VoiceStopped`."""

    def __init__(self, model: VoiceModel, hear: Callable[[Voice], None]) -> None:
        self._detector = Detector(model)
        self._hear = hear
        self._audio = bytearray()
        self._start = 0
        """Byte position of the first byte kept."""

        self._seen = 0
        """Byte position up to which windows were analysed."""

        self._keep_from: int | None = None
        """Byte position from which all audio must be kept; None while there is no utterance."""

    def listen(self, pcm: bytes | memoryview) -> None:
        """Take the samples of a frame."""
        self._audio += pcm
        end = self._start + len(self._audio)
        while end - self._seen >= _WINDOW_BYTES:
            offset = self._seen - self._start
            change = self._detector.feed(self._audio[offset : offset + _WINDOW_BYTES])
            self._seen += _WINDOW_BYTES
            if change is None:
                continue
            since_ms = self._detector.windows * WINDOW_MS
            at_ms = max(0, self._seen // _BYTES_PER_MS - since_ms)
            if change == "started":
                if self._keep_from is None:  # otherwise it continues an utterance, which is transcribed from its start
                    self._keep_from = max(self._start, (at_ms - PREROLL_MS) * _BYTES_PER_MS)
                self._hear(inputs.VoiceStarted(at_ms))
            elif change == "paused":
                self._hear(inputs.VoicePaused(at_ms))
            else:
                self._hear(inputs.VoiceStopped(at_ms, since_ms))
        self._trim(end)

    def restore(self, start: int, heard: Iterable[bytes | memoryview], *, utterance_ms: int | None, speaking: bool) -> None:
        """Continue for a worker that died. `heard` is the audio that it had from the sample `start` on; it is kept and not reported.
        `utterance_ms` is the start of the current utterance, and `speaking` tells whether speech is in progress."""
        self._start = self._seen = 2 * start
        keep = None if utterance_ms is None else max(self._start, (utterance_ms - PREROLL_MS) * _BYTES_PER_MS)
        hear, self._hear, self._keep_from = self._hear, lambda _: None, keep
        for pcm in heard:
            self.listen(pcm)
        self._hear, self._keep_from = hear, keep
        self._detector.believe(speaking)

    def skip(self, samples: int) -> None:
        """Skip this many samples, which another listener hears."""
        self._start += len(self._audio) + 2 * samples
        self._audio.clear()
        self._seen = self._start
        self._keep_from = None

    @property
    def samples(self) -> int:
        """Number of samples received so far."""
        return (self._start + len(self._audio)) // 2

    @property
    def speaking(self) -> bool:
        """True while speech is in progress."""
        return self._detector.speaking

    @property
    def end_ms(self) -> int:
        """End of the audio received so far, ms."""
        return (self._start + len(self._audio)) // _BYTES_PER_MS

    def close(self) -> None:
        """Forget speech in progress: the microphone was closed."""
        self._detector.reset()

    def release(self) -> None:
        """Stop keeping the audio of an utterance, unless speech is in progress: none needs it any more."""
        if not self._detector.speaking:
            self._keep_from = None

    def audio(self, from_ms: int, to_ms: int) -> bytes:
        """Return the PCM16 of a range, as far as it is kept; `AUDIO_END` as its end stands for now."""
        start = max(0, from_ms * _BYTES_PER_MS - self._start)
        end = len(self._audio) if to_ms == AUDIO_END else max(start, to_ms * _BYTES_PER_MS - self._start)
        return bytes(self._audio[start:end])

    def _trim(self, end: int) -> None:
        keep = end - PREROLL_MS * _BYTES_PER_MS
        if self._keep_from is not None:
            keep = max(min(keep, self._keep_from), end - LONGEST_MS * _BYTES_PER_MS)
        surplus = (keep - self._start) & ~1
        if surplus >= _TRIM_AT:
            del self._audio[:surplus]
            self._start += surplus
