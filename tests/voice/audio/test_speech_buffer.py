"""Speech detection with the real weights: the begin and end of speech, and the audio that is kept."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.voice.sounds import beeps, clicks, noise, silence, speech, typing
from voxbridge.services.voice.audio.speech_buffer import LONGEST_MS, PREROLL_MS, SpeechBuffer, Voice
from voxbridge.services.voice.audio.vad import PAUSE_WINDOWS, START, START_WINDOWS, STOP_WINDOWS, SURE, WINDOW_MS, SileroModel
from voxbridge.services.voice.core.inputs import VoicePaused, VoiceStarted, VoiceStopped
from voxbridge.services.voice.core.outputs import AUDIO_END
from voxbridge.shared.errors import Code, VoxbridgeError

BYTES_PER_MS = 32
SLACK = 64 * 1024
"""Bytes that may be kept beyond the needed ones, since memory is freed in blocks."""


class Loudness:
    """A model of the same shape that takes loud audio for speech: for tests of the buffer, where weights would only cost time."""

    def __init__(self, sure: float = START) -> None:
        self.sure = sure

    def run(self, window: Any, state: Any) -> tuple[float, Any]:
        return self.sure * float(np.abs(window[64:]).mean() > 0.1), state


def hear(model: Any, pcm: bytes, size: int = 640) -> tuple[SpeechBuffer, list[Voice]]:
    heard: list[Voice] = []
    ears = SpeechBuffer(model, heard.append)
    for start in range(0, len(pcm), size):
        ears.listen(pcm[start : start + size])
    return ears, heard


def bounds(heard: list[Voice]) -> list[Any]:
    """Return the beginnings and ends, without the pauses."""
    return [one for one in heard if not isinstance(one, VoicePaused)]


def loud(ms: int) -> bytes:
    return b"\x00\x40" * (ms * 16)


@pytest.mark.parametrize(
    "sound",
    [silence(4_000), noise(4_000), noise(4_000, level=0.3), clicks(4_000), typing(20_000), beeps(20_000)],
    ids=["silence", "noise", "loud noise", "clicks", "typing", "beeps"],
)
def test_what_is_no_voice_is_not_heard(silero: SileroModel, sound: bytes) -> None:
    assert hear(silero, sound)[1] == []


def test_speech_is_found_where_it_begins_and_ends(silero: SileroModel) -> None:
    _, heard = hear(silero, silence(1_000) + speech(2_000) + silence(1_000))
    started, paused, stopped = heard
    assert isinstance(started, VoiceStarted)
    assert isinstance(stopped, VoiceStopped)
    assert paused == VoicePaused(stopped.audio_ms)
    assert started.audio_ms == pytest.approx(1_000, abs=200)
    assert stopped.audio_ms == pytest.approx(3_000, abs=250)
    assert stopped.silence_ms == STOP_WINDOWS * WINDOW_MS


def test_speech_in_noise_is_found_too(silero: SileroModel) -> None:
    quiet = np.frombuffer(noise(4_000, level=0.01), "<i2")
    mixed = quiet + np.frombuffer(silence(1_000) + speech(2_000) + silence(1_000), "<i2")
    heard = bounds(hear(silero, mixed.astype("<i2").tobytes())[1])
    assert [type(one) for one in heard] == [VoiceStarted, VoiceStopped]


@pytest.mark.parametrize("size", [2, 30, 1_022, 1_024, 1_026, 65_520])
def test_how_the_audio_is_cut_into_frames_changes_nothing(silero: SileroModel, size: int) -> None:
    pcm = silence(500) + speech(900) + silence(500)
    ears, heard = hear(silero, pcm, size)
    assert heard == hear(silero, pcm)[1]
    assert heard
    assert ears.audio(0, AUDIO_END) == pcm


def test_a_closed_microphone_ends_speech_without_a_word(silero: SileroModel) -> None:
    ears, heard = hear(silero, silence(500) + speech(900))
    before = ears.speaking
    ears.close()
    assert (before, ears.speaking) == (True, False)
    ears.listen(silence(1_000))
    assert [type(one) for one in heard] == [VoiceStarted]
    ears.listen(speech(900))
    assert [type(one) for one in heard] == [VoiceStarted, VoiceStarted]


def test_missing_weights_say_how_to_get_them(tmp_path: Any) -> None:
    with pytest.raises(VoxbridgeError, match="run `voxbridge models get`") as caught:
        SileroModel(tmp_path / "none.onnx")
    assert caught.value.code == Code.UNAVAILABLE


def test_speech_is_as_many_windows_in_a_row_as_it_says() -> None:
    window = loud(WINDOW_MS)
    assert hear(Loudness(), window * (START_WINDOWS - 1) + silence(500))[1] == []
    started, paused, stopped = hear(Loudness(), window * START_WINDOWS + silence(STOP_WINDOWS * WINDOW_MS))[1]
    assert (started.audio_ms, paused.audio_ms, stopped.audio_ms) == (0, START_WINDOWS * WINDOW_MS, START_WINDOWS * WINDOW_MS)
    assert len(hear(Loudness(), window * START_WINDOWS + silence((STOP_WINDOWS - 1) * WINDOW_MS))[1]) == 2
    assert len(hear(Loudness(), window * START_WINDOWS + silence((PAUSE_WINDOWS - 1) * WINDOW_MS))[1]) == 1


def test_a_sure_model_needs_one_window_less() -> None:
    window = loud(WINDOW_MS)
    started, _, stopped = hear(Loudness(SURE), silence(WINDOW_MS) + window * (START_WINDOWS - 1) + silence(500))[1]
    assert (started.audio_ms, stopped.audio_ms) == (WINDOW_MS, START_WINDOWS * WINDOW_MS)
    assert hear(Loudness(SURE - 0.01), window * (START_WINDOWS - 1) + silence(500))[1] == []
    assert hear(Loudness(1.0), window * (START_WINDOWS - 2) + silence(500))[1] == [], "a click may be sure too"


def test_each_pause_in_speech_is_told_once() -> None:
    pause = silence((STOP_WINDOWS - 1) * WINDOW_MS)
    _, heard = hear(Loudness(), loud(10 * WINDOW_MS) + pause + loud(10 * WINDOW_MS) + pause + loud(10 * WINDOW_MS))
    assert heard == [VoiceStarted(0), VoicePaused(10 * WINDOW_MS), VoicePaused((20 + STOP_WINDOWS - 1) * WINDOW_MS)]


def test_a_range_is_what_was_said_there() -> None:
    pcm = bytes(range(256)) * 125  # one second
    ears, _ = hear(Loudness(), pcm)
    assert ears.audio(100, 200) == pcm[3_200:6_400]
    assert ears.audio(900, 5_000) == pcm[28_800:]
    assert ears.audio(500, AUDIO_END) == pcm[16_000:]
    assert ears.audio(2_000, AUDIO_END) == b""
    assert ears.audio(300, 200) == b""
    assert ears.end_ms == 1_000


def test_while_nobody_speaks_little_is_kept() -> None:
    ears, _ = hear(Loudness(), silence(30_000))
    assert PREROLL_MS * BYTES_PER_MS <= len(ears.audio(0, AUDIO_END)) <= PREROLL_MS * BYTES_PER_MS + SLACK


def test_after_an_utterance_its_audio_is_given_back() -> None:
    ears, _ = hear(Loudness(), silence(500) + loud(10_000) + silence(1_000))
    assert len(ears.audio(0, AUDIO_END)) > 10_000 * BYTES_PER_MS
    ears.release()
    ears.listen(silence(100))
    assert len(ears.audio(0, AUDIO_END)) <= PREROLL_MS * BYTES_PER_MS + SLACK
    for _ in range(100):
        ears.listen(silence(100))
    assert len(ears.audio(0, AUDIO_END)) <= PREROLL_MS * BYTES_PER_MS + SLACK


def test_audio_is_not_given_back_while_somebody_speaks() -> None:
    ears, _ = hear(Loudness(), silence(500) + loud(5_000))
    ears.release()
    ears.listen(loud(5_000))
    assert ears.audio(500, 600) == loud(100)


@pytest.mark.parametrize("before", [0, 100, 1_000, 2_500, 7_000])
def test_a_long_utterance_keeps_its_beginning_wherever_it_lies(before: int) -> None:
    ears, heard = hear(Loudness(), silence(before) + loud(12_000))
    began = heard[0].audio_ms
    assert began == pytest.approx(before, abs=WINDOW_MS)
    assert len(ears.audio(began, AUDIO_END)) >= 11_900 * BYTES_PER_MS


def test_an_utterance_that_goes_on_after_a_pause_is_kept_from_where_it_began() -> None:
    ears, heard = hear(Loudness(), silence(1_000) + loud(6_000) + silence(500) + loud(6_000) + silence(500))
    found = bounds(heard)
    assert [type(one) for one in found] == [VoiceStarted, VoiceStopped] * 2
    assert len(ears.audio(found[0].audio_ms, found[3].audio_ms)) == (found[3].audio_ms - found[0].audio_ms) * BYTES_PER_MS


def test_of_an_endless_utterance_the_end_is_kept() -> None:
    ears, _ = hear(Loudness(), loud(LONGEST_MS + 20_000), size=6_400)
    kept = len(ears.audio(0, AUDIO_END))
    assert LONGEST_MS * BYTES_PER_MS <= kept <= LONGEST_MS * BYTES_PER_MS + SLACK
    assert ears.end_ms == LONGEST_MS + 20_000
