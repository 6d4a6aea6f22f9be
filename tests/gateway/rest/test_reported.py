"""Inputs that other systems answered wrongly (docs/wrong-answers.md), asked for over REST: what is said, or why it is refused."""

from __future__ import annotations

from typing import Any, Final

import pytest

from tests.gateway.conftest import Running
from tests.gateway.rest.test_functions import ask
from tests.tools.conftest import Executors
from voxbridge.services.tools.registry import BUILT_IN
from voxbridge.shared.config import Config

PACKS: Final = ",".join(pack for pack in BUILT_IN if any(room in pack for room in (".everyday.", ".catalogue.", ".macros.", ".utilities.")))
SEVERAL: Final = "can be read in several ways"

SUMS: Final = {
    "eighty minus fifteen": "65",
    "fifty minus seven": "43",
    "sixty less ten": "50",
    "twelve minus five": "7",
    "one point five million divided by two": "750,000",
    "two point twenty five times four": "9",
    "forty point sixty two plus zero": "40.62",
    "a hundred plus one": "101",
    "two and a half times four": "10",
    "point five times two": "1",
    "divide nine thousand by forty eight": "187.5",
    "add up twelve fifteen and thirty one": "58",
}
TIMES: Final = {
    ("half past ten", "India", "China"): "10:30 AM in Kolkata is 1:00 PM in Shanghai.",
    ("7 in the evening", "China", "Japan"): "7:00 PM in Shanghai is 8:00 PM in Japan.",
    ("four", "MSK", "SGT"): "4:00 AM in MSK is 9:00 AM in SGT.",
    ("12 noon", "HKT", "São Paulo"): "12:00 PM in HKT is 1:00 AM in Sao Paulo.",
    ("7 o’clock", "Sao Paulo", "Tokyo"): "7:00 AM in Sao Paulo is 7:00 PM in Tokyo.",
    ("15h30", "China", "Japan"): "3:30 PM in Shanghai is 4:30 PM in Japan.",
    ("nine in the morning", "India", "China"): "9:00 AM in Kolkata is 11:30 AM in Shanghai.",
}
UNITS: Final = {
    (10, "pounds", "kilos"): "10 pounds is about 4.54 kilograms.",
    (1, "MB", "Mb"): "1 megabyte is 8 megabits.",
    (1, "Kb", "kb"): "1 kilobit is 0.125 kilobytes.",
    (100, "kilometres an hour", "miles an hour"): "100 kilometers per hour is about 62.14 miles per hour.",
    (1, "nautical mile", "kilometers"): "1 nautical mile is about 1.85 kilometers.",
    (1, "imperial gallon", "liters"): "1 imperial gallon is about 4.55 liters.",
}
PLACES: Final = {
    "St. Petersburg": "in Saint Petersburg, Russia.",
    "Saint Petersburg": "in Saint Petersburg, Russia.",
    "Calcutta": "in Kolkata, India.",
    "the Netherlands": "in Amsterdam.",
    "Holland": "in Amsterdam.",
    "Czech Republic": "in Prague.",
}
CALLS: Final[list[tuple[str, dict[str, Any], str]]] = [
    *[("calculate", {"expression": said}, f"That is {right}.") for said, right in SUMS.items()],
    *[("convert_time_zone", {"time": at, "from_zone": one, "to_zone": to}, right) for (at, one, to), right in TIMES.items()],
    *[("convert_units", {"amount": many, "from_unit": one, "to_unit": to}, right) for (many, one, to), right in UNITS.items()],
    *[("current_time", {"place": place}, right) for place, right in PLACES.items()],
]
REFUSED: Final[list[tuple[str, dict[str, Any], str]]] = [
    ("calculate", {"expression": "one two three plus four"}, SEVERAL),
    ("calculate", {"expression": "nine nine nine plus one"}, SEVERAL),
    ("current_time", {"place": "Asia"}, "has many time zones"),
    ("convert_units", {"amount": 1, "from_unit": "KB", "to_unit": "kb"}, "are both kilobytes here"),
    ("convert_units", {"amount": 1, "from_unit": "MB", "to_unit": "mb"}, "are both megabytes here"),
]


@pytest.fixture
async def door(running: Running, nats_url: str, redis_url: str) -> Any:
    async with Executors(Config(nats_url=nats_url, redis_url=redis_url)).running(PACKS):
        yield running


async def run(door: Running, function: str, **arguments: Any) -> dict[str, Any]:
    """Return the result of a function: what it says is `spoken`, why it was refused `error`."""
    result: dict[str, Any] = (await ask(door, "POST", f"function/{function}", json={"args": arguments})).json()["result"]
    return result


async def test_what_others_got_wrong_is_right_or_asked_back(door: Running) -> None:
    wrong = []
    for name, arguments, right in CALLS:
        result = await run(door, name, **arguments)
        if not str(result.get("spoken", "")).endswith(right):
            wrong.append((name, arguments, result))
    for name, arguments, reason in REFUSED:
        result = await run(door, name, **arguments)
        if reason not in str(result.get("error", "")):
            wrong.append((name, arguments, result))
    assert wrong == []


async def test_the_timer_that_is_named_is_cancelled_and_its_time_is_told_in_full(door: Running) -> None:
    for seconds in (300, 600, 5_400):
        assert (await run(door, "set_timer", seconds=seconds))["status"] == "started"
    assert "with 1 hour and 30 minutes left" in (await run(door, "list_tasks"))["spoken"]
    assert (await run(door, "cancel_task", task="the five minute timer"))["spoken"] == "I cancelled the 5 minute timer."
    assert "There is the 10 minute timer" in (await run(door, "cancel_task", task="the pasta timer"))["error"]
    left = await run(door, "list_tasks")
    assert [round(task["seconds_left"], -1) for task in left["tasks"]] == [600, 5_400]


async def test_names_of_every_script_are_names_of_their_own(door: Running) -> None:
    step = {"id": "only", "call": "current_time", "arguments": {"place": "Rome"}}
    for name in ("दिन", "दान", "शाम", "शोम", "C++"):
        saved = await ask(door, "POST", "macros", json={"name": name, "steps": [step]})
        assert saved.status_code == 200, saved.text
    listed = {one["name"] for one in (await ask(door, "GET", "macros")).json()["macros"]}
    assert listed == {"दिन", "दान", "शाम", "शोम", "C++"}
    assert "C#" in (await run(door, "delete_macro", name="C#"))["error"], "there is C++ alone"


async def test_a_note_is_found_by_a_part_of_it_in_every_script(door: Running) -> None:
    for note in ("我的车停在三楼", "Ann is allergic to nuts", "The Wi-Fi password is blue"):
        assert (await run(door, "remember", note=note))["success"]
    for query, note in (("我的车在哪里", "三楼"), ("what allergy does Ann have", "nuts"), ("wifi password", "blue")):
        assert note in (await run(door, "recall", query=query))["spoken"]
