"""Lengths of time in words: those that the reader's other half writes, and as people say them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from num2words import num2words

from voxbridge.shared.spoken_durations import LIMIT_S, about, in_words, seconds


@pytest.mark.parametrize(
    ("said", "length"),
    [
        ("the pasta goes in now nine minutes please", 540),
        ("buzz me half an hour from now", 1_800),
        ("a half hour nap", 1_800),
        ("an hour and a half", 5_400),
        ("one and a half hours", 5_400),
        ("two and a half minutes", 150),
        ("one hour and twenty-five minutes", 5_100),
        ("a quarter of an hour", 900),
        ("three quarters of an hour", 2_700),
        ("a hundred and twenty seconds", 120),
        ("two minutes thirty seconds", 150),
        ("a couple of minutes", 120),
        ("the ten-minute timer", 600),
        ("1.5 hours", 5_400),
        ("1h 30 min", 5_400),
        ("two weeks", 14 * 86_400),
        ("366 days", LIMIT_S),
        ("367 days", None),
        ("zero seconds", None),
        ("remind me in five", None),
        ("the second one", None),
        ("twenty minutes for the rice then ten minutes for the tea", None),
        ("", None),
    ],
)
def test_a_length_of_time_is_read_off_the_words(said: str, length: int | None) -> None:
    assert seconds(said) == length


@pytest.mark.parametrize(
    ("length", "said"),
    [
        (0, "0 seconds"),
        (1, "1 second"),
        (89, "1 minute and 29 seconds"),
        (5_400, "1 hour and 30 minutes"),
        (9_001, "2 hours, 30 minutes and 1 second"),
    ],
)
def test_a_length_of_time_is_said_in_full(length: int, said: str) -> None:
    assert in_words(length) == said


@pytest.mark.parametrize(
    ("left", "said"),
    [
        (89, "1 minute and 29 seconds"),
        (299, "4 minutes and 59 seconds"),
        (599, "10 minutes"),
        (5_399, "1 hour and 30 minutes"),
        (9_001, "2 hours and 30 minutes"),
    ],
)
def test_what_is_left_is_said_as_a_person_says_it(left: int, said: str) -> None:
    assert about(left) == said


@given(st.integers(min_value=1, max_value=LIMIT_S))
def test_every_length_comes_back(length: int) -> None:
    assert seconds(in_words(length)) == length


@given(st.integers(min_value=0, max_value=99), st.integers(min_value=0, max_value=59), st.integers(min_value=1, max_value=59))
def test_every_length_in_number_words_comes_back(hours: int, minutes: int, rest: int) -> None:
    said = f"{num2words(hours)} hours {num2words(minutes)} minutes and {num2words(rest)} seconds"
    assert seconds(said) == hours * 3_600 + minutes * 60 + rest
