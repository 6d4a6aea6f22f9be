"""Times of day, zones and units as people say them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from num2words import num2words

from voxbridge.services.tools.packs.utilities import times, units
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
    ("amount", "source", "target", "value"),
    [
        (1, "MB", "Mb", 8),
        (1, "Mb", "kB", 125),
        (1, "kilo", "g", 1000),
        (36, "kilometres an hour", "m/s", 10),
        (1, "nautical mile", "m", 1852),
        (180, "degrees", "radians", 3.14159265),
        (1, "turn", "degrees", 360),
        (100, "degrees", "fahrenheit", 212),
        (1, "AU", "km", 149_597_870.7),
    ],
)
def test_units_are_read_as_they_are_said_and_never_taken_for_another(amount: float, source: str, target: str, value: float) -> None:
    assert units.converted(amount, source, target)["value"] == pytest.approx(value)


@pytest.mark.parametrize(
    ("amount", "source", "target", "said"),
    [
        (1, "light year", "km", "1 light year is about 9.461 trillion kilometers."),
        (5e9, "m", "km", "5 billion meters is 5,000,000 kilometers."),
        (1, "mW", "MW", "1 milliwatt is about 1 times 10 to the power of minus 9 megawatts."),
        (3, "feet", "m", "3 feet is 0.9144 meters."),
    ],
)
def test_amounts_are_said_in_words_that_a_voice_can_read(amount: float, source: str, target: str, said: str) -> None:
    assert units.converted(amount, source, target)["spoken"] == said
