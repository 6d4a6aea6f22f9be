"""Numbers in words: those of num2words, which are written another way, and as people say them."""

from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from num2words import num2words

from voxbridge.shared.spoken_numbers import in_figures


@given(st.integers(min_value=0, max_value=10**15 - 1))
def test_every_whole_number_comes_back(number: int) -> None:
    assert in_figures(num2words(number)) == str(number)


def test_every_number_to_twenty_thousand_and_every_497th_to_a_million_comes_back() -> None:
    for number in (*range(20_000), *range(20_000, 1_000_001, 497)):
        assert in_figures(num2words(number)) == str(number)


@given(st.integers(min_value=0, max_value=10**6), st.integers(min_value=1, max_value=999))
def test_every_decimal_of_three_places_comes_back(whole: int, thousandths: int) -> None:
    number = Decimal(whole) + Decimal(thousandths) / 1000
    assert Decimal(in_figures(num2words(number))) == number


@pytest.mark.parametrize(
    ("said", "figures"),
    [
        ("eighty minus fifteen", "80 minus 15"),
        ("sixty-six", "66"),
        ("one point five million", "1500000"),
        ("1.5 million", "1500000"),
        ("two point twenty five", "2.25"),
        ("forty point sixty two", "40.62"),
        ("zero point oh five", "0.05"),
        ("point five", "0.5"),
        ("a hundred", "100"),
        ("a hundred and one", "101"),
        ("two and a half", "2.5"),
        ("two and a half million", "2500000"),
        ("three and three quarters", "3.75"),
        ("half a million", "500000"),
        ("eleven hundred", "1100"),
        ("nine thousand five", "9005"),
        ("1,234 and 5", "1234 and 5"),
        ("2 thousand 5 hundred", "2500"),
        ("half of two hundred", "half of 200"),
        ("one and a half of them", "1 and a half of them"),
        ("twelve fifteen and thirty one", "12 15 and 31"),
        ("one two three", "1 2 3"),
        ("nine nine nine", "9 9 9"),
        ("twenty twenty six", "20 26"),
        ("nineteen eighty four", "19 84"),
        ("two million three million", "2000000 3000000"),
        ("to a friend", "to a friend"),
        ("a point of order", "a point of order"),
        ("", ""),
    ],
)
def test_a_number_is_read_by_its_grammar_and_nothing_is_guessed(said: str, figures: str) -> None:
    assert in_figures(said) == figures


WORDS = (
    "a",
    "and",
    "point",
    "half",
    "quarter",
    "hundred",
    "thousand",
    "million",
    "one",
    "twenty",
    "oh",
    "7",
    "1.5",
    ".",
    ",",
    "-",
    "of",
    "x",
)


@given(st.lists(st.sampled_from(WORDS), max_size=12))
def test_any_words_are_read(words: list[str]) -> None:
    once = in_figures(" ".join(words))
    assert in_figures(once).count(" ") <= once.count(" ")
