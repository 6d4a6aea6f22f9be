"""Requests that are a sum or a conversion: the call is read off them, and what is not read whole is left to the model."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from tests.models.test_choice import trained
from tests.models.test_kinds import router as installed
from voxbridge.services.models.api import chat
from voxbridge.services.models.api.bodies import ChatRequest
from voxbridge.services.models.choice.reckoning import SAID_LIMIT, read
from voxbridge.services.models.core import chatml
from voxbridge.services.tools.packs.utilities.units import converted
from voxbridge.services.tools.registry import BUILT_IN, load

TOOLS = [chatml.Tool(tool.name, tool.description, tool.parameters) for tool in load(BUILT_IN, timeout_s=30).values()]


@pytest.mark.parametrize(
    ("said", "expression"),
    [
        ("what is 20 percent of 45", "(20/100) * 45"),
        ("How much is 12.5 + 3?", "12.5 + 3"),
        ("can you work out 6 x 7 please", "6 * 7"),
        ("hey what is 4 times 13", "4 * 13"),
        ("the square root of 144", "sqrt(144)"),
        ("80 - 15", "80 - 15"),
        ("what is 12/5", "12/5"),
        ("one two three plus four", "one two three plus four"),
    ],
)
def test_a_sum_is_the_expression(said: str, expression: str) -> None:
    """Kind: a sum that a small model writes down wrongly. What can be read in several ways stays as it was said, to be asked about."""
    assert [(order.function, order.arguments) for order in read(said, TOOLS)] == [("calculate", {"expression": expression})]


@pytest.mark.parametrize(
    ("said", "amount", "units"),
    [
        ("convert 1 MB to Mb", 1, ("MB", "Mb")),
        ("how many MB in 8 Mb", 8, ("Mb", "MB")),
        ("how many seconds in a day", 1, ("day", "seconds")),
        ("how many ounces are in a pound", 1, ("pound", "ounces")),
        ("convert one and a half litres to pints", 1.5, ("litres", "pints")),
        ("what's seventy-two fahrenheit in celsius?", 72, ("fahrenheit", "celsius")),
        ("1,000 grams in kg please", 1000, ("grams", "kg")),
        ("five miles is how many metres", 5, ("miles", "metres")),
    ],
)
def test_a_conversion_is_its_amount_and_units(said: str, amount: float, units: tuple[str, str]) -> None:
    (order,) = read(said, TOOLS)
    assert (order.function, order.arguments) == ("convert_units", {"amount": amount, "from_unit": units[0], "to_unit": units[1]})
    assert converted(amount, *units)["spoken"]


@pytest.mark.parametrize(
    ("said", "day"),
    [
        ("what's the date tomorrow", "tomorrow"),
        ("how many days until July 4", "July 4"),
        ("how long is it until Easter?", "Easter"),
        ("what day of the week is Christmas", "Christmas"),
        ("what date is in 30 days", "in 30 days"),
        ("what day was it 3 days ago", "3 days ago"),
        ("what day will it be in two weeks", "in two weeks"),
        ("when is Thanksgiving this year", "Thanksgiving"),
        ("what was yesterday's date", "yesterday"),
        ("when was Easter", "last Easter"),
        ("what day of the week was July 4", "last July 4"),
        ("on which day does the ninth of June fall", "the ninth of June"),
    ],
)
def test_a_question_for_a_date_is_the_day(said: str, day: str) -> None:
    """Kind: a date that a small model works out in its head."""
    assert [(order.function, order.arguments) for order in read(said, TOOLS)] == [("find_date", {"day": day})]


@pytest.mark.parametrize(
    "said",
    [
        "-40 C to F", "minus 40 C to F", "half a mile in feet", "a mile and a half in feet", "12,5 km in miles", "1/2 mile in km",
        "5 feet 3 inches in cm", "$5 in cents", "two hundred square metres in acres", "what is 5", "what is 5 in cm", "5 minutes",
        "ten minus", "set a timer for 5 minutes", "if I have 90 euros and spend 37 how much remains", "don't convert 5 miles to km",
        "he said 5 + 5", "what is two plus two and set a timer", "9 am in London in Tokyo", "",
        "what day is it", "what day is it in Auckland", "when is my dentist appointment", "how long until the timer is done", "when is it",
        "\ud800", "555-1234", "(212) 555-1234", "2026-11-28", "24/7", "3/4", "1 + " * SAID_LIMIT + "1",
    ],
)  # fmt: skip
def test_what_is_not_read_whole_is_left_to_the_model(said: str) -> None:
    assert read(said, TOOLS) == []


def test_a_session_without_the_function_has_no_call() -> None:
    others = [tool for tool in TOOLS if tool.name not in ("calculate", "convert_units")]
    assert [read(said, others) for said in ("2 + 2", "5 miles in km")] == [[], []]


def request(said: str) -> ChatRequest:
    """Return a request to the model with the functions of an installation."""
    tools = [{"type": "function", "function": {"name": one.name, "description": "", "parameters": one.parameters}} for one in TOOLS]
    return ChatRequest.model_validate({"messages": [{"role": "user", "content": said}], "tools": tools})


@pytest.mark.parametrize(
    ("said", "arguments"),
    [
        ("what is 20 percent of 45", {"expression": "(20/100) * 45"}),
        ("how many MB in 8 Mb", {"amount": 8, "from_unit": "Mb", "to_unit": "MB"}),
    ],
)
def test_the_model_is_not_asked(said: str, arguments: dict[str, Any]) -> None:
    only = chat.plan(request(said), router=trained()).only
    assert msgspec.json.decode(only[only.index("{") : only.rindex("}") + 1])["args"] == arguments


def refused(error: str, *, success: bool = False) -> ChatRequest:
    """Return a request after a call with this result."""
    call = {"id": "c1", "type": "function", "function": {"name": "calculate", "arguments": "{}"}}
    result = msgspec.json.encode({"success": success, "error": error, "code": "INVALID_ARGUMENT"}).decode()
    messages = [
        {"role": "user", "content": "one two three plus four"},
        {"role": "assistant", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c1", "content": result},
    ]
    return ChatRequest.model_validate({**request("").model_dump(exclude_none=True), "messages": messages})


def test_a_refusal_is_told_in_its_own_words() -> None:
    """Kind: what is ambiguous is asked back; a small model said that it found nothing."""
    assert chat.plan(refused("calculate: say it in figures."), router=trained()).only == "Say it in figures."
    assert chat.plan(refused("Which day is meant?"), router=trained()).only == "Which day is meant?"


def test_other_results_are_the_models_to_tell() -> None:
    assert chat.plan(refused("x" * chat.REFUSAL_LIMIT), router=trained()).only
    assert chat.plan(refused("x" * (chat.REFUSAL_LIMIT + 1)), router=trained()).only == ""
    assert chat.plan(refused("x", success=True), router=trained()).only == ""
    assert chat.plan(refused("x")).only == ""


@pytest.mark.parametrize(
    "said", ["what's the weather in London", "order a pizza please", "turn off the lamp in the kitchen", "call my mother"]
)
def test_a_wish_that_nothing_serves_is_not_granted_in_words(said: str) -> None:
    """Kind: weather made up, a lamp said to be off."""
    assert chat.plan(request(said), router=installed()).only == chat.UNABLE


@pytest.mark.parametrize("said", ["what is love", "who wrote Hamlet", "tell me a joke", "bestelle Pizza", "what time is it in Rome", ""])
def test_anything_else_is_not_refused(said: str) -> None:
    assert chat.plan(request(said), router=installed()).only != chat.UNABLE
