"""On a page that goes from text to voice, requests of all kinds are not taken for requests to switch, which the router knows best there."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import pytest

from voxbridge.services.models.api.routers import known, read_meanings
from voxbridge.services.models.choice.router import Before, Known, Router
from voxbridge.services.models.core.chatml import Tool
from voxbridge.shared.agents.talking import END, START

SHOP = (Known("check_order", "Look up order status by order ID"), Known("find_product", "Search the catalogue by words and price"))
SWITCHES = {START.name, END.name}


@cache
def router(own: Sequence[Known]) -> Router:
    """Return a router of a page with these functions of its own."""
    switches = [known(Tool(one.name, one.description, one.parameters, one.utterances)) for one in (START, END)]
    return Router([*switches, *own], read_meanings())


@pytest.mark.parametrize("own", [(), SHOP], ids=["nothing of its own", "a shop"])
@pytest.mark.parametrize(
    "said",
    [
        "I want to buy a shirt", "I want to go to Rome", "I would rather have tea", "can we go on with the story", "I want my money back",
        "I'd rather wait for the cats", "go back to the first question", "close the topic", "I want to pay by card", "I'd like to complain",
        "turn the heating off", "open your mind", "I want to hear a joke", "can we go to the sea",
        "I want to change my doctor", "what is your return policy",
    ],
)  # fmt: skip
def test_a_request_that_names_no_voice_and_no_text_is_no_switch(said: str, own: Sequence[Known]) -> None:
    decision = router(own).decide(said)
    assert not SWITCHES & set(decision.shortlist)
    assert decision.mode != "call"


@pytest.mark.parametrize("own", [(), SHOP], ids=["nothing of its own", "a shop"])
@pytest.mark.parametrize(
    ("said", "wanted"),
    [
        ("let me speak", START.name), ("turn on my mic", START.name), ("switch over to voice please", START.name),
        ("can I use my voice", START.name), ("I'd like to continue by voice", START.name), ("let me type", END.name),
        ("I want to type now", END.name), ("switch back to text", END.name), ("close my microphone", END.name),
        ("end voice mode please", END.name),
    ],
)  # fmt: skip
def test_a_switch_is_still_asked_for_in_many_ways(said: str, wanted: str, own: Sequence[Known]) -> None:
    decision = router(own).decide(said)
    assert decision.mode == "call"
    assert decision.shortlist[0] == wanted


def test_a_wish_that_was_nearest_to_the_switch_may_be_for_a_function_of_the_page() -> None:
    decision = router(SHOP).decide("I want to buy a shirt")
    assert (decision.mode, set(decision.shortlist)) == ("unsure", {"check_order", "find_product"})


def test_behind_a_switch_a_follow_up_may_be_for_it() -> None:
    decision = router(SHOP).decide("and back again", Before("switch to voice", START.name))
    assert START.name in decision.shortlist
