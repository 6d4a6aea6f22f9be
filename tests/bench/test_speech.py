"""Evaluation of spoken turns."""

from __future__ import annotations

import numpy as np
import pytest

from bench.areas.speech import LOUD, Turn, trimmed, waterfall


def test_the_waterfall_has_the_median_of_each_stamp_of_the_turns_that_have_it() -> None:
    turns = [
        Turn(asked="a", latency={"end_of_turn": 300, "first_audio_sent": 900}),
        Turn(asked="b", latency={"end_of_turn": 500, "first_audio_sent": 1_100}),
        Turn(asked="c", latency={"end_of_turn": 400}),
    ]
    assert waterfall(turns) == {"end_of_turn": 400, "first_audio_sent": 1_000}


def test_no_turns_make_an_empty_waterfall() -> None:
    assert waterfall([]) == {}


def test_speech_is_cut_to_its_first_and_last_loud_sample() -> None:
    pcm = np.array([0, LOUD, LOUD + 1, 0, -LOUD - 1, LOUD], dtype=np.int16)
    assert trimmed(pcm).tolist() == [LOUD + 1, 0, -LOUD - 1]


def test_silence_cannot_be_cut_to_speech() -> None:
    with pytest.raises(ValueError, match="no speech"):
        trimmed(np.zeros(100, dtype=np.int16))
