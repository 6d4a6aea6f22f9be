"""The microphone at 24 kHz: the sound is continuous, however it was split into frames."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from voxbridge.services.voice.audio.resample import Upsampler

DELAY_S = 8 / 16_000


def sine(hz: float, *, rate: int, seconds: float = 1.0, late_s: float = 0.0) -> npt.NDArray[np.float64]:
    return np.asarray(16_000 * np.sin(2 * np.pi * hz * (np.arange(int(rate * seconds)) / rate - late_s)))


def resampled(pcm: bytes, frame: int) -> npt.NDArray[np.float64]:
    upsampler = Upsampler()
    return np.frombuffer(b"".join(upsampler.feed(pcm[at : at + frame]) for at in range(0, len(pcm), frame)), "<i2").astype(np.float64)


@pytest.mark.parametrize("hz", [100, 440, 1_000, 3_000, 5_000])
@pytest.mark.parametrize("frame", [640, 320, 642, 2])
def test_a_sine_comes_out_as_the_same_sine_without_a_click(hz: float, frame: int) -> None:
    came = resampled(sine(hz, rate=16_000).astype("<i2").tobytes(), frame)
    ideal = sine(hz, rate=24_000, late_s=DELAY_S)[: came.size]
    error = np.abs(came - ideal)[100:]
    assert came.size >= 24_000 - 3
    assert error.max() < 16_000 * 0.01


def test_what_the_microphone_cannot_hold_is_not_made_up() -> None:
    """Linear interpolation between samples would mirror 7 kHz at 9 kHz, 10 dB below."""
    came = resampled(sine(7_000, rate=16_000).astype("<i2").tobytes(), 640)
    spectrum = np.abs(np.fft.rfft(came[1_000:23_000] * np.hanning(22_000)))
    hz = np.fft.rfftfreq(22_000, 1 / 24_000)
    assert spectrum[hz > 8_500].max() < spectrum.max() * 10 ** (-30 / 20)


def test_the_loudest_sound_is_cut_off_and_does_not_wrap_around() -> None:
    square = np.repeat(np.array([32_767, -32_768] * 50, "<i2"), 40)
    came = resampled(square.tobytes(), 640)
    assert (came.max(), came.min()) == (32_767, -32_768)
    middle_of_the_first = came[20:40]
    assert middle_of_the_first.min() > 25_000


@given(st.lists(st.integers(0, 400), max_size=20))
def test_frames_of_any_size_give_what_one_frame_gives(sizes: list[int]) -> None:
    pcm = np.random.default_rng(1).integers(-20_000, 20_000, sum(sizes), dtype="<i2").tobytes()
    upsampler, at, came = Upsampler(), 0, b""
    for size in sizes:
        came += upsampler.feed(memoryview(pcm)[at : at + 2 * size])
        at += 2 * size
    # Single precision depends on the order of the sums: at most one step of 65,536.
    whole = np.frombuffer(Upsampler().feed(pcm), "<i2").astype(int)
    assert np.abs(np.frombuffer(came, "<i2").astype(int) - whole).max(initial=0) <= 1
    assert len(came) == sum(sizes) // 2 * 6


def test_half_a_sample_is_refused() -> None:
    with pytest.raises(ValueError, match="multiple of element size"):
        Upsampler().feed(b"abc")
