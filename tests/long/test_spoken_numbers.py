"""Every whole number to a million, and every thousandth to a thousand, in words and back."""

from __future__ import annotations

from decimal import Decimal

from num2words import num2words

from voxbridge.shared.spoken_numbers import in_figures


def test_every_whole_number_to_a_million_comes_back() -> None:
    for number in range(1_000_001):
        assert in_figures(num2words(number)) == str(number)


def test_every_thousandth_to_a_thousand_comes_back() -> None:
    for thousandths in range(1_000_001):
        number = Decimal(thousandths) / 1000
        assert Decimal(in_figures(num2words(number))) == number
