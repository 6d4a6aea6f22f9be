"""Times of day and zones as people say them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from num2words import num2words

from voxbridge.services.tools.packs.utilities import times
from voxbridge.shared.errors import VoxbridgeError


@pytest.mark.parametrize(
    ("said", "clock"),
    [
        ("half past ten", (10, 30, 0)),
        ("quarter to five", (4, 45, 0)),
        ("ten past six", (6, 10, 0)),
        ("twenty to nine in the evening", (20, 40, 0)),
        ("nine in the morning", (9, 0, 0)),
        ("12 noon", (12, 0, 0)),
        ("12 midnight", (0, 0, 0)),
        ("7 o\u2019clock", (7, 0, 0)),
        ("15h30", (15, 30, 0)),
        ("11 at night", (23, 0, 0)),
        ("3:30 pm", (15, 30, 0)),
    ],
)
def test_a_time_of_day_is_read_as_it_is_said(said: str, clock: tuple[int, int, int]) -> None:
    assert times._time_of(said) == clock


@pytest.mark.parametrize("hour", range(24))
@pytest.mark.parametrize("minute", [0, 1, 15, 29, 30, 31, 45, 59])
def test_every_time_of_day_that_is_said_another_way_comes_back(hour: int, minute: int) -> None:
    names = {0: "at night", 6: "in the morning", 12: "in the afternoon", 18: "in the evening"}
    name = names[max(start for start in names if start <= hour)]
    if minute <= 30:
        said = f"{num2words(minute)} minutes past {num2words(hour % 12 or 12)} {name}"
        assert times._time_of(said) == (hour, minute, 0)
    if minute >= 30 and hour < 11:
        assert times._time_of(f"{num2words(60 - minute)} minutes to {num2words(hour + 1)}") == (hour, minute, 0)


@pytest.mark.parametrize("said", ["half to ten", "25:00", "13 pm", "ten past half past two", "61 minutes past 3"])
def test_what_is_no_time_of_day_is_refused(said: str) -> None:
    with pytest.raises(VoxbridgeError):
        times._time_of(said)


@pytest.mark.parametrize(
    ("name", "hours"), [("EST", -5), ("eastern time", -4), ("India", 5.5), ("S\u00e3o Paulo", -3), ("MSK", 3), ("UK", 1)]
)
def test_a_zone_is_read_by_its_abbreviation_its_country_or_its_city(name: str, hours: float) -> None:
    summer = datetime(2025, 7, 15, 12, tzinfo=UTC)
    offset = summer.astimezone(times.zone_of(name, "from_zone")).utcoffset()
    assert offset == timedelta(hours=hours)


@pytest.mark.parametrize(
    ("said", "day"),
    [
        ("", "2026-11-28"), ("today", "2026-11-28"), ("Tomorrow", "2026-11-29"), ("yesterday", "2026-11-27"), ("monday", "2026-11-30"),
        ("Saturday", "2026-11-28"), ("friday", "2026-12-04"), ("2026-12-24", "2026-12-24"),
    ],
)  # fmt: skip
def test_a_day_is_read_as_it_is_said(said: str, day: str) -> None:
    """28 November 2026 is a Saturday, and in Tokyo, where the day is counted, it is past midnight."""
    found = times.converted("9 am", "Tokyo", "UTC", said, now=datetime(2026, 11, 27, 16, tzinfo=UTC))
    assert found["from"]["time"] == f"{day}T09:00+09:00"


@pytest.mark.parametrize("said", ["someday", "2026-13-01", "next week", "28.11.2026", "3/4"])
def test_what_is_no_day_is_refused(said: str) -> None:
    with pytest.raises(VoxbridgeError) as refused:
        times.converted("9 am", "Tokyo", "UTC", said, now=datetime(2026, 11, 27, 16, tzinfo=UTC))
    assert refused.value.field == "date"
