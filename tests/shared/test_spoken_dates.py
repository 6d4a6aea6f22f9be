"""Dates as people say them."""

from __future__ import annotations

from datetime import date, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from num2words import num2words

from voxbridge.shared.spoken_dates import DAYS_LIMIT, SAID_LIMIT, found

TODAY = date(2026, 11, 28)
"""A Saturday."""


@pytest.mark.parametrize(
    ("said", "day"),
    [
        ("today", "2026-11-28"), ("Tomorrow", "2026-11-29"), ("yesterday", "2026-11-27"), ("the day after tomorrow", "2026-11-30"),
        ("in 30 days", "2026-12-28"), ("in thirty days", "2026-12-28"), ("three days ago", "2026-11-25"), ("a week from now", "2026-12-05"),
        ("in a month", "2026-12-28"), ("in three months", "2027-02-28"), ("a year ago", "2025-11-28"), ("in a fortnight", "2026-12-12"),
        ("Saturday", "2026-11-28"), ("next Saturday", "2026-12-05"), ("next Friday", "2026-12-04"), ("last Monday", "2026-11-23"),
        ("on Tuesday", "2026-12-01"), ("July 4", "2027-07-04"), ("the fourth of July", "2027-07-04"), ("4 July 2028", "2028-07-04"),
        ("July 4th, 2027", "2027-07-04"), ("twenty-fifth of December", "2026-12-25"), ("the 15th", "2026-12-15"), ("30th", "2026-11-30"),
        ("the thirty first", "2026-12-31"), ("Feb 29", "2028-02-29"), ("2026-12-24", "2026-12-24"), ("Christmas", "2026-12-25"),
        ("New Year\u2019s Eve", "2026-12-31"), ("new year", "2027-01-01"), ("Easter", "2027-03-28"), ("good friday 2028", "2028-04-14"),
        ("last Easter", "2026-04-05"), ("last Christmas", "2025-12-25"), ("last July 4", "2026-07-04"), ("last Feb 29", "2024-02-29"),
        ("last November 28", "2025-11-28"), ("Thanksgiving", "2027-11-25"), ("thanksgiving 2026", "2026-11-26"),
    ],
)  # fmt: skip
def test_a_date_is_read_as_it_is_said(said: str, day: str) -> None:
    assert str(found(said, TODAY)) == day


@pytest.mark.parametrize(
    "said",
    [
        "", "3/4", "last", "last tomorrow", "last Easter 2020",
        "12.5.", "someday", "May", "february 29 2027", "31 April", "2026-13-01", "0000-01-01", "in 999999999999999 days",
        "in 99999999 months", "the 32nd", "tomorrow at noon", "a", "\ud800", "x" * (SAID_LIMIT + 1), "in a month" + " " * SAID_LIMIT,
    ],
)  # fmt: skip
def test_what_is_not_a_date_alone_is_not_read(said: str) -> None:
    assert found(said, TODAY) is None


def test_days_are_understood_up_to_the_limit() -> None:
    assert found(f"in {DAYS_LIMIT} days", TODAY) == TODAY + timedelta(days=DAYS_LIMIT)
    assert found(f"in {DAYS_LIMIT + 1} days", TODAY) is None
    assert found("in 1 day", date.max) is None


@given(st.dates(date(1900, 1, 1), date(2150, 12, 31)), st.dates(date(2000, 1, 1), date(2060, 12, 31)))
def test_every_date_said_in_words_is_that_date(day: date, today: date) -> None:
    ordinal = num2words(day.day, to="ordinal")
    assert found(f"{day.strftime('%B')} {day.day}, {day.year}", today) == day
    assert found(f"the {ordinal} of {day.strftime('%B')} {day.year}", today) == day
    away = (day - today).days
    assert found(f"{abs(away):,} days {'ago' if away < 0 else 'from now'}", today) == day
    assert found(f"{num2words(abs(away) % 1_000)} days ago", today) == today - timedelta(days=abs(away) % 1_000)


@pytest.mark.parametrize(
    "day", ["1818-03-22", "1943-04-25", "2000-04-23", "2016-03-27", "2019-04-21", "2024-03-31", "2026-04-05", "2038-04-25", "2285-03-22"]
)
def test_easter_is_the_sunday_after_the_full_moon_of_spring(day: str) -> None:
    """The earliest Easter Sundays and the latest are among them."""
    assert str(found(f"easter {day[:4]}", date(int(day[:4]), 1, 1))) == day


@given(st.text(max_size=SAID_LIMIT + 5), st.dates())
def test_no_text_breaks_it(said: str, today: date) -> None:
    assert found(said, today) is None or isinstance(found(said, today), date)
