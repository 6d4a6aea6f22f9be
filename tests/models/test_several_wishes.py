"""Requests of several wishes: where they are cut, and which call is made for which part."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import cache, partial
from typing import Any

import pytest

from tests.models.test_choice import FUNCTIONS, trained
from voxbridge.services.models.api import chat, routers
from voxbridge.services.models.api.bodies import ChatRequest
from voxbridge.services.models.choice.router import Known, Router
from voxbridge.services.models.choice.several import PARTS_LIMIT, is_said, wishes
from voxbridge.services.tools.registry import Tool, load
from voxbridge.shared.agents.functions import Function
from voxbridge.shared.agents.talking import END, START

TOOLS = load(("voxbridge.services.tools.packs.everyday." + name for name in ("time", "calculator", "timer", "notes")), timeout_s=30)


def parts_of(said: str) -> list[str]:
    return wishes(said, partial(routers.wanted, trained()))


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
        ("in the kitchen, set a timer for five minutes", None),
        ("tell me a joke and set a timer for five minutes", None),
        ("", None),
    ],
)
def test_a_request_is_cut_where_another_wish_begins(said: str, parts: list[str] | None) -> None:
    assert parts_of(said) == (parts or [said])


def test_a_request_has_so_many_wishes() -> None:
    said = " and ".join(["set a timer for five minutes"] * (PARTS_LIMIT + 2))
    assert len(parts_of(said)) == PARTS_LIMIT


def plan(*messages: dict[str, Any], router: Router | None = None, tools: Sequence[Function | Tool] = tuple(TOOLS.values())) -> chat.Plan:
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
        for tool in tools
    ]
    request = ChatRequest.model_validate({"model": "local", "messages": list(messages), "tools": offered})
    return chat.plan(request, 0.0, router or trained())


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


def test_the_model_reads_each_wish_where_it_is_served() -> None:
    asked = {"role": "user", "content": "remember that the key is under the mat and set a timer for five minutes"}
    first = plan(asked)
    assert "under the mat" in first.prompt.text
    assert "five minutes" not in first.prompt.text
    second = plan(asked, *called(1, "add_note", '{"spoken":"Noted."}'))
    assert second.prompt.text.startswith(first.prompt.text.removesuffix(first.begun))
    assert second.prompt.text.index("Noted") < second.prompt.text.index("five minutes")
    told = plan(asked, *called(1, "add_note", '{"note":"n1"}'))
    assert "mat and set a timer" in told.prompt.text


@cache
def talking() -> Router:
    """Return a router that also knows the switch to voice."""
    return Router([*FUNCTIONS, Known(START.name, START.description, START.utterances)])


@pytest.mark.parametrize(
    ("said", "pending"),
    [
        ("start voice mode and tell me a joke", "tell me a joke"),
        ("switch to voice, please", None),
        ("set a timer for five minutes and switch to voice", "set a timer for five minutes"),
        ("switch to voice, then set a timer for five minutes and tell me the time", "set a timer for five minutes and tell me the time"),
        ("let's talk instead of typing. Is my order there?", "Is my order there?"),
    ],
)
def test_what_is_asked_besides_the_switch_waits_for_the_voice(said: str, pending: str | None) -> None:
    made = plan({"role": "user", "content": said}, router=talking(), tools=(*TOOLS.values(), START))
    arguments = {} if pending is None else {"pending_request": pending}
    assert json.loads(made.only) == {"tool": START.name, "args": arguments}
    assert made.more is False


@cache
def switch() -> Router:
    """Return a router of the switch alone: whatever it makes of a request, both functions are among those that may be meant."""
    return Router([Known(one.name, one.description, one.utterances) for one in (START, END)])


@pytest.mark.parametrize("said", ["what time is it", "and now", "tell me", "voice", ""])
def test_a_request_that_names_nothing_leaves_no_function_broken(said: str) -> None:
    made = plan({"role": "user", "content": said}, router=switch(), tools=(START, END))
    assert "pending_request" not in made.only


def test_a_rest_that_is_too_long_is_left_to_the_model() -> None:
    said = f"start voice mode and tell me {'a very long joke ' * 20}"
    made = plan({"role": "user", "content": said}, router=talking(), tools=(*TOOLS.values(), START))
    assert (START.name in made.begun, made.only) == (True, "")


def test_functions_are_those_of_the_router() -> None:
    assert {tool.name for tool in FUNCTIONS} == set(TOOLS)
