"""Sums, lengths of time, times of day and places, made in another way than they are read: right or asked back, and none wrong."""

from __future__ import annotations

import random
from collections.abc import Callable
from datetime import UTC, datetime
from fractions import Fraction
from zoneinfo import ZoneInfo, available_timezones

import pytest
from num2words import num2words

from voxbridge.services.tools.packs.everyday.calculator import evaluate
from voxbridge.services.tools.packs.everyday.places import places
from voxbridge.services.tools.packs.utilities.times import converted
from voxbridge.shared.errors import VoxbridgeError
from voxbridge.shared.spoken_durations import seconds

Number = int | Fraction

SUMS: tuple[tuple[str, Callable[[Number, Number], Number]], ...] = (
    ("{a} plus {b}", lambda a, b: a + b),
    ("what is {a} minus {b}", lambda a, b: a - b),
    ("{a} take away {b}", lambda a, b: a - b),
    ("{a} times {b}", lambda a, b: a * b),
    ("{a} multiplied by {b}", lambda a, b: a * b),
    ("{a} divided by {b}", lambda a, b: Fraction(a) / b),
    ("{a} over {b}", lambda a, b: Fraction(a) / b),
    ("subtract {a} from {b}", lambda a, b: b - a),
    ("add {a} to {b}", lambda a, b: a + b),
    ("take {a} and add {b}", lambda a, b: a + b),
    ("multiply {a} by {b}", lambda a, b: a * b),
    ("divide {a} by {b}", lambda a, b: Fraction(a) / b),
    ("{a} percent of {b}", lambda a, b: Fraction(a) * b / 100),
    ("{a} increased by {b} percent", lambda a, b: Fraction(a) * (100 + b) / 100),
    ("{a} reduced by {b} percent", lambda a, b: Fraction(a) * (100 - b) / 100),
    ("{a} out of {b} as a percentage", lambda a, b: Fraction(a) * 100 / b),
    ("what percentage of {a} is {b}", lambda a, b: Fraction(b) * 100 / a),
    ("the sum of {a} and {b}", lambda a, b: a + b),
    ("the product of {a} and {b}", lambda a, b: a * b),
    ("the difference between {a} and {b}", lambda a, b: max(a, b) - min(a, b)),
    ("the average of {a} and {b}", lambda a, b: Fraction(a + b) / 2),
    ("the remainder of {a} divided by {b}", lambda a, b: Fraction(a) % Fraction(b)),
    ("{a} mod {b}", lambda a, b: Fraction(a) % Fraction(b)),
    ("{a} more than {b}", lambda a, b: a + b),
    ("{a} less than {b}", lambda a, b: b - a),
    ("how much is {a} and {b}", lambda a, b: a + b),
    ("half of {a}", lambda a, _: Fraction(a) / 2),
    ("three quarters of {a}", lambda a, _: Fraction(a) * 3 / 4),
    ("twice {a}", lambda a, _: 2 * a),
    ("double {a}", lambda a, _: 2 * a),
    ("{a} squared", lambda a, _: Fraction(a) ** 2),
    ("{a} plus {b} times two", lambda a, b: a + b * 2),
)


def number(draw: random.Random) -> Number:
    kind = draw.randrange(10)
    if kind < 5:
        return draw.randint(1, 100)
    return draw.randint(1, 2_000) if kind < 8 else draw.randint(1, 10**6) if kind < 9 else Fraction(draw.randint(1, 9_999), 100)


def said(draw: random.Random, value: Number) -> str:
    """Return a number as people say it, or as a recogniser writes it."""
    if isinstance(value, Fraction):
        return str(num2words(float(value)))
    way = draw.randrange(6)
    words = str(num2words(value))
    return [words, words, words.replace(" and ", " "), words.replace("-", " ").replace(",", ""), str(value), f"{value:,}"][way]


def test_five_hundred_sums_are_right_or_asked_back() -> None:
    draw, asked = random.Random(35), []
    for _ in range(500):
        form, run = draw.choice(SUMS)
        a, b = number(draw), number(draw)
        text = form.format(a=said(draw, a), b=said(draw, b))
        try:
            found, _ = evaluate(text)
        except VoxbridgeError:
            asked.append(text)
            continue
        wanted = float(run(a, b))
        assert found == pytest.approx(wanted, rel=1e-9, abs=1e-9), text
    assert len(asked) <= 5, asked


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("add one hundred and eight hundred five", 905),
        ("one thousand, eight hundred plus eight hundred and six", 2_606),
        ("one thousand and eight hundred minus one", 1_799),
        ("78 mod 5.2", 0),
        ("triple 1.5", 4.5),
        ("start with 10 and divide by 4", 2.5),
        ("what percent is 5 of 20", 25),
        ("the mean of 1, 2 and 6", 3),
    ],
)
def test_sums_that_were_wrong_or_asked_back(text: str, value: float) -> None:
    assert evaluate(text)[0] == pytest.approx(value)


UNITS = {"second": 1, "minute": 60, "hour": 3_600}
FIXED = {
    "half an hour": 1_800, "a quarter of an hour": 900, "three quarters of an hour": 2_700, "an hour and a half": 5_400,
    "an hour and a quarter": 4_500, "an hour and three quarters": 6_300, "a minute and a half": 90, "one and a half hours": 5_400,
    "an hour and twenty minutes": 4_800, "a couple of minutes": 120, "two and a quarter hours": 8_100, "half a minute": 30,
}  # fmt: skip


def length(draw: random.Random) -> tuple[str, int]:
    def amount(value: int, unit: str) -> str:
        return f"{num2words(value) if draw.random() < 0.6 else value} {unit}{'' if value == 1 else 's'}"

    kind = draw.randrange(7)
    hours, minutes, rest = draw.randint(1, 9), draw.randint(1, 59), draw.randint(1, 59)
    if kind == 0:
        unit, value = draw.choice(list(UNITS)), draw.randint(1, 90)
        return amount(value, unit), value * UNITS[unit]
    if kind == 1:
        return f"{amount(hours, 'hour')} and {amount(minutes, 'minute')}", hours * 3_600 + minutes * 60
    if kind == 2:
        return f"{amount(minutes, 'minute')} {amount(rest, 'second')}", minutes * 60 + rest
    if kind == 3:
        text = f"{amount(hours, 'hour')}, {amount(minutes, 'minute')} and {amount(rest, 'second')}"
        return text, hours * 3_600 + minutes * 60 + rest
    if kind == 4:
        return f"{num2words(hours)} and a half hours", hours * 3_600 + 1_800
    if kind == 5:
        return f"{amount(minutes, 'minute')} and a half", minutes * 60 + 30
    return draw.choice(list(FIXED.items()))


def test_two_hundred_lengths_of_time_are_right() -> None:
    draw = random.Random(36)
    made = [length(draw) for _ in range(200)]
    assert [(text, wanted) for text, wanted in made if seconds(text) != wanted] == []


def time_of_day(draw: random.Random) -> tuple[str, int, int]:
    hour, minute, kind = draw.randint(0, 23), draw.randint(0, 59), draw.randrange(9)
    word, half = num2words(hour % 12 or 12), "am" if hour < 12 else "pm"
    after, to = (hour + 1) % 24, draw.choice([5, 10, 15, 20, 25])
    part = "in the morning" if hour < 12 else "in the afternoon" if hour < 18 else "in the evening" if hour < 21 else "at night"
    following = f"{num2words(after % 12 or 12)} {'am' if after < 12 else 'pm'}"
    return [
        (f"{hour:02}:{minute:02}", hour, minute),
        (f"{hour % 12 or 12}:{minute:02} {half}", hour, minute),
        (f"{word} {half}", hour, 0),
        (f"{hour % 12 or 12} o'clock {part}", hour, 0),
        (f"half past {word} {part}", hour, 30),
        (f"quarter past {word} {half}", hour, 15),
        (f"quarter to {following}", hour, 45),
        (f"{num2words(to)} minutes to {following}", hour, 60 - to),
        (f"{word} {num2words(10 + minute % 50).replace('-', ' ')} {half}", hour, 10 + minute % 50),
    ][kind]


def test_two_hundred_times_of_day_are_right() -> None:
    draw, now = random.Random(37), datetime(2026, 5, 4, 12, tzinfo=UTC)
    for _ in range(200):
        text, hour, minute = time_of_day(draw)
        found = converted(text, "UTC", "UTC", "", now=now)
        assert f"T{hour:02}:{minute:02}" in str(found), (text, found)


NAMED_OTHERWISE = frozenset(
    (
        "America/Matamoros", "America/Santa_Isabel", "America/St_Thomas", "Atlantic/Stanley", "Indian/Cocos", "Indian/Mahe",
        "Pacific/Chatham", "Pacific/Johnston", "Pacific/Kanton", "Pacific/Midway", "Pacific/Norfolk", "Pacific/Samoa",
    )
)  # fmt: skip
"""Zones of towns and islands whose name a larger place elsewhere has; the time there is told with the name of that place."""

AREAS = ("Africa", "America", "Asia", "Europe", "Atlantic", "Indian", "Pacific")


def test_the_towns_of_all_time_zones_have_their_time() -> None:
    zones = [zone for zone in sorted(available_timezones() - NAMED_OTHERWISE) if zone.count("/") == 1 and zone.startswith(AREAS)]
    assert len(zones) > 400
    for zone in zones:
        found, _ = places().find(zone.partition("/")[2].replace("_", " "))
        for month in (1, 7):
            when = datetime(2026, month, 1, tzinfo=UTC)
            assert when.astimezone(ZoneInfo(found.time_zone)).utcoffset() == when.astimezone(ZoneInfo(zone)).utcoffset(), (zone, found)


@pytest.mark.parametrize(
    ("name", "zone"),
    [
        ("Grenada", "America/Grenada"), ("Granada", "Europe/Madrid"), ("Palau", "Pacific/Palau"), ("Dili", "Asia/Dili"),
        ("St Lucia", "America/St_Lucia"), ("St Petersburg", "Europe/Moscow"), ("the Canary Islands", "Atlantic/Canary"),
        ("Easter Island", "Pacific/Easter"), ("Cape Verde", "Atlantic/Cape_Verde"), ("St John's", "America/St_Johns"),
        ("Queensland", "Australia/Brisbane"), ("Bombay", "Asia/Kolkata"), ("Calcutta", "Asia/Kolkata"), ("Liechtenstein", "Europe/Vaduz"),
    ],
)  # fmt: skip
def test_countries_islands_and_other_names_have_their_time(name: str, zone: str) -> None:
    assert places().find(name)[0].time_zone == zone
