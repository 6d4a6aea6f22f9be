"""Resampling of the microphone: PCM16 from 16 kHz to 24 kHz, frame by frame, as if it were one piece. Pure arithmetic.

A polyphase filter: every two input samples give three output samples, each a weighted sum of the samples around its place in time. The
weights are a windowed sinc, which avoids the distortion and the images of linear interpolation. A frame is one matrix product, about
8 µs for 20 ms. The last samples are kept between frames; losing them costs half a millisecond of sound.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

_IN: Final = 2
_OUT: Final = 3
_TAPS: Final = 18
"""Input samples of one window, which yields three output samples and advances by two input samples."""

_CENTRE: Final = 8
_CUTOFF: Final = 0.92
"""Cutoff as a share of the input's highest frequency: leaves the filter room to fall off."""

_PEAK: Final = 32_767
_LOWEST: Final = -32_768


def _weights() -> npt.NDArray[np.float32]:
    """Return a column of weights for each of the three outputs. Each column sums to 1, so that a constant level stays the same."""
    columns = []
    for phase in range(_OUT):
        distance = np.arange(_TAPS) - (_CENTRE + phase * _IN / _OUT)
        window = np.cos(np.clip(distance / (_CENTRE + 1), -1, 1) * np.pi / 2) ** 2
        column = np.sinc(distance * _CUTOFF) * window
        columns.append(column / column.sum())
    return np.array(columns, dtype=np.float32).T.copy()


_WEIGHTS: Final = _weights()


class Upsampler:
    """Converter of a stream of PCM16 from 16 kHz to 24 kHz, with a delay of half a millisecond."""

    def __init__(self) -> None:
        self._rest = np.zeros(_TAPS - _IN, dtype=np.float32)

    def feed(self, pcm: bytes | memoryview) -> bytes:
        """Return the next samples at 24 kHz, three for two. An odd sample waits for the next frame.

        Raises `ValueError` for half a sample.
        """
        samples = np.concatenate((self._rest, np.frombuffer(pcm, dtype="<i2")), dtype=np.float32)
        pairs = (samples.size - _TAPS) // _IN + 1
        self._rest = samples[max(0, pairs) * _IN :]
        if pairs < 1:
            return b""
        step = samples.itemsize
        windows = np.ndarray((pairs, _TAPS), np.float32, samples, strides=(_IN * step, step))
        made = windows @ _WEIGHTS
        np.rint(made, out=made)
        np.clip(made, _LOWEST, _PEAK, out=made)
        return made.astype("<i2").tobytes()
