"""Claude against a server with the answers and refusals of Anthropic's."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from tests.fakes import tls
from tests.fakes.anthropic.server import CACHED_TOKENS, KEY, AnthropicServer, Block, End, Failure, Item, Raw, Status, Stop, Thought, Use
from tests.voice.model_server import Fault
from voxbridge.services.voice.providers.cascade.models import Models
from voxbridge.shared.agents.functions import Function
from voxbridge.shared.config import Config
from voxbridge.shared.errors import Code, VoxbridgeError
from voxbridge.shared.language import base
from voxbridge.shared.language.anthropic import MAX_TOKENS, PAUSES_LIMIT
from voxbridge.shared.language.base import ARGUMENTS_LIMIT, GO_ON, OPENING, RETRY_WAIT_S
from voxbridge.shared.language.conversation import Complete, Completed, Message, TextDelta, ToolRequested, ToolUse

TIME = Function(name="current_time", description="The time.", parameters={"type": "object", "properties": {"place": {"type": "string"}}})
ADD = Function(name="add", description="A sum.", parameters={"type": "object", "properties": {}})
ROME = ToolUse(call_id="fc_1", name="current_time", arguments={"place": "Rome"})
OSLO = ToolUse(call_id="fc_2", name="current_time", arguments={"place": "Oslo"})
HI = Message(role="user", text="Hi")


def ask(*messages: Message, functions: tuple[Function, ...] = (), model: str = "") -> Complete:
    system = Message(role="system", text="Be kind.")
    return Complete(provider="anthropic", model=model, messages=(system, *(messages or (HI,))), functions=functions)


async def written(models: Models, request: Complete | None = None, *, into: list[Any] | None = None) -> list[Any]:
    got = [] if into is None else into
    async for one in models.complete(5, request or ask()):
        got.append(one)
    return got


@pytest.fixture
async def server(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[AnthropicServer]:
    async with AnthropicServer() as server:
        monkeypatch.setenv("ANTHROPIC_BASE_URL", server.url)
        monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)
        yield server


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Take a vendor for dead that is silent for 1.5 s. Only where it is: a busy machine is that slow."""
    monkeypatch.setattr(base, "READ_TIMEOUT_S", 1.5)


@pytest.fixture
async def models(server: AnthropicServer, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Models]:
    monkeypatch.setattr(base, "RETRIES", 0)
    models = Models(Config())
    yield models
    await models.close()


async def test_text_comes_as_it_is_written_and_the_count_of_tokens_last(server: AnthropicServer, models: Models) -> None:
    server.script(["It is ", "noon."])
    completed = Completed(effect=5, input_tokens=7 + CACHED_TOKENS, output_tokens=3)
    assert await written(models) == [TextDelta(5, "It is "), TextDelta(5, "noon."), completed]
    (body,) = server.bodies
    assert (body["model"], body["max_tokens"], body["stream"]) == ("claude-sonnet-5", MAX_TOKENS, True)
    assert body["output_config"] == {"effort": "low"}, "a spoken answer cannot wait for long thoughts"
    assert body["system"] == [{"type": "text", "text": "Be kind.", "cache_control": {"type": "ephemeral"}}]


async def test_a_model_without_effort_is_not_told_of_it(server: AnthropicServer, models: Models) -> None:
    assert (await written(models, ask(model="claude-haiku-4-5")))[0] == TextDelta(5, "All right.")
    assert "output_config" not in server.bodies[0]


async def test_thoughts_are_not_said_and_blocks_of_text_do_not_run_together(server: AnthropicServer, models: Models) -> None:
    server.script([Thought("Hm."), "It is noon.", Block(), "Anything else?"])
    assert "".join(one.text for one in (await written(models))[:-1]) == "It is noon. Anything else?"


async def test_parallel_calls_whose_arguments_come_in_pieces_are_put_together(server: AnthropicServer, models: Models) -> None:
    server.script(["One moment.", Use("current_time", {"place": "Rome"}, pieces=5), Use("add", {})])
    assert await written(models, ask(functions=(TIME, ADD))) == [
        TextDelta(5, "One moment."),
        ToolRequested(effect=5, name="current_time", arguments={"place": "Rome"}),
        ToolRequested(effect=5, name="add", arguments={}),
        Completed(effect=5, input_tokens=7 + CACHED_TOKENS, output_tokens=3),
    ]


async def test_names_of_arguments_that_the_service_refuses_are_told_and_read_as_others(server: AnthropicServer, models: Models) -> None:
    names = ("$top", "top", "user name", "user-name", "x" * 65, "名前", "[]")
    parameters = {"type": "object", "properties": {name: {"type": "string"} for name in names}, "required": ["$top", "top"]}
    server.script([Use("list_files", {"top_2": "3", "top": "4", "user_name": "Ada", "argument": "x"}), Use("add", {"$top": 1})])
    asked = ask(functions=(Function(name="list_files", description="Files.", parameters=parameters), ADD))
    calls = [one for one in await written(models, asked) if isinstance(one, ToolRequested)]
    assert calls[0].arguments == {"$top": "3", "top": "4", "user name": "Ada", "名前": "x"}
    assert calls[1].arguments == {"$top": 1}
    (told,) = [tool["input_schema"] for tool in server.bodies[0]["tools"] if tool["name"] == "list_files"]
    assert list(told["properties"]) == ["top_2", "top", "user_name", "user-name", "x" * 56, "argument", "argument_2"]
    assert told["required"] == ["top_2", "top"]


async def test_all_calls_of_a_message_are_answered_in_the_next_one_with_failures_marked(server: AnthropicServer, models: Models) -> None:
    history = (
        HI,
        Message(role="assistant", text="One moment.", uses=(ROME, OSLO)),
        Message(role="tool", call_id="fc_1", text='{"error":{"code":"TIMED_OUT","message":"late"}}'),
        Message(role="tool", call_id="fc_2", text='{"time":"12:00"}'),
        Message(role="user", text="And?"),
    )
    await written(models, ask(*history, functions=(TIME,)))
    assert server.refused == []
    said, answered = server.bodies[0]["messages"][1:]
    assert [block["type"] for block in said["content"]] == ["text", "tool_use", "tool_use"]
    assert answered["role"] == "user"
    assert answered["content"] == [
        {"type": "tool_result", "tool_use_id": "fc_1", "content": history[2].text, "is_error": True},
        {"type": "tool_result", "tool_use_id": "fc_2", "content": '{"time":"12:00"}'},
        {"type": "text", "text": "And?", "cache_control": {"type": "ephemeral"}},
    ]


async def test_a_result_that_is_missing_is_an_interruption_and_one_that_nobody_asked_for_is_left_out(
    server: AnthropicServer, models: Models
) -> None:
    history = (
        HI,
        Message(role="assistant", uses=(ROME, OSLO)),
        Message(role="tool", call_id="fc_9", text="{}"),
        Message(role="tool", call_id="fc_2", text='{"time":"12:00"}'),
    )
    await written(models, ask(*history, functions=(TIME,)))
    assert server.refused == []
    first, second = server.bodies[0]["messages"][2]["content"]
    assert (first["tool_use_id"], first["is_error"]) == ("fc_1", True)
    assert "INTERRUPTED" in first["content"]
    assert second["tool_use_id"] == "fc_2"


async def test_a_result_that_was_cut_is_still_known_as_an_error(server: AnthropicServer, models: Models) -> None:
    cut = Message(role="tool", call_id="fc_1", text='{"error":{"code":"FAILED","message":"aaaa')
    await written(models, ask(HI, Message(role="assistant", uses=(ROME,)), cut, functions=(TIME,)))
    assert server.bodies[0]["messages"][2]["content"][0]["is_error"]


async def test_messages_in_a_row_are_texts_of_one_turn_and_the_user_begins_and_ends(server: AnthropicServer, models: Models) -> None:
    greeting, asked, more = Message(role="assistant", text="Hello."), Message(role="user", text="Tell"), Message(role="user", text="me.")
    said = (Message(role="assistant", text="Well,"), Message(role="assistant", text=" "), Message(role="assistant", text="no."))
    await written(models, ask(greeting, asked, more, *said))
    assert server.refused == []
    assert [(message["role"], [block["text"] for block in message["content"]]) for message in server.bodies[0]["messages"]] == [
        ("user", [OPENING]),
        ("assistant", ["Hello."]),
        ("user", ["Tell", "me."]),
        ("assistant", ["Well,", "no."]),
        ("user", [GO_ON]),
    ]


async def test_a_conversation_that_has_not_begun_begins(server: AnthropicServer, models: Models) -> None:
    await written(models, Complete(provider="anthropic", model="", messages=(), functions=()))
    assert server.refused == []
    opening = {"type": "text", "text": OPENING, "cache_control": {"type": "ephemeral"}}
    assert server.bodies[0]["messages"] == [{"role": "user", "content": [opening]}]
    assert "system" not in server.bodies[0]


async def test_the_stable_prefix_is_cached_whatever_the_order_of_the_functions(server: AnthropicServer, models: Models) -> None:
    first = await written(models, ask(functions=(TIME, ADD)))
    second = await written(models, ask(HI, Message(role="assistant", text="Yes."), HI, functions=(ADD, TIME)))
    tools = [body["tools"] for body in server.bodies]
    assert tools[0] == tools[1]
    assert [("cache_control" in tool) for tool in tools[0]] == [False, True]
    assert [got[-1].input_tokens for got in (first, second)] == [7 + CACHED_TOKENS, 7 + CACHED_TOKENS], "written, then read"


async def test_a_round_without_functions_keeps_the_names_of_what_was_called(server: AnthropicServer, models: Models) -> None:
    result = Message(role="tool", call_id="fc_1", text="{}")
    await written(models, ask(HI, Message(role="assistant", uses=(ROME,)), result))
    assert server.refused == []
    assert server.bodies[0]["tool_choice"] == {"type": "none"}
    assert [tool["name"] for tool in server.bodies[0]["tools"]] == ["current_time"]


@pytest.mark.parametrize("broken", ['{"place": "Ro', "[1, 2]", "noon", "{} {}"])
async def test_arguments_that_are_no_object_let_none_of_the_calls_begin(server: AnthropicServer, models: Models, broken: str) -> None:
    server.script(["One moment.", Use("add", {}), Use("current_time", broken, pieces=2)])
    got: list[Any] = []
    with pytest.raises(VoxbridgeError, match="language model wrote arguments that are not JSON") as caught:
        await written(models, ask(functions=(TIME, ADD)), into=got)
    assert got == [TextDelta(5, "One moment.")]
    assert caught.value.code == Code.PROVIDER_REFUSED


async def test_endless_arguments_are_cut_off_at_the_bound(server: AnthropicServer, models: Models) -> None:
    inside = '{"a": "' + "x" * (ARGUMENTS_LIMIT - 9) + '"}'
    server.script([Use("add", inside, pieces=4)], [Use("add", inside + " ", pieces=4)])
    assert isinstance((await written(models))[0], ToolRequested)
    with pytest.raises(VoxbridgeError) as caught:
        await written(models)
    assert caught.value.limit == ARGUMENTS_LIMIT


async def test_an_answer_that_is_cut_at_its_limit_stands_but_not_its_calls(server: AnthropicServer, models: Models) -> None:
    server.script(["It is", Stop("max_tokens")], [Use("add", {}), Stop("max_tokens")])
    assert (await written(models))[0] == TextDelta(5, "It is")
    with pytest.raises(VoxbridgeError, match="limit of tokens in the middle of a call"):
        await written(models)


async def test_a_message_that_is_paused_is_gone_on_with_up_to_the_bound(server: AnthropicServer, models: Models) -> None:
    pause: list[Item] = [Thought("Hm."), "Let me see.", Stop("pause_turn")]
    server.script(*[pause] * PAUSES_LIMIT, ["It is noon."])
    got = await written(models)
    assert server.refused == []
    assert [one.text for one in got[:-1]] == ["Let me see."] * PAUSES_LIMIT + ["It is noon."]
    assert got[-1] == Completed(effect=5, input_tokens=(7 + CACHED_TOKENS) * (PAUSES_LIMIT + 1), output_tokens=3 * (PAUSES_LIMIT + 1))


async def test_a_message_that_is_paused_for_ever_is_given_up(server: AnthropicServer, models: Models) -> None:
    pause: list[Item] = ["Let me see.", Stop("pause_turn")]
    server.script(*[pause] * (PAUSES_LIMIT + 1))
    with pytest.raises(VoxbridgeError, match=f"paused more than {PAUSES_LIMIT} times"):
        await written(models)
    assert len(server.requests) == PAUSES_LIMIT + 1


@pytest.mark.parametrize(
    ("stop", "words"),
    [
        (Stop("refusal", "This could do harm."), "This could do harm"),
        (Stop("refusal"), "no reason"),
        (Stop("model_context_window_exceeded"), "context window"),
    ],
)
async def test_a_refusal_is_an_error_with_its_words(server: AnthropicServer, models: Models, stop: Stop, words: str) -> None:
    server.script(["I", Use("add", {}), stop])
    got: list[Any] = []
    with pytest.raises(VoxbridgeError, match=words) as caught:
        await written(models, into=got)
    assert (caught.value.code, caught.value.retryable) == (Code.PROVIDER_REFUSED, False)
    assert got == [TextDelta(5, "I")], "nothing was called"


@pytest.mark.parametrize(
    ("status", "code", "retryable"),
    [
        (Status(429, "rate_limit_error"), Code.PROVIDER_UNAVAILABLE, True),
        (Status(529, "overloaded_error"), Code.PROVIDER_UNAVAILABLE, True),
        (Status(500, "api_error"), Code.PROVIDER_UNAVAILABLE, True),
        (Status(400, "invalid_request_error"), Code.PROVIDER_REFUSED, False),
        (Status(401, "authentication_error", f"the key {KEY} is wrong"), Code.PROVIDER_REFUSED, False),
        (Status(404, "not_found_error", f"no model for {KEY}"), Code.PROVIDER_REFUSED, False),
    ],
)
async def test_an_http_error_says_whether_asking_again_helps_and_never_says_the_key(
    server: AnthropicServer, models: Models, status: Status, code: Code, retryable: bool
) -> None:
    server.script([status])
    with pytest.raises(VoxbridgeError, match="The language model") as caught:
        await written(models)
    assert (caught.value.code, caught.value.retryable) == (code, retryable)
    assert KEY not in str(caught.value.as_dict())
    assert caught.value.__cause__ is None


@pytest.mark.parametrize(
    ("kind", "code"),
    [
        ("overloaded_error", Code.PROVIDER_UNAVAILABLE),
        ("api_error", Code.PROVIDER_UNAVAILABLE),
        ("invalid_request_error", Code.PROVIDER_REFUSED),
    ],
)
async def test_an_error_within_the_stream_comes_after_what_was_written(
    server: AnthropicServer, models: Models, kind: str, code: Code
) -> None:
    server.script(["It is ", Use("add", {}), Failure(kind)])
    got: list[Any] = []
    with pytest.raises(VoxbridgeError, match="scripted") as caught:
        await written(models, into=got)
    assert got == [TextDelta(5, "It is ")]
    assert caught.value.code == code


@pytest.mark.parametrize("end", [Fault.DROP, End()])
async def test_a_stream_that_ends_without_its_end_is_a_failure_that_passes(
    server: AnthropicServer, models: Models, end: Fault | End
) -> None:
    server.script(["It is ", Use("add", {}), end])
    got: list[Any] = []
    with pytest.raises(VoxbridgeError) as caught:
        await written(models, into=got)
    assert got == [TextDelta(5, "It is ")]
    assert (caught.value.code, caught.value.retryable) == (Code.PROVIDER_UNAVAILABLE, True)


@pytest.mark.usefixtures("impatient")
async def test_silence_is_a_time_out(server: AnthropicServer, models: Models) -> None:
    server.script(["It is ", Fault.HANG])
    with pytest.raises(VoxbridgeError, match="did not answer in time") as caught:
        await written(models)
    assert caught.value.code == Code.TIMED_OUT


@pytest.mark.parametrize("data", [b"event: content_block_delta\ndata: {broken\n\n", b'event: message_start\ndata: {"type": "x"}\n\n'])
async def test_an_event_that_cannot_be_read_is_an_error_of_the_model(server: AnthropicServer, models: Models, data: bytes) -> None:
    server.script(["It is ", Raw(data), End()])
    with pytest.raises(VoxbridgeError, match="The language model"):
        await written(models)


async def test_a_vendor_that_is_busy_is_asked_once_more_after_the_wait_it_names(server: AnthropicServer) -> None:
    models = Models(Config())
    server.script([Status(429, "rate_limit_error", retry_after="0.01")], ["It is noon."])
    assert (await written(models))[0] == TextDelta(5, "It is noon.")
    server.script(*[[Status(529, "overloaded_error", retry_after="0.01")]] * 2)
    with pytest.raises(VoxbridgeError) as caught:
        await written(models)
    assert caught.value.retry_after_ms == 10
    assert len(server.requests) == 4
    await models.close()


async def test_a_wait_beyond_the_bound_is_not_waited_for(server: AnthropicServer) -> None:
    models = Models(Config())
    server.script([Status(429, "rate_limit_error", retry_after=str(RETRY_WAIT_S + 3_600))])
    async with asyncio.timeout(RETRY_WAIT_S):
        with pytest.raises(VoxbridgeError) as caught:
            await written(models)
    assert caught.value.retry_after_ms == base.RETRY_AFTER_LIMIT_MS
    assert len(server.requests) == 1
    await models.close()


@pytest.mark.usefixtures("impatient")
async def test_a_request_that_is_cancelled_lets_go_of_its_connection(server: AnthropicServer, models: Models) -> None:
    server.script(["It is ", Fault.HANG])
    asking = asyncio.create_task(written(models))
    await server.until_asked()
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking
    await server.until_dropped()
    assert (await written(models))[0] == TextDelta(5, "All right.")


async def test_base_url_and_certificates_are_taken_from_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ca, context = tls.issue(tmp_path)
    async with AnthropicServer(tls=context) as server:
        monkeypatch.setenv("ANTHROPIC_BASE_URL", server.url)
        monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)
        monkeypatch.setattr(base, "RETRIES", 0)
        strange = Models(Config())
        with pytest.raises(VoxbridgeError, match="cannot be reached"):
            await written(strange)
        await strange.close()
        monkeypatch.setenv("SSL_CERT_FILE", str(ca))
        models = Models(Config())
        assert (await written(models))[0] == TextDelta(5, "All right.")
        await models.close()
