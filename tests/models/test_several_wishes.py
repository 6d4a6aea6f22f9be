"""Requests of several wishes: where they are cut, and which call is made for which part."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest

from tests.models.test_choice import FUNCTIONS, ROUTER
from voxbridge.services.models.api import chat, routers
from voxbridge.services.models.api.bodies import ChatRequest
from voxbridge.services.models.choice.several import PARTS_LIMIT, is_said, wishes
from voxbridge.services.tools.registry import load

CUT = partial(wishes, wanted=partial(routers.wanted, ROUTER))
TOOLS = load(("voxbridge.services.tools.packs.everyday." + name for name in ("time", "calculator", "timer", "notes")), timeout_s=30)


@pytest.mark.parametrize(
    ("said", "parts"),
    [
        (
            "set a timer for five minutes and tell me the time in Rome",
            ["set a timer for five minutes", "tell me the time in Rome"],
        ),
        ("what time is it in Tokyo, and then start a timer of an hour", ["what time is it in Tokyo", "start a timer of an hour"]),
        ("set a timer for five minutes and set another for ten minutes", ["set a timer for five minutes", "set another for ten minutes"]),
        ("remember that Anna likes tea and Tom likes coffee", None),
        ("what is three plus four", None),
        ("set a timer for an hour and five minutes", None),
        ("remember the code and tell it to nobody", None),
        ("when I say tea time set a timer and tell me the time", None),
        ("don't set a timer and tell me the time in Rome", None),
        ("tell me a joke and set a timer for five minutes", None),
        ("", None),
    ],
)
def test_a_request_is_cut_where_another_wish_begins(said: str, parts: list[str] | None) -> None:
    assert CUT(said) == (parts or [said])


def test_a_request_has_so_many_wishes() -> None:
    said = " and ".join(["set a timer for five minutes"] * (PARTS_LIMIT + 2))
    assert len(CUT(said)) == PARTS_LIMIT


def plan(*messages: dict[str, Any]) -> chat.Plan:
    """Return the plan of a request with these messages and the functions of the router."""
    offered = [
        {
            "type": "function",
            "function": {
                "name": tool.name,
                "description": tool.description,
                "parameters": tool.parameters,
                "utterances": list(tool.utterances)[:24],
            },
        }
        for tool in TOOLS.values()
    ]
    request = ChatRequest.model_validate({"model": "local", "messages": list(messages), "tools": offered})
    return chat.plan(request, 0.0, ROUTER)


def called(number: int, name: str, result: str) -> list[dict[str, Any]]:
    """Return the messages of a call and its result."""
    call = {"id": f"c{number}", "type": "function", "function": {"name": name, "arguments": "{}"}}
    return [{"role": "assistant", "tool_calls": [call]}, {"role": "tool", "tool_call_id": f"c{number}", "content": result}]


ASKED = {"role": "user", "content": "set a timer for five minutes and tell me the time in Rome"}


def test_each_wish_is_a_call_and_the_caller_is_told_that_another_is_left() -> None:
    first = plan(ASKED)
    assert (first.more, "set_timer" in first.begun + first.only) == (True, True)
    second = plan(ASKED, *called(1, "set_timer", '{"spoken":"Five minutes."}'))
    assert (second.more, "current_time" in second.begun + second.only) == (False, True)
    last = plan(ASKED, *called(1, "set_timer", '{"spoken":"Five minutes."}'), *called(2, "current_time", '{"spoken":"It is nine."}'))
    assert (last.more, last.begun, last.only) == (False, "", "")


def test_a_result_that_is_not_said_as_it_is_is_told_by_the_model_first() -> None:
    told = plan(ASKED, *called(1, "set_timer", '{"seconds":300}'))
    assert (told.more, told.begun, told.only) == (False, "", "")
    assert plan({"role": "user", "content": "set a timer for five minutes"}).more is False


@pytest.mark.parametrize(
    ("result", "said"), [('{"spoken":"x"}', True), ('{"error":"x"}', True), ('{"spoken":""}', False), ("[]", False), ("no JSON", False)]
)
def test_a_result_is_said_as_it_is_where_it_has_words(result: str, said: bool) -> None:
    assert is_said(result) is said


def test_functions_are_those_of_the_router() -> None:
    assert {tool.name for tool in FUNCTIONS} == set(TOOLS)
