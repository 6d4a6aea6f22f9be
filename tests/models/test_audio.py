"""Input recordings, output speech, and their limits."""

from __future__ import annotations

import io
import wave

import numpy as np
import pytest

from voxbridge.services.models.engines import audio
from voxbridge.services.models.engines.tts import sentences
from voxbridge.shared.errors import Code, VoxbridgeError


def wav(samples: np.ndarray, rate: int = audio.RATE, channels: int = 1) -> bytes:
    """Return a PCM16 WAV of samples from -1 to 1."""
    out = io.BytesIO()
    with wave.open(out, "wb") as stream:
        stream.setnchannels(channels)
        stream.setsampwidth(2)
        stream.setframerate(rate)
        stream.writeframes((samples * 32_767).astype("<i2").tobytes())
    return out.getvalue()


def test_a_wav_is_read_at_16_khz_mono() -> None:
    tone = np.sin(np.arange(48_000) * 2 * np.pi * 440 / 48_000)
    both = np.stack([tone, tone], axis=1).ravel()
    samples = audio.decode(wav(both, 48_000, 2))
    assert samples.dtype == np.float32
    assert samples.size == pytest.approx(16_000, abs=4)
    assert audio.level(samples) == pytest.approx(0.707, abs=0.02)


def test_the_length_of_a_recording_has_a_limit() -> None:
    assert audio.decode(wav(np.zeros(audio.MAX_SECONDS * audio.RATE))).size == audio.MAX_SECONDS * audio.RATE
    with pytest.raises(VoxbridgeError, match=f"at most {audio.MAX_SECONDS} s long") as refused:
        audio.decode(wav(np.zeros(audio.MAX_SECONDS * audio.RATE + 1)))
    assert refused.value.code is Code.TOO_LARGE
    assert refused.value.limit == audio.MAX_SECONDS


def test_the_size_of_a_recording_has_a_limit() -> None:
    with pytest.raises(VoxbridgeError, match=r"at most 8,388,608 bytes, this one 8,388,609") as refused:
        audio.decode(bytes(audio.MAX_BYTES + 1))
    assert refused.value.code is Code.TOO_LARGE


@pytest.mark.parametrize("data", [b"", b"nonsense", b"RIFF", b"RIFF\x00\x00\x00\x00WAVEfmt ", wav(np.zeros(0))])
def test_what_is_no_recording_is_refused(data: bytes) -> None:
    with pytest.raises(VoxbridgeError) as refused:
        audio.decode(data)
    assert refused.value.code is Code.INVALID_ARGUMENT
    assert refused.value.field == "file"


def test_the_resampler_keeps_length_and_tail() -> None:
    resampler = audio.Resampler(22_050)
    tone = (np.sin(np.arange(22_050) / 20) * 10_000).astype("<i2").tobytes()
    out = resampler.convert(tone[:10_000]) + resampler.convert(tone[10_000:], last=True)
    assert len(out) // 2 == pytest.approx(24_000, abs=2)


@pytest.mark.parametrize(
    ("text", "pieces"),
    [
        ("Sure, one moment.", ["Sure, one moment."]),
        ("One. Two! Three?", ["One.", "Two!", "Three?"]),
        ('He said "yes." Then he left.', ['He said "yes."', "Then he left."]),
        ("It costs 3.50 dollars.", ["It costs 3.50 dollars."]),
        ("...", []),
        ("  ", []),
        (
            "When the sun goes down behind the hills, all the birds that live in the old oak begin to sing.",
            ["When the sun goes down behind the hills,", "all the birds that live in the old oak begin to sing."],
        ),
    ],
)
def test_text_is_spoken_in_sentences_and_a_long_first_one_in_clauses(text: str, pieces: list[str]) -> None:
    assert sentences(text) == pieces
