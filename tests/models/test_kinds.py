"""Kinds of words: a request with a unit, a number or a town that no utterance has is a request like those that have another."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from itertools import pairwise

import pytest

from voxbridge.services.models.api.routers import read_meanings
from voxbridge.services.models.choice.arguments import narrowed
from voxbridge.services.models.choice.kinds import (
    CLOCK,
    MONEY,
    NUMBER,
    OPERATOR,
    PLACE,
    TEXT_LIMIT,
    TIME,
    UNIT,
    Conversion,
    conversion,
    marked,
)
from voxbridge.services.models.choice.router import Known, Router
from voxbridge.services.tools.registry import BUILT_IN, load

PAIRS = """
MB Mb/MB KB/GB MB/TB GB/Mb MB/miles km/km miles/m ft/feet metres/cm inches/inches cm/pounds kg/kg lbs/oz grams/stone kg/celsius fahrenheit
kelvin celsius/cups ml/litres gallons/pints litres/acres hectares/mph kph/knots mph/psi bar/kWh joules/joules calories/degrees radians
yards metres/tablespoons teaspoons/seconds minutes/minutes hours/hours days/days weeks/watts horsepower/nm km/megabytes gigabytes
"""
WORDINGS = (
    "convert {n} {a} to {b}", "{n} {a} in {b}", "how many {b} are {n} {a}", "what is {n} {a} in {b}", "{n} {a} to {b}",
    "how much is {n} {a} in {b}",
)  # fmt: skip
AMOUNTS = ("1", "5", "70", "ten", "2.5", "three")
SUMS = (
    "{a} - {b}", "{a} minus {b}", "what is {a} minus {b}", "{a}*{b}", "{a} / {b}", "{a} divided by {b}", "{a} plus {b}", "add {a} and {b}",
    "subtract {a} from {b}", "{a}% of {b}", "{a} to the power of {b}", "{a}^{b}", "{a} times {b}", "{a} squared", "{a} cubed",
    "{a} over {b}", "the square root of {a}", "half of {a}", "a third of {a}", "sum of {a} and {b}",
)  # fmt: skip
NUMBERS = ("3", "80", "fifteen", "eighty", "144", "2.5", "one hundred and five", "1000", "3")
TOWNS = ("Tokyo", "Lima", "Riga", "Nairobi", "Oslo", "Tashkent", "Berlin", "Denver", "Manila", "Tokyo")
TIMES = (
    "what time is it in {a}", "time in {a}", "current time {a}", "what's the time in {a} when it is 5 pm in {b}", "how late is it in {a}",
    "convert 3 pm {a} time to {b}", "time difference between {a} and {b}", "is it morning in {a}",
)  # fmt: skip
HOURS = (
    "if it is 9 am in {a} what time is it in {b}", "what is 8:30 am in {a} in {b}", "what is 3 pm in {a} in {b} time", "6 pm {a} in {b}",
    "what time is 10 am {a} time in {b}", "it's 4 pm in {a} what time is it in {b}", "half past nine in {a} in {b} time",
)  # fmt: skip


@cache
def router() -> Router:
    """Return the router of all functions of an installation."""
    return Router([Known(tool.name, tool.description, tool.utterances) for tool in load(BUILT_IN, timeout_s=30).values()], read_meanings())


def conversions() -> Iterator[str]:
    """Yield a request for each pair of units in each wording."""
    pairs = [pair.split() for line in PAIRS.split("\n") for pair in line.split("/") if pair]
    for place, (source, target) in enumerate(pairs):
        for wording in WORDINGS:
            yield wording.format(n=AMOUNTS[place % len(AMOUNTS)], a=source, b=target)


def share(requests: list[str], functions: set[str]) -> float:
    """Return the share of requests that lead to one of these functions, and not to words."""
    found = [router().decide(said) for said in requests]
    return sum(one.mode != "words" and bool(functions & set(one.among)) for one in found) / len(found)


def test_units_that_no_utterance_has_are_converted_by_the_function() -> None:
    assert share(list(conversions()), {"convert_units"}) >= 0.97


def test_sums_in_figures_and_words_are_worked_out_by_the_function() -> None:
    sums = [wording.format(a=one, b=other) for wording in SUMS for one, other in pairwise(NUMBERS)]
    assert share(sums, {"calculate"}) >= 0.98


def test_towns_that_no_utterance_has_are_looked_up_by_a_function() -> None:
    towns = [wording.format(a=one, b=other) for wording in TIMES for one, other in pairwise(TOWNS)]
    assert share(towns, {"current_time", "convert_time_zone"}) >= 0.97


def test_an_hour_in_one_town_is_converted_to_the_time_of_another() -> None:
    asked = [wording.format(a=one, b=other) for wording in HOURS for one, other in pairwise(TOWNS)]
    assert share(asked, {"convert_time_zone"}) >= 0.97


@pytest.mark.parametrize(
    "said",
    [
        "I walked 5 miles today", "I am 6 feet tall", "it is 30 degrees outside", "my son weighs ten pounds", "what is a mile",
        "there are 12 months in a year", "how tall is Mount Everest in feet", "how many days in February", "who won the 2010 cup",
        "what happened in 1945", "how many feet does a spider have", "I was born in Tokyo", "Lima is the capital of Peru",
        "what is the opposite of hot", "what is hot in Spanish",
    ],
)  # fmt: skip
def test_talk_of_numbers_units_and_towns_is_no_sure_call(said: str) -> None:
    assert router().decide(said).mode != "call"


@pytest.mark.parametrize(
    "said",
    ["change the timer to 10 minutes", "five minutes ten seconds timer", "remind me in 2 hours and 30 minutes", "timer for 90 seconds"],
)
def test_a_length_of_time_alone_is_not_a_conversion(said: str) -> None:
    assert router().decide(said).among[0] == "set_timer"


@pytest.mark.parametrize(
    ("text", "kinds"),
    [
        ("five miles in km", [NUMBER, UNIT, "in", UNIT]),
        ("one hundred and five minus 20", [NUMBER, OPERATOR, NUMBER]),
        ("12 / 4", [NUMBER, OPERATOR, NUMBER]),
        ("time in New York", ["time", "in", PLACE]),
        ("the north wind in Lima", ["the", "north", "wind", "in", PLACE]),
        ("8:30 am in Lima", [CLOCK, "in", PLACE]),
        ("5 p.m. or noon", [CLOCK, "or", CLOCK]),
        ("I am 20 euros short", ["i", "am", NUMBER, MONEY, "short"]),
        ("ninety seconds", [NUMBER, TIME]),
        ("a gram of salt", [NUMBER, UNIT, "of", "salt"]),
        ("a cup of tea in a bar", ["a", "cup", "of", "tea", "in", "a", "bar"]),
        ("twenty-one °C", [NUMBER, UNIT]),
        ("", []),
        ("\u200d \ud800", []),
    ],
)
def test_words_are_marked_by_their_kind(text: str, kinds: list[str]) -> None:
    assert marked(text) == kinds


@pytest.mark.parametrize(
    ("text", "units"),
    [
        ("convert 1 MB to Mb", ("MB", "Mb")),
        ("how many MB in 8 Mb", ("Mb", "MB")),
        ("1 MB is how many Mb", ("MB", "Mb")),
        ("a GB in Gb", ("GB", "Gb")),
        ("100 Mbps in MB/s", ("Mbps", "MB/s")),
        ("2 in in cm", ("in", "cm")),
        ("seventy C in F", ("C", "F")),
        ("five megabytes in Mb", None),
        ("convert Mb to MB", None),
        ("1 MB and 2 Mb in KB", None),
        ("how many MB are 3 GB per second", None),
        ("", None),
    ],
)
def test_the_symbols_of_a_conversion_keep_their_letters(text: str, units: tuple[str, str] | None) -> None:
    """Kind: the same symbol in other letters is another unit, and a small model writes both alike."""
    assert conversion(text) == (Conversion(*units) if units else None)


def test_of_a_long_text_the_end_is_read() -> None:
    assert conversion("so " * 100_000 + "how many MB in 8 Mb") == Conversion("Mb", "MB")
    assert len(marked("a " * TEXT_LIMIT)) == TEXT_LIMIT // 2


def test_a_model_can_only_write_the_symbols_of_the_request() -> None:
    schema = next(tool.parameters for tool in load(BUILT_IN, timeout_s=30).values() if tool.name == "convert_units")
    found = narrowed(schema, "how many MB in 8 Mb")
    assert {name: found["properties"][name]["enum"] for name in ("from_unit", "to_unit")} == {"from_unit": ["Mb"], "to_unit": ["MB"]}
    assert narrowed(schema, "what are five miles in kilometres")["properties"]["to_unit"] == schema["properties"]["to_unit"]


@pytest.mark.parametrize(
    ("said", "takes"),
    [
        ("what is 3 pm in Lima in Oslo time", False),
        ("half past nine in Budapest in Tokyo time", False),
        ("what is 3 pm tomorrow in Lima in Oslo time", True),
        ("at noon on the twenty-fifth of May in Rome what time is it in Perth", True),
        ("when it is 5 pm in Berlin on 2026-03-29 what is it in Delhi", True),
        ("3 pm in Lima next Monday in Oslo time", True),
    ],
)
def test_no_date_is_made_up_for_a_request_that_names_no_day(said: str, *, takes: bool) -> None:
    """Kind: an hour converted with the clock change of a day that nobody named."""
    schema = next(tool.parameters for tool in load(BUILT_IN, timeout_s=30).values() if tool.name == "convert_time_zone")
    assert ("date" in narrowed(schema, said)["properties"]) is takes
