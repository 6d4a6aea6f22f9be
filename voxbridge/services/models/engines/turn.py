"""End-of-turn detection: Smart Turn reads the last 8 s of speech and estimates whether the speaker has finished.

Use it only after a pause in speech: silence alone counts as finished. It runs on one thread; the caller keeps it off the event loop.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import msgspec
import numpy as np
import onnxruntime
from faster_whisper.feature_extractor import FeatureExtractor

from voxbridge.services.models.engines.audio import RATE, Samples

SECONDS: Final = 8
COMPLETE: Final = 0.5


class Turn(msgspec.Struct, frozen=True):
    """The probability that the turn is complete, and whether it is above one half."""

    probability: float
    complete: bool


class SmartTurn:
    """A loaded Smart Turn model."""

    def __init__(self, weights: Path) -> None:
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        self._session: Any = onnxruntime.InferenceSession(str(weights), options, providers=["CPUExecutionProvider"])
        self._features: Any = FeatureExtractor(chunk_length=SECONDS)

    def predict(self, samples: Samples) -> Turn:
        """Return the probability that a recording at 16 kHz ends a turn."""
        last = samples[-SECONDS * RATE :]
        last = np.pad(last, (SECONDS * RATE - last.size, 0))
        last = (last - last.mean()) / np.sqrt(last.var() + 1e-7)
        mel = self._features(last.astype(np.float32), padding=0)[None].astype(np.float32)
        probability = float(np.ravel(self._session.run(None, {"input_features": mel})[0])[0])
        return Turn(probability, probability > COMPLETE)
