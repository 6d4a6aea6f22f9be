"""Voice activity detection with Silero's model, one small network state for each session. No audio is kept here."""

from __future__ import annotations

from pathlib import Path
from typing import Final, Literal, Protocol

import numpy as np
import numpy.typing as npt
import onnxruntime

from voxbridge.shared.audio.frames import INPUT_RATE
from voxbridge.shared.errors import Code, VoxbridgeError

WINDOW: Final = 512
"""Samples per decision: 32 ms at 16 kHz."""

WINDOW_MS: Final = WINDOW * 1_000 // INPUT_RATE
_CONTEXT: Final = 64

START: Final = 0.5
STOP: Final = 0.35
"""Probabilities from which voice begins and below which it ends. They differ, so that a hovering probability does not toggle the state."""

START_WINDOWS: Final = 3
"""Consecutive windows of voice that make speech: 96 ms, so that a click or a key press is not speech."""

SURE: Final = 0.8
"""Probability of a window with which one window less makes speech. Sounds that are no voice seldom reach it (docs/performance.md)."""

STOP_WINDOWS: Final = 8
"""Consecutive windows of silence that end speech: 256 ms."""

PAUSE_WINDOWS: Final = 5
"""Consecutive windows of silence that may become the end: 160 ms, longer than most stops within a word."""

Change = Literal["started", "paused", "stopped"]
Samples = npt.NDArray[np.float32]


class SileroModel:
    """The model's weights, shared by all sessions of a process. A decision takes about 0.12 ms on one thread."""

    def __init__(self, path: Path) -> None:
        """Load the model. Raises `UNAVAILABLE` when the file is missing."""
        if not path.is_file():
            raise VoxbridgeError(Code.UNAVAILABLE, f"The voice activity model is missing at {path}: run `voxbridge models get`.")
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        options.log_severity_level = 3
        self._session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
        self._rate = np.array(INPUT_RATE, dtype=np.int64)

    def run(self, window: Samples, state: Samples) -> tuple[float, Samples]:
        """Return `(probability, next state)` for context and window, 576 samples from -1 to 1."""
        probability, state = self._session.run(None, {"input": window[np.newaxis, :], "state": state, "sr": self._rate})
        return float(probability[0, 0]), state


class VoiceModel(Protocol):
    """A model of voice activity."""

    def run(self, window: Samples, state: Samples) -> tuple[float, Samples]:
        """Return `(probability, next state)` for context and window, 576 samples from -1 to 1."""


class Detector:
    """Detector of the beginning and end of speech in one session's microphone audio."""

    def __init__(self, model: VoiceModel) -> None:
        self.speaking = False
        self.windows = 0
        """Consecutive windows that made the last change."""

        self._model = model
        self._state = np.zeros((2, 1, 128), dtype=np.float32)
        self._window = np.zeros(_CONTEXT + WINDOW, dtype=np.float32)
        self._run = 0

    def feed(self, pcm: bytes | bytearray | memoryview) -> Change | None:
        """Take one window of PCM16. Return the change that it completes: speech began, is silent, or ended `windows` ago."""
        self._window[:_CONTEXT] = self._window[WINDOW:]
        self._window[_CONTEXT:] = np.frombuffer(pcm, dtype="<i2")
        self._window[_CONTEXT:] /= 32_768.0
        probability, self._state = self._model.run(self._window, self._state)
        if self.speaking:
            self._run = self._run + 1 if probability < STOP else 0
            if self._run >= STOP_WINDOWS:
                return self._changed("stopped", speaking=False)
            if self._run == PAUSE_WINDOWS:
                self.windows = self._run
                return "paused"
        else:
            self._run = self._run + 1 if probability >= START else 0
            if self._run >= (START_WINDOWS - 1 if probability >= SURE else START_WINDOWS):
                return self._changed("started", speaking=True)
        return None

    def _changed(self, change: Change, *, speaking: bool) -> Change:
        self.speaking, self.windows, self._run = speaking, self._run, 0
        return change

    def believe(self, speaking: bool) -> None:
        """Continue from the state that another detector had at this place."""
        if self.speaking is not speaking:
            self.speaking, self._run = speaking, 0

    def reset(self) -> None:
        """Forget speech in progress: the microphone was closed."""
        self.speaking, self._run = False, 0
        self._state.fill(0)
