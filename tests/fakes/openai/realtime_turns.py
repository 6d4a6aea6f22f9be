"""What a scripted OpenAI Realtime model hears and says, and sound to say it with."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import numpy as np


class Turn(msgspec.Struct, frozen=True, kw_only=True):
    """What the service hears in the user's audio, and what the model makes of it. An empty turn ends without a word."""

    hears: str = "Hello there."
    says: str = ""
    audio_ms: int = 0
    level: int = 4_000
    """Peak of the audio."""

    writes: str = ""
    calls: tuple[tuple[str, str], ...] = ()
    """Names and arguments."""

    status: str = "completed"
    reason: str = ""
    """Of a status that is not `completed`: the reason, or the code of the error."""

    hold_after_ms: int = -1
    """The model pauses here, until it is cancelled or `Session.release` is called."""

    hold_call: bool = False
    """The model pauses within the first call."""

    hears_twice: bool = False
    unheard: bool = False
    """The transcription fails."""

    broken: str = ""
    """Sent as it is, in the middle of the response."""


def tone(ms: int, *, rate: int = 16_000, peak: int = 8_000) -> bytes:
    """Speech, as far as a detector of loudness is concerned: PCM16."""
    return (peak * np.sin(2 * np.pi * 300 * np.arange(ms * rate // 1_000) / rate)).astype("<i2").tobytes()


def frames(pcm: bytes, *, ms: int = 20, rate: int = 16_000) -> Sequence[bytes]:
    """PCM16 in frames."""
    size = ms * rate // 500
    return [pcm[at : at + size] for at in range(0, len(pcm), size)]
