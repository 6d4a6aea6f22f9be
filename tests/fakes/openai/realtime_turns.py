"""Turns of a scripted OpenAI Realtime model, and audio for them."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import numpy as np


class Turn(msgspec.Struct, frozen=True, kw_only=True):
    """Transcript of the user's audio, and the model's response. An empty turn ends without output."""

    hears: str = "Hello there."
    says: str = ""
    audio_ms: int = 0
    level: int = 4_000
    """Peak of the audio."""

    writes: str = ""
    calls: tuple[tuple[str, str], ...] = ()
    """Names and arguments of function calls."""

    status: str = "completed"
    reason: str = ""
    """Reason, or error code, of a status other than `completed`."""

    hold_after_ms: int = -1
    """Milliseconds of audio after which the model pauses, until it is cancelled or `Session.release` is called; -1: never."""

    hold_call: bool = False
    """The model pauses within the first call."""

    hears_twice: bool = False
    unheard: bool = False
    """The transcription fails."""

    broken: str = ""
    """Message that is sent unchanged in the middle of the response."""


def tone(ms: int, *, rate: int = 16_000, peak: int = 8_000) -> bytes:
    """Return a PCM16 tone that a loudness detector takes for speech."""
    return (peak * np.sin(2 * np.pi * 300 * np.arange(ms * rate // 1_000) / rate)).astype("<i2").tobytes()


def frames(pcm: bytes, *, ms: int = 20, rate: int = 16_000) -> Sequence[bytes]:
    """Split PCM16 into frames."""
    size = ms * rate // 500
    return [pcm[at : at + size] for at in range(0, len(pcm), size)]
