"""Choosing among functions: what the router makes of requests, small talk and follow-ups, and what it leaves the model to write."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from functools import cache

import msgspec
import numpy as np
import pytest

from tests.models import gbnf
from voxbridge.services.models.api import chat, routers
from voxbridge.services.models.api.bodies import MAX_NAMED, MAX_NAMES, MAX_UTTERANCES, ChatRequest
from voxbridge.services.models.choice import features, small_talk, wishes
from voxbridge.services.models.choice.router import SHORTLIST, Before, Known, Router
from voxbridge.services.models.core import chatml
from voxbridge.services.models.engines.background import Background
from voxbridge.services.models.engines.llm import Sampling, Step
from voxbridge.services.models.engines.readings import Readings
from voxbridge.services.tools.registry import BUILT_IN, load
from voxbridge.shared.language.own_offer import NAMES_LIMIT, UTTERANCES_LIMIT

FUNCTIONS = [
    Known(tool.name, tool.description, tool.utterances)
    for tool in load(
        ("voxbridge.services.tools.packs.everyday." + name for name in ("time", "calculator", "timer", "notes")), timeout_s=30
    ).values()
]


@cache
def trained() -> Router:
    """Return the router of `FUNCTIONS`: trained for whom needs it first, not for all who read this module."""
    return Router(FUNCTIONS)


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
    decision = trained().decide(said)
    assert decision.mode == "call"
    assert decision.shortlist[0] == name
    assert name in decision.among


@pytest.mark.parametrize("said", ["hello there", "thanks a lot", "tell me a joke about cows", "who painted the Mona Lisa", ""])
def test_small_talk_wants_words(said: str) -> None:
    assert trained().decide(said).mode != "call"


def test_a_follow_up_wants_the_function_of_the_turn_before() -> None:
    before = Before("what time is it in Tokyo", "current_time")
    decision = trained().decide("and in Bogota", before)
    assert (decision.mode, decision.shortlist[0]) == ("call", "current_time")
    assert trained().decide("what about the small one", Before("what is three times four", "calculate")).shortlist[0] == "calculate"
    assert trained().decide("thank you", before).mode == "words"


def test_a_function_that_is_not_known_any_more_is_no_follow_up() -> None:
    assert trained().decide("and in Bogota", Before("how is the weather", "weather")) == trained().decide("and in Bogota")


def test_the_shortlist_is_bounded_and_what_is_far_behind_is_left_out() -> None:
    many = [Known(f"thing_{index}", f"Do thing number {index}.", (f"please do thing number {index}",)) for index in range(40)]
    decision = Router(many).decide("do a thing")
    assert len(decision.shortlist) == SHORTLIST
    assert 1 <= len(decision.among) <= SHORTLIST
    assert trained().decide("set a timer for ten minutes").among == ("set_timer",)


def test_a_set_of_one_function_without_utterances_is_learned() -> None:
    assert Router([Known("lamp", "Switch the lamp on or off.")]).decide("switch the lamp off").shortlist == ("lamp",)


def test_long_texts_and_words_are_cut() -> None:
    assert len(features.words("a " * 10_000)) == features.WORDS_LIMIT
    assert len(features.words("a" * 10_000)[0]) == features.LETTERS_LIMIT
    assert trained().decide("blah " * 20_000 + "what time is it in Rome").shortlist[0] == "current_time"


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
    assert Router(FUNCTIONS).decide("what time is it in Rome") == trained().decide("what time is it in Rome")


def test_no_line_of_small_talk_stands_there_twice() -> None:
    assert len(set(small_talk.LINES)) == len(small_talk.LINES) >= 150


@pytest.mark.parametrize(
    "said", ["switch off the lamp in the attic", "order two pizzas", "call a taxi", "what's the weather in Rome", "is it raining in Madrid"]
)
def test_a_wish_that_no_function_serves_wants_words(said: str) -> None:
    assert trained().decide(said).mode != "call"


def test_a_wish_that_a_function_serves_is_a_call_of_it() -> None:
    lamp = Known("switch_lamp", "Switch a lamp.", ("turn on the kitchen lights", "lights out please", "turn off the lamp in the bedroom"))
    router = Router([*FUNCTIONS, lamp])
    for said in ("switch off the lamp in the attic", "turn on the lights in the bedroom"):
        assert (router.decide(said).mode, router.decide(said).shortlist[0]) == ("call", "switch_lamp")
    assert router.decide("order two pizzas").mode != "call"


def test_no_wish_stands_there_twice() -> None:
    lines = [line for subject in wishes.SUBJECTS for line in subject]
    assert len(set(lines)) == len(lines) >= 300


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


@cache
def _trained(functions: tuple[Known, ...]) -> Router:
    return Router(functions, routers.read_meanings())


def _plan(request: ChatRequest) -> chat.Plan:
    tools = request.offered()
    router = _trained(tuple(routers.known(tool) for tool in tools)) if any(tool.utterances for tool in tools) else None
    return chat.plan(request, 0.0, router)


def test_a_sure_call_is_begun_in_the_prompt_and_is_the_only_answer() -> None:
    plan = _plan(_request("set a timer for ten minutes"))
    assert plan.begun == '{"tool": "set_timer", "args": {"seconds":'
    assert plan.prompt.text.endswith(plan.begun)
    assert gbnf.accepts(plan.sampling.grammar, " 600}}")
    assert not gbnf.accepts(plan.sampling.grammar, "Timer set.")


def test_small_talk_is_answered_in_words_only() -> None:
    plan = _plan(_request("thank you so much"))
    assert plan.begun == ""
    assert gbnf.accepts(plan.sampling.grammar, "You are welcome.")
    assert not gbnf.accepts(plan.sampling.grammar, '{"tool": "recall", "args": {"query": ""}}')


def test_the_prompt_of_a_conversation_is_the_same_whatever_is_asked() -> None:
    families = {_plan(_request(said)).prompt.family for said in ("hello", "set a timer for ten minutes", "what is 3 times 4")}
    assert len(families) == 1


async def test_a_caller_without_utterances_is_answered_as_ever() -> None:
    request = _request("set a timer for ten minutes", utterances=False)
    assert await routers.Routers().of(request.offered()) is None
    plan = _plan(request)
    assert "To use a tool, answer with its JSON" in plan.prompt.family
    assert gbnf.accepts(plan.sampling.grammar, "Timer set.")


def test_after_a_result_the_model_speaks() -> None:
    request = _request("x")
    call = {"id": "c", "type": "function", "function": {"name": "current_time", "arguments": '{"place": "Rome"}'}}
    messages = [
        {"role": "user", "content": "what time is it in Rome"},
        {"role": "assistant", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c", "content": '{"local_time": "12:00"}'},
    ]
    body = {**request.model_dump(exclude_none=True), "messages": messages}
    plan = _plan(ChatRequest.model_validate(body))
    assert not gbnf.accepts(plan.sampling.grammar, '{"tool": "current_time", "args": {"place": "Rome"}}')


def test_a_required_tool_is_the_callers_choice() -> None:
    plan = _plan(_request("hello", tool_choice={"type": "function", "function": {"name": "recall"}}))
    assert plan.begun == '{"tool": "recall", "args": {"query":'


async def test_routers_are_kept_and_their_number_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(routers, "KEPT", 2)
    kept = routers.Routers()
    first = [chatml.Tool("lamp", "Switch the lamp.", {}, ("lamp on",))]
    router = await kept.of(first)
    assert await kept.of(first) is router
    for index in range(routers.KEPT):
        await kept.of([chatml.Tool(f"lamp_{index}", "Switch the lamp.", {}, ("lamp on",))])
    assert await kept.of(first) is not router


def test_no_function_has_more_utterances_than_are_sent_and_taken() -> None:
    assert UTTERANCES_LIMIT == MAX_UTTERANCES
    assert {name for name, tool in load(BUILT_IN, timeout_s=30).items() if len(tool.utterances) > MAX_UTTERANCES} == set()


def test_the_number_and_length_of_utterances_have_limits() -> None:
    def offer(utterances: list[str]) -> dict[str, object]:
        function = {"name": "lamp", "utterances": utterances}
        return {"messages": [{"role": "user", "content": "x"}], "tools": [{"type": "function", "function": function}]}

    ChatRequest.model_validate(offer(["x" * 200] * MAX_UTTERANCES))
    for wrong in (["x"] * (MAX_UTTERANCES + 1), ["x" * 201]):
        with pytest.raises(ValueError, match="utterances"):
            ChatRequest.model_validate(offer(wrong))


class _Engine:
    """An engine that has read `known`, and notes the prompts that it is asked with."""

    def __init__(self, known: str = "") -> None:
        self.known, self.asked, self.kept = known, "", False

    def knows(self, family: str) -> bool:
        return family == self.known

    async def generate(self, prompt: chatml.Prompt, _sampling: Sampling, *, keep: bool = False) -> AsyncGenerator[Step]:
        self.asked, self.kept = prompt.text, keep
        yield Step("ok", reason="stop")


def _unread() -> Readings:
    async def nothing(*_: object) -> None:
        pass

    return Readings(Background((), quiet_s=0.0), nothing, nothing)


async def _asked(request: ChatRequest, engine: _Engine, readings: Readings) -> str:
    answer = chat.Answer(engine, request, _plan(request), readings)  # type: ignore[arg-type]  # it has what an answer uses
    await answer.begin()
    await answer.close()
    return engine.asked


async def test_an_answer_does_not_wait_for_a_long_prompt_to_be_read() -> None:
    request, readings = _request("set a timer for ten minutes and call it tea", keep_prompt=True), _unread()
    plan = _plan(request)
    assert plan.short is not None
    assert "set_timer" in plan.short.text
    assert len(plan.short.text) < len(plan.prompt.text) / 2
    cold = _Engine()
    assert await _asked(request, cold, readings) == plan.short.text
    assert not cold.kept, "what is read for one request only is not saved"
    assert readings.waiting == 1

    warm = _Engine(plan.prompt.family)
    assert await _asked(request, warm, readings) == plan.prompt.text
    assert warm.kept


async def test_an_answer_in_the_background_waits_for_the_whole_prompt() -> None:
    request, readings, cold = _request("set a timer for ten minutes and call it tea", background=True), _unread(), _Engine()
    assert await _asked(request, cold, readings) == _plan(request).prompt.text
    assert readings.waiting == 0


def test_words_do_not_wait_for_tools_to_be_read() -> None:
    plan = _plan(_request("thank you so much"))
    assert (plan.tools, plan.short is not None) == (True, True)
    assert plan.short is not None
    assert "set_timer" not in plan.short.text
    assert plan.short.text.endswith("thank you so much<|im_end|>\n<|im_start|>assistant\n")


def test_after_a_result_the_short_prompt_begins_as_the_one_of_the_call_did() -> None:
    request = _request("set a timer for ten minutes and call it tea")
    called = {"id": "c", "type": "function", "function": {"name": "set_timer", "arguments": "{}"}}
    body = request.model_dump(exclude_none=True)
    body["messages"] += [
        {"role": "assistant", "content": None, "tool_calls": [called]},
        {"role": "tool", "tool_call_id": "c", "content": "It rings at noon."},
    ]
    first, then = _plan(request).short, _plan(ChatRequest.model_validate(body)).short
    assert first is not None
    assert then is not None
    assert then.text.startswith(first.text.partition("<|im_start|>user")[0])


async def test_a_sure_call_without_arguments_needs_no_model() -> None:
    plan = _plan(_request("what are you working on right now"))
    assert plan.only == '{"tool": "list_tasks", "args": {}}'
    answer = chat.Answer(None, _request("x"), plan, _unread())  # type: ignore[arg-type]  # there is no engine that it could ask
    await answer.begin()
    (choice,) = (await answer.whole())["choices"]
    assert choice["finish_reason"] == "tool_calls"
    assert choice["message"]["tool_calls"][0]["function"] == {"name": "list_tasks", "arguments": "{}"}


@pytest.mark.parametrize(
    ("properties", "required", "begun", "rest", "wrong"),
    [
        ({"a": {"type": "integer"}}, ["a"], '{"a":', " 5}}", " }}"),
        ({"a": {"type": "integer"}, "b": {"type": "string"}}, ["a"], '{"a":', ' 5, "b": "x"}}', ' 5"b": "x"}}'),
        ({"a": {"type": "integer"}, "b": {"type": "string"}}, ["a", "b"], '{"a":', ' 5, "b": "x"}}', " 5}}"),
        ({"a": {"type": "integer"}, "b": {"type": "string"}}, ["b"], "", ' {"b": "x"}}', ' {"a": 5}}'),
        ({"a": {"type": "integer"}}, [], "", " {}}", " 5}}"),
        ({"a": {"anyOf": [{"type": "integer"}, {"type": "null"}]}}, ["a"], '{"a":', " null}}", ' "x"}}'),
    ],
)
def test_a_call_is_begun_as_far_as_it_is_certain(
    properties: dict[str, object], required: list[str], begun: str, rest: str, wrong: str
) -> None:
    tools, choice = (
        [chatml.Tool("do_it", "", {"type": "object", "properties": properties, "required": required})],
        chatml.Choice("required"),
    )
    text = chatml.begun(tools, choice)
    assert text == f'{{"tool": "do_it", "args": {begun}'.rstrip()
    grammar = chatml.tool_grammar(tools, choice, text)
    assert gbnf.accepts(grammar, rest)
    assert not gbnf.accepts(grammar, wrong)


def test_what_was_begun_in_the_prompt_is_part_of_the_call_that_is_read() -> None:
    reader = chatml.Reader(tools=True)
    pieces = reader.feed('{"tool": "do_it", "args": {"a":') + reader.feed(" 5}") + reader.feed("}") + reader.end()
    assert pieces[0] == chatml.CallBegun("do_it")
    assert "".join(piece.text for piece in pieces if isinstance(piece, chatml.CallArguments)) == '{"a": 5}'


def test_the_number_and_length_of_names_have_limits() -> None:
    def offer(names: dict[str, list[str]]) -> dict[str, object]:
        function = {"name": "lamp", "utterances": ["light"], "names": names}
        return {"messages": [{"role": "user", "content": "x"}], "tools": [{"type": "function", "function": function}]}

    assert NAMES_LIMIT == MAX_NAMES
    ChatRequest.model_validate(offer({f"a{number}": ["x" * 200] * MAX_NAMES for number in range(MAX_NAMED)}))
    wrong: list[dict[str, list[str]]] = [
        {f"a{number}": ["x"] for number in range(MAX_NAMED + 1)},
        {"a": ["x"] * (MAX_NAMES + 1)},
        {"a": ["x" * 201]},
        {"a": [""]},
    ]
    for names in wrong:
        with pytest.raises(ValueError, match="names"):
            ChatRequest.model_validate(offer(names))


def test_names_train_no_router_of_their_own() -> None:
    plain = chatml.Tool("run_macro", "Run a macro.", {"type": "object"}, ("run it",))
    assert routers.known(plain) == routers.known(msgspec.structs.replace(plain, names={"name": ["lunch"]}))
