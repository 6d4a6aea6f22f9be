"""Requests after a call: one of its own is not taken for a follow-up of what was done before, and a follow-up is."""

from __future__ import annotations

import random
from functools import cache

import pytest

from bench.choice import sets
from voxbridge.services.models.api.routers import known, read_meanings
from voxbridge.services.models.choice.router import Before, Router
from voxbridge.services.models.core.chatml import Tool
from voxbridge.services.tools.registry import load, named

FRESH = {
    "set a tea timer for two minutes": "set_timer",
    "remember that my spare key is under the mat": "remember",
    "cancel the tea timer": "cancel_task",
    "where did I leave my glasses": "recall",
    "what is twelve times nine": "calculate",
    "how late is it in Rome": "current_time",
    "which tools do you have": "list_tools",
    "make it dark in here please": "switch_theme",
    "read me this page": "read_page_content",
    "open the settings page": "navigate_page",
}


def made(functions: list[Tool]) -> Router:
    return Router([known(function) for function in functions], read_meanings())


@cache
def router() -> Router:
    return made([Tool(one.name, one.description, one.parameters, one.utterances) for one in load(named(""), timeout_s=30).values()])


@pytest.mark.parametrize("said", FRESH)
@pytest.mark.parametrize("before", ["recall", "current_time", "calculate", "set_timer"])
def test_a_request_of_its_own_is_offered_what_it_wants_whatever_was_done_before(said: str, before: str) -> None:
    utterance = next(tool.utterances[0] for name, tool in load(named(""), timeout_s=30).items() if name == before)
    decision = router().decide(said, Before(utterance, before))
    assert decision.mode != "words"
    assert FRESH[said] in decision.among


@pytest.mark.parametrize(
    ("before", "said"),
    [
        ("current_time", "and in Kyoto?"),
        ("current_time", "what about Peru"),
        ("calculate", "and times four"),
        ("calculate", "half of that"),
        ("set_timer", "another one for the eggs"),
        ("remember", "and that the blue one is mine"),
    ],
)
def test_a_follow_up_means_what_was_done_before(before: str, said: str) -> None:
    decision = router().decide(said, Before("x", before))
    assert decision.mode == "call"
    assert decision.among[0] == before


@pytest.mark.parametrize("said", ["Try again.", "do that again", "Once more!"])
def test_a_follow_up_on_nothing_wants_words(said: str) -> None:
    assert router().decide(said).mode == "words"


def test_with_many_functions_a_call_before_costs_few_requests() -> None:
    among = made([Tool(one.name, one.description, one.parameters, one.utterances) for one in sets.functions()])
    asked = sets.requests("development")
    draw = random.Random(5)
    alone = after = 0
    for wanted, request in asked:
        function, earlier = draw.choice([one for one in asked if one[0] != wanted])
        alone += wanted in among.decide(request.say).among
        after += wanted in among.decide(request.say, Before(earlier.say, function)).among
    assert after >= 0.95 * alone
