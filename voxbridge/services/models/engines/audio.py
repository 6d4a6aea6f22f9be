"""Audio of the API: recordings to samples at 16 kHz, samples to PCM16 at 24 kHz, and their limits.

PCM16 WAV is decoded here; everything else by the decoder that comes with faster-whisper.
"""

from __future__ import annotations

import io
import wave
from typing import Final

import numpy as np
import numpy.typing as npt
import soxr

from voxbridge.shared.errors import Code, VoxbridgeError

RATE: Final = 16_000
SPEECH_RATE: Final = 24_000
MAX_SECONDS: Final = 150
MAX_BYTES: Final = 8 << 20

Samples = npt.NDArray[np.float32]


def decode(data: bytes) -> Samples:
    """Return the mono samples of a recording at 16 kHz. Raises `TOO_LARGE` or `INVALID_ARGUMENT`."""
    if len(data) > MAX_BYTES:
        raise VoxbridgeError(
            Code.TOO_LARGE, f"A recording has at most {MAX_BYTES:,} bytes, this one {len(data):,}.", field="file", limit=MAX_BYTES
        )
    samples = _wav(data) if data[:4] == b"RIFF" else None
    if samples is None:
        samples = _decoded(data)
    if samples.size == 0:
        raise VoxbridgeError(Code.INVALID_ARGUMENT, "The recording has no samples.", field="file")
    if samples.size > MAX_SECONDS * RATE:
        raise VoxbridgeError(
            Code.TOO_LARGE,
            f"A recording is at most {MAX_SECONDS} s long, this one {samples.size / RATE:.1f} s.",
            field="file",
            limit=MAX_SECONDS,
        )
    return samples


def _wav(data: bytes) -> Samples | None:
    """Return the samples of a PCM16 WAV; None for another kind of WAV."""
    try:
        with wave.open(io.BytesIO(data)) as stream:
            if stream.getsampwidth() != 2:
                return None
            rate, channels = stream.getframerate(), stream.getnchannels()
            if not 1_000 <= rate <= 384_000 or stream.getnframes() > rate * MAX_SECONDS * 2:
                raise VoxbridgeError(Code.TOO_LARGE, f"A recording is at most {MAX_SECONDS} s long.", field="file", limit=MAX_SECONDS)
            pcm = stream.readframes(stream.getnframes())
    except (wave.Error, EOFError):
        return None
    frame = 2 * channels
    mono = np.frombuffer(pcm[: len(pcm) // frame * frame], "<i2").reshape(-1, channels).mean(axis=1, dtype=np.float32) / np.float32(32_768)
    return mono if rate == RATE or not mono.size else np.asarray(soxr.resample(mono, rate, RATE), np.float32)


def _decoded(data: bytes) -> Samples:
    from faster_whisper.audio import decode_audio

    try:
        return np.asarray(decode_audio(io.BytesIO(data), sampling_rate=RATE), np.float32)
    except Exception as error:  # the decoder raises many kinds of errors, and each means that the file is not a recording
        raise VoxbridgeError(
            Code.INVALID_ARGUMENT,
            f"The file cannot be read as a recording ({type(error).__name__}); send WAV, MP3, OGG or WebM.",
            field="file",
        ) from error


def level(samples: Samples) -> float:
    """Return the root mean square of the loudest 20 ms of a recording; full scale is 1."""
    step = RATE // 50
    whole = samples[: samples.size // step * step].reshape(-1, step) if samples.size >= step else samples.reshape(1, -1)
    return float(np.sqrt(np.mean(np.square(whole), axis=1)).max())


class Resampler:
    """A resampler from PCM16 chunks of one rate to PCM16 at 24 kHz; `last` also returns the tail."""

    def __init__(self, rate: int) -> None:
        self._stream = None if rate == SPEECH_RATE else soxr.ResampleStream(rate, SPEECH_RATE, 1, dtype="int16", quality="HQ")

    def convert(self, pcm: bytes, *, last: bool = False) -> bytes:
        """Convert the next chunk."""
        if self._stream is None:
            return pcm
        return bytes(self._stream.resample_chunk(np.frombuffer(pcm, "<i2"), last=last).astype("<i2").tobytes())


def wav_of(pcm: bytes) -> bytes:
    """Return a WAV file of PCM16 at 24 kHz."""
    out = io.BytesIO()
    with wave.open(out, "wb") as stream:
        stream.setnchannels(1)
        stream.setsampwidth(2)
        stream.setframerate(SPEECH_RATE)
        stream.writeframes(pcm)
    return out.getvalue()
