"""Synthetic microphone audio for tests: PCM16 at 16 kHz. The voice is a pulse train through the formants of five vowels."""

from __future__ import annotations

from functools import cache

import numpy as np

from voxbridge.shared.audio.frames import INPUT_RATE

_VOWELS = ((730, 1090, 2440), (270, 2290, 3010), (300, 870, 2240), (530, 1840, 2480), (570, 840, 2410))
_BANDWIDTHS = (80, 90, 120)
_SYLLABLE = 0.18


def silence(ms: int) -> bytes:
    """Return silence."""
    return bytes(ms * INPUT_RATE * 2 // 1_000)


def noise(ms: int, *, level: float = 0.05) -> bytes:
    """Return white noise."""
    samples = np.random.default_rng(7).standard_normal(ms * INPUT_RATE // 1_000) * level
    return (np.clip(samples, -1, 1) * 32_767).astype("<i2").tobytes()


def clicks(ms: int, *, every_ms: int = 300) -> bytes:
    """Return keyboard-like clicks: one loud impulse now and then."""
    samples = np.zeros(ms * INPUT_RATE // 1_000)
    for start in range(0, len(samples), every_ms * INPUT_RATE // 1_000):
        samples[start : start + 40] = 0.9 * (-1.0) ** np.arange(min(40, len(samples) - start))
    return (samples * 32_767).astype("<i2").tobytes()


def typing(ms: int) -> bytes:
    """Return keys that are pressed 4 to 16 times a second: bursts of noise that fade in 2 to 20 ms."""
    chance = np.random.default_rng(7)
    samples, at = np.zeros(ms * INPUT_RATE // 1_000), 0
    while at < len(samples):
        time = np.arange(min(INPUT_RATE // 4, len(samples) - at)) / INPUT_RATE
        burst = chance.standard_normal(len(time)) * np.exp(-time / chance.uniform(0.002, 0.02))
        samples[at : at + len(time)] += burst * chance.uniform(0.03, 0.3)
        at += int(chance.uniform(0.06, 0.25) * INPUT_RATE)
    return (np.clip(samples, -1, 1) * 32_767).astype("<i2").tobytes()


def beeps(ms: int) -> bytes:
    """Return a tone each second, of 50 to 400 ms and 300 to 2,500 Hz."""
    chance = np.random.default_rng(7)
    samples = np.zeros(ms * INPUT_RATE // 1_000)
    for start in range(0, len(samples), INPUT_RATE):
        time = np.arange(min(int(chance.uniform(0.05, 0.4) * INPUT_RATE), len(samples) - start)) / INPUT_RATE
        samples[start : start + len(time)] = np.sin(2 * np.pi * chance.uniform(300, 2_500) * time) * chance.uniform(0.05, 0.4)
    return (samples * 32_767).astype("<i2").tobytes()


@cache
def speech(ms: int) -> bytes:
    """Return a voice that sings vowels for `ms`."""
    count = ms * INPUT_RATE // 1_000
    time = np.arange(count) / INPUT_RATE
    pitch = 120 + 15 * np.sin(2 * np.pi * 0.7 * time) + 8 * np.sin(2 * np.pi * 3.1 * time)
    source = np.diff(np.floor(np.cumsum(pitch) / INPUT_RATE), prepend=0.0)
    source += 0.01 * np.random.default_rng(1).standard_normal(count)
    out = np.zeros(count)
    length = int(_SYLLABLE * INPUT_RATE)
    for number, start in enumerate(range(0, count, length)):
        syllable = source[start : start + length]
        for formant, width in zip(_VOWELS[number % len(_VOWELS)], _BANDWIDTHS, strict=True):
            syllable = _resonance(syllable, formant, width)
        out[start : start + length] = syllable * np.sqrt(np.sin(np.pi * np.arange(len(syllable)) / len(syllable)))
    out *= 0.5 / np.abs(out).max()
    return (out * 32_767).astype("<i2").tobytes()


def _resonance(samples: np.ndarray, frequency: float, width: float) -> np.ndarray:
    radius = np.exp(-np.pi * width / INPUT_RATE)
    first, second = 2 * radius * np.cos(2 * np.pi * frequency / INPUT_RATE), -radius * radius
    out = np.zeros(len(samples))
    before, earlier = 0.0, 0.0
    for index, sample in enumerate(samples):
        earlier, before = before, sample + first * before + second * earlier
        out[index] = before
    return out
