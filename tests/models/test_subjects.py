"""Wishes that no built-in function serves, with functions of others that have a description alone."""

from __future__ import annotations

from functools import cache

import pytest

from voxbridge.services.models.api.routers import read_meanings
from voxbridge.services.models.choice.router import Decision, Known, Router
from voxbridge.services.tools.registry import BUILT_IN, load

OWN = [Known(tool.name, tool.description, tool.utterances) for tool in list(load(BUILT_IN, timeout_s=30).values())[:8]]


@cache
def router(known: Known) -> Router:
    """Return the router of this function beside eight of an installation's own."""
    return Router([*OWN, known], read_meanings())


def decided(known: Known, said: str) -> Decision:
    return router(known).decide(said)


@pytest.mark.parametrize(
    ("name", "description", "said"),
    [
        ("get_weather", "Get the current weather for a city.", "what's the weather in London"),
        ("get_weather", "Get the current weather for a city.", "is it raining in Madrid"),
        ("set_lights", "Switch the lights of a room on or off.", "turn off the lights in the kitchen"),
        ("send_email", "Send an e-mail to somebody.", "write an email to my boss"),
        ("play_music", "Play a song, an album or an artist.", "play something by Queen"),
        ("order_pizza", "Order a pizza for delivery.", "order a pizza please"),
        ("create_event", "Create an event in the calendar.", "put lunch with Anna in my calendar"),
    ],
)
def test_a_function_with_a_description_alone_is_found_by_wishes_of_its_subject(name: str, description: str, said: str) -> None:
    """Kind: a tool of an MCP server or of a page, which the local model never called."""
    decision = decided(Known(name, description), said)
    assert (decision.mode, decision.among[0]) == ("call", name)


def test_a_function_takes_over_wishes_near_to_requests_that_were_written_for_it() -> None:
    requests = ("turn off the lights", "close the door", "turn off the TV", "turn off the lamp in the hall")
    decision = decided(Known("HassTurnOff", "Does it.", requests, written=True), "lamps out please")
    assert (decision.mode, decision.among[0]) == ("call", "HassTurnOff")


def test_functions_whose_requests_were_written_are_told_apart_by_the_model() -> None:
    """Kind: "switch on the lamp in the kitchen" was surely a call of `HassTurnOff`, since that had a line with the kitchen."""
    on = Known("HassTurnOn", "Turns on.", ("turn on the light", "switch the lamp on", "turn on the fan", "turn on the TV"), written=True)
    off = Known("HassTurnOff", "Turns off.", ("turn off the light", "no light in the kitchen", "turn off the fan"), written=True)
    both = Router([*OWN, on, off], read_meanings())
    for said in ("switch on the lamp in the kitchen", "switch off the lamp in the kitchen", "lamps out please"):
        decision = both.decide(said)
        assert (decision.mode, set(decision.among)) == ("call", {on.name, off.name})
    assert both.decide("order a pizza please").mode != "call"


@pytest.mark.parametrize("said", ["order a pizza please", "call my mother", "turn the heating up"])
def test_wishes_of_other_subjects_are_not_the_functions(said: str) -> None:
    assert decided(Known("get_weather", "Get the current weather for a city."), said).mode != "call"


def test_a_tool_of_no_subject_takes_no_wishes() -> None:
    for description in ("Returns the sum of two numbers.", "Recursively search for files that match a pattern.", "Echoes back the input."):
        assert decided(Known("tool", description), "what's the weather in London").among[0] != "tool"


def test_a_wish_is_known_to_be_unserved_only_where_all_functions_say_what_people_say() -> None:
    wish = "turn off the lamp in the kitchen"
    assert Router(OWN, read_meanings()).decide(wish).unserved
    assert not decided(Known("control_device", "Control smart home devices."), wish).unserved


def test_what_was_learned_is_the_same_when_it_is_read_back() -> None:
    lamps = [Known(f"lamp_{how}", "Does it.", (f"turn {how} the light", f"switch the lamp {how}"), written=True) for how in ("on", "off")]
    functions = [*OWN, Known("get_weather", "Get the current weather for a city."), *lamps]
    first = Router(functions, read_meanings())
    again = Router(functions, read_meanings(), learned=first.arrays())
    for said in ("weather in Oslo", "turn on the lamp in the hall"):
        assert again.decide(said) == first.decide(said)
    assert set(again.decide("turn on the lamp in the hall").among) == {"lamp_on", "lamp_off"}
