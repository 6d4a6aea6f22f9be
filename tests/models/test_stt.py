"""What Whisper makes of a cut encoder, without Whisper."""

from __future__ import annotations

import numpy as np
import pytest

from services.models.audio import RATE
from services.models.stt import WINDOW_SECONDS, _windows, spoken_once


@pytest.mark.parametrize(
    ("text", "seconds", "said"),
    [
        ("Set a timer. Set a timer.", 1.0, "Set a timer."),
        ("Where's my car? Where's my car? Where's my ca", 1.1, "Where's my car?"),
        ("Hello. Hello. Hello. Hello.", 0.5, "Hello."),
        ("No, no, no.", 1.5, "No, no, no."),
        ("Stop it. Stop it.", 1.5, "Stop it. Stop it."),
        ("One two three four five six seven.", 1.0, "One two three four five six seven."),
        ("", 1.0, ""),
        ("Yes.", 0.1, "Yes."),
    ],
)
def test_what_nobody_could_have_said_in_the_time_is_taken_once(text: str, seconds: float, said: str) -> None:
    assert spoken_once(text, seconds) == said


def test_a_long_recording_is_cut_where_it_is_quiet() -> None:
    samples = np.full(40 * RATE, 0.5, np.float32)
    samples[26 * RATE : 26 * RATE + RATE // 5] = 0
    first, second = _windows(samples)
    assert abs(first.size - 26 * RATE) < RATE // 4
    assert first.size + second.size == samples.size


def test_a_short_recording_stays_whole() -> None:
    samples = np.zeros(WINDOW_SECONDS * RATE, np.float32)
    assert [piece.size for piece in _windows(samples)] == [samples.size]
