"""Choosing among functions: what the router makes of requests, small talk and follow-ups, and what it leaves the model to write."""

from __future__ import annotations

import numpy as np
import pytest

from tests.models import gbnf
from voxbridge.services.models.api import chat, routers
from voxbridge.services.models.api.bodies import MAX_UTTERANCES, ChatRequest
from voxbridge.services.models.choice import features, small_talk
from voxbridge.services.models.choice.arguments import narrowed, written
from voxbridge.services.models.choice.router import SHORTLIST, Before, Known, Router
from voxbridge.services.models.core import chatml
from voxbridge.services.tools.registry import BUILT_IN, load

FUNCTIONS = [
    Known(tool.name, tool.description, tool.utterances)
    for tool in load(
        ("voxbridge.services.tools.packs.everyday." + name for name in ("time", "calculator", "timer", "notes")), timeout_s=30
    ).values()
]
ROUTER = Router(FUNCTIONS)
THEMES = {"theme": {"type": "string", "enum": ["light", "dark", "system"]}}


@pytest.mark.parametrize(
    ("said", "name"),
    [
        ("what's the time over in Reykjavik", "current_time"),
        ("eighty one divided by nine", "calculate"),
        ("could you start a timer of twelve minutes", "set_timer"),
        ("remember that the shed key is with Olga", "remember"),
        ("watt thyme is it in Boston", "current_time"),
    ],
)
def test_a_request_is_a_call_of_the_function_that_it_wants(said: str, name: str) -> None:
    decision = ROUTER.decide(said)
    assert decision.mode == "call"
    assert decision.shortlist[0] == name
    assert name in decision.among


@pytest.mark.parametrize("said", ["hello there", "thanks a lot", "tell me a joke about cows", "who painted the Mona Lisa", ""])
def test_small_talk_wants_words(said: str) -> None:
    assert ROUTER.decide(said).mode != "call"


def test_a_follow_up_wants_the_function_of_the_turn_before() -> None:
    before = Before("what time is it in Tokyo", "current_time")
    decision = ROUTER.decide("and in Bogota", before)
    assert (decision.mode, decision.shortlist[0]) == ("call", "current_time")
    assert ROUTER.decide("what about the small one", Before("what is three times four", "calculate")).shortlist[0] == "calculate"
    assert ROUTER.decide("thank you", before).mode == "words"


def test_a_function_that_is_not_known_any_more_is_no_follow_up() -> None:
    assert ROUTER.decide("and in Bogota", Before("how is the weather", "weather")) == ROUTER.decide("and in Bogota")


def test_the_shortlist_is_bounded_and_what_is_far_behind_is_left_out() -> None:
    many = [Known(f"thing_{index}", f"Do thing number {index}.", (f"please do thing number {index}",)) for index in range(40)]
    decision = Router(many).decide("do a thing")
    assert len(decision.shortlist) == SHORTLIST
    assert 1 <= len(decision.among) <= SHORTLIST
    assert ROUTER.decide("set a timer for ten minutes").among == ("set_timer",)


def test_a_set_of_one_function_without_utterances_is_learned() -> None:
    assert Router([Known("lamp", "Switch the lamp on or off.")]).decide("switch the lamp off").shortlist == ("lamp",)


def test_long_texts_and_words_are_cut() -> None:
    assert len(features.words("a " * 10_000)) == features.WORDS_LIMIT
    assert len(features.words("a" * 10_000)[0]) == features.LETTERS_LIMIT
    assert ROUTER.decide("blah " * 20_000 + "what time is it in Rome").shortlist[0] == "current_time"


def test_words_that_mean_alike_are_near_to_each_other() -> None:
    table = routers.read_meanings()
    rare = np.ones(features.DIMENSIONS, np.float32)

    def near(one: str, other: str) -> float:
        return float(table.of(one, rare) @ table.of(other, rare))

    assert near("remove it", "delete it") > near("remove it", "play it")
    assert near("warm", "hot") > near("warm", "invoice")
    assert not table.of("qwxyz", rare).any()
    assert table.known >= 20_000


def test_a_router_with_meanings_knows_words_that_nobody_taught_it() -> None:
    functions = [
        Known("delete_note", "Delete a note.", ("delete the note", "remove my note", "erase that note")),
        Known("read_note", "Read a note aloud.", ("read the note", "what does the note say")),
    ]
    assert Router(functions, routers.read_meanings()).decide("destroy the note").shortlist[0] == "delete_note"


def test_training_twice_gives_the_same_answers() -> None:
    assert Router(FUNCTIONS).decide("what time is it in Rome") == ROUTER.decide("what time is it in Rome")


def test_no_line_of_small_talk_stands_there_twice() -> None:
    assert len(set(small_talk.LINES)) == len(small_talk.LINES) >= 150


@pytest.mark.parametrize(
    ("said", "kept"),
    [
        ("make it dark", ["dark"]),
        ("as the sistem has it", ["system"]),
        ("from light to dark", ["light", "dark"]),
        ("change it", ["light", "dark", "system"]),
    ],
)
def test_an_enum_holds_what_was_said(said: str, kept: list[str]) -> None:
    schema = {"type": "object", "properties": THEMES, "required": ["theme"]}
    assert narrowed(schema, said)["properties"]["theme"]["enum"] == kept


def test_an_argument_that_may_be_left_out_is_when_none_of_its_values_was_said() -> None:
    schema = {
        "type": "object",
        "properties": {"graph": {"type": "string", "enum": ["team_wiki", "product_docs"]}, "query": {"type": "string"}},
    }
    assert list(narrowed(schema, "look for parking")["properties"]) == ["query"]
    named = narrowed(schema, "look for parking in the wiki")
    assert named["properties"]["graph"]["enum"] == ["team_wiki"]
    assert named["required"] == ["graph"]
    assert narrowed({"type": "object"}, "anything") == {"type": "object"}


def test_a_word_names_one_argument() -> None:
    graph = {"type": "string", "enum": ["product_docs", "team_wiki"]}
    schema = {"type": "object", "properties": {"kind": {"type": "string", "enum": ["person", "product"]}, "graph": graph}}
    assert list(narrowed(schema, "search the product docs")["properties"]) == ["graph"]
    assert list(narrowed(schema, "which person is in the wiki")["properties"]) == ["kind", "graph"]


@pytest.mark.parametrize(
    ("said", "text"),
    [
        ("generate tests for core dot py", "generate tests for core.py"),
        ("an endpoint at slash orders please", "an endpoint at /orders please"),
        ("is example dot com up", "is example.com up"),
        ("connect the dot to the line", "connect the dot to the line"),
    ],
)
def test_names_are_written_as_files_and_paths_are(said: str, text: str) -> None:
    assert written(said) == text


def _request(said: str, *, utterances: bool = True, **more: object) -> ChatRequest:
    tools = [
        {
            "type": "function",
            "function": {
                "name": card.name,
                "description": card.description,
                "parameters": card.parameters,
                **({"utterances": list(card.utterances)} if utterances else {}),
            },
        }
        for card in (tool.card() for tool in load(BUILT_IN, timeout_s=30).values())
    ]
    return ChatRequest.model_validate({"messages": [{"role": "user", "content": said}], "tools": tools, **more})


async def _plan(request: ChatRequest) -> chat.Plan:
    return chat.plan(request, 0.0, await routers.Routers().of(request.offered()))


async def test_a_sure_call_is_begun_in_the_prompt_and_is_the_only_answer() -> None:
    plan = await _plan(_request("set a timer for ten minutes"))
    assert plan.begun == '{"tool": "set_timer", "args":'
    assert plan.prompt.text.endswith(plan.begun)
    assert gbnf.accepts(plan.sampling.grammar, ' {"seconds": 600}}')
    assert not gbnf.accepts(plan.sampling.grammar, "Timer set.")


async def test_small_talk_is_answered_in_words_only() -> None:
    plan = await _plan(_request("thank you so much"))
    assert plan.begun == ""
    assert gbnf.accepts(plan.sampling.grammar, "You are welcome.")
    assert not gbnf.accepts(plan.sampling.grammar, '{"tool": "recall", "args": {"query": ""}}')


async def test_the_prompt_of_a_conversation_is_the_same_whatever_is_asked() -> None:
    families = {(await _plan(_request(said))).prompt.family for said in ("hello", "set a timer for ten minutes", "what is 3 times 4")}
    assert len(families) == 1


async def test_a_caller_without_utterances_is_answered_as_ever() -> None:
    request = _request("set a timer for ten minutes", utterances=False)
    assert await routers.Routers().of(request.offered()) is None
    plan = await _plan(request)
    assert "To use a tool, answer with its JSON" in plan.prompt.family
    assert gbnf.accepts(plan.sampling.grammar, "Timer set.")


async def test_after_a_result_the_model_speaks() -> None:
    request = _request("x")
    call = {"id": "c", "type": "function", "function": {"name": "current_time", "arguments": '{"place": "Rome"}'}}
    messages = [
        {"role": "user", "content": "what time is it in Rome"},
        {"role": "assistant", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c", "content": '{"local_time": "12:00"}'},
    ]
    body = {**request.model_dump(exclude_none=True), "messages": messages}
    plan = await _plan(ChatRequest.model_validate(body))
    assert not gbnf.accepts(plan.sampling.grammar, '{"tool": "current_time", "args": {"place": "Rome"}}')


async def test_a_required_tool_is_the_callers_choice() -> None:
    plan = await _plan(_request("hello", tool_choice={"type": "function", "function": {"name": "recall"}}))
    assert plan.begun == '{"tool": "recall", "args":'


async def test_routers_are_kept_and_their_number_is_bounded() -> None:
    kept = routers.Routers()
    first = [chatml.Tool("lamp", "Switch the lamp.", {}, ("lamp on",))]
    router = await kept.of(first)
    assert await kept.of(first) is router
    for index in range(routers.KEPT):
        await kept.of([chatml.Tool(f"lamp_{index}", "Switch the lamp.", {}, ("lamp on",))])
    assert await kept.of(first) is not router


def test_the_number_and_length_of_utterances_have_limits() -> None:
    def offer(utterances: list[str]) -> dict[str, object]:
        function = {"name": "lamp", "utterances": utterances}
        return {"messages": [{"role": "user", "content": "x"}], "tools": [{"type": "function", "function": function}]}

    ChatRequest.model_validate(offer(["x" * 200] * MAX_UTTERANCES))
    for wrong in (["x"] * (MAX_UTTERANCES + 1), ["x" * 201]):
        with pytest.raises(ValueError, match="utterances"):
            ChatRequest.model_validate(offer(wrong))


async def test_a_sure_call_without_arguments_needs_no_model() -> None:
    plan = await _plan(_request("what are you working on right now"))
    assert plan.only == '{"tool": "list_tasks", "args": {}}'
    answer = chat.Answer(None, _request("x"), plan)  # type: ignore[arg-type]  # there is no engine that it could ask
    await answer.begin()
    (choice,) = (await answer.whole())["choices"]
    assert choice["finish_reason"] == "tool_calls"
    assert choice["message"]["tool_calls"][0]["function"] == {"name": "list_tasks", "arguments": "{}"}
