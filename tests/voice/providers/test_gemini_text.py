"""Gemini as a language model of the cascade, against a server with the answers and refusals of Google's."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from tests.fakes import tls
from tests.fakes.gemini.text import KEY, UNSIGNED, Call, End, Finish, GeminiTextServer, Raw, Status, Thought
from tests.voice.model_server import Fault
from voxbridge.services.voice.providers.cascade.models import Models
from voxbridge.shared.agents.functions import Function
from voxbridge.shared.config import Config
from voxbridge.shared.errors import Code, VoxbridgeError
from voxbridge.shared.language import base
from voxbridge.shared.language.base import ARGUMENTS_LIMIT, GO_ON, OPENING
from voxbridge.shared.language.conversation import Complete, Completed, Message, TextDelta, ToolRequested, ToolUse
from voxbridge.shared.language.gemini import MAX_TOKENS

TIME = Function(name="current_time", description="The time.", parameters={"type": "object", "properties": {"place": {"type": "string"}}})
ADD = Function(name="add", description="A sum.", parameters={"type": "object", "properties": {}})
ROME = ToolUse(call_id="fc_1", name="current_time", arguments={"place": "Rome"})
OSLO = ToolUse(call_id="fc_2", name="current_time", arguments={"place": "Oslo"})
HI = Message(role="user", text="Hi")
COMPLETED = Completed(effect=5, input_tokens=7, output_tokens=5)


def ask(*messages: Message, functions: tuple[Function, ...] = (), model: str = "") -> Complete:
    system = Message(role="system", text="Be kind.")
    return Complete(provider="gemini", model=model, messages=(system, *(messages or (HI,))), functions=functions)


async def written(models: Models, request: Complete | None = None, *, into: list[Any] | None = None) -> list[Any]:
    got = [] if into is None else into
    async for one in models.complete(5, request or ask()):
        got.append(one)
    return got


@pytest.fixture
async def server(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[GeminiTextServer]:
    async with GeminiTextServer() as server:
        monkeypatch.setenv("GOOGLE_GEMINI_BASE_URL", server.url)
        monkeypatch.delenv("GEMINI_API_KEY", raising=False)
        monkeypatch.setenv("GOOGLE_API_KEY", KEY)
        yield server


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Take a vendor for dead that is silent for 1.5 s. Only where it is: a busy machine is that slow."""
    monkeypatch.setattr(base, "READ_TIMEOUT_S", 1.5)


@pytest.fixture
async def models(server: GeminiTextServer, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Models]:
    monkeypatch.setattr(base, "RETRIES", 0)
    models = Models(Config())
    yield models
    await models.close()


async def test_text_comes_as_it_is_written_and_the_count_of_tokens_last(server: GeminiTextServer, models: Models) -> None:
    server.script([Thought("Hm."), "It is ", "noon."])
    assert await written(models) == [TextDelta(5, "It is "), TextDelta(5, "noon."), COMPLETED]
    (request,) = server.requests
    assert request.path.startswith("/v1/models/gemini-3.8-flash:")
    assert request.body["systemInstruction"]["parts"] == [{"text": "Be kind."}]
    assert request.body["generationConfig"] == {"maxOutputTokens": MAX_TOKENS, "thinkingConfig": {"thinkingLevel": "LOW"}}


@pytest.mark.parametrize(("model", "thinking"), [("gemini-2.5-flash", {"thinkingBudget": 0}), ("gemini-4-argon", None)])
async def test_each_model_is_told_to_think_little_as_it_knows_it(
    server: GeminiTextServer, models: Models, model: str, thinking: dict[str, int] | None
) -> None:
    await written(models, ask(model=model))
    assert server.bodies[0]["generationConfig"].get("thinkingConfig") == thinking


async def test_parallel_calls_come_when_all_of_them_are_there(server: GeminiTextServer, models: Models) -> None:
    server.script(["One moment.", Call("current_time", {"place": "Rome"}), Call("add", {})])
    assert await written(models, ask(functions=(TIME, ADD))) == [
        TextDelta(5, "One moment."),
        ToolRequested(effect=5, name="current_time", arguments={"place": "Rome"}),
        ToolRequested(effect=5, name="add", arguments={}),
        COMPLETED,
    ]
    (tools,) = server.bodies[0]["tools"]
    assert [declared["name"] for declared in tools["functionDeclarations"]] == ["add", "current_time"]
    assert tools["functionDeclarations"][1]["parametersJsonSchema"] == TIME.parameters


async def test_all_calls_are_answered_in_the_next_turn_and_each_is_signed(server: GeminiTextServer, models: Models) -> None:
    history = (
        HI,
        Message(role="assistant", text="One moment.", uses=(ROME, OSLO)),
        Message(role="tool", call_id="fc_2", text='{"time":"12:00"}'),
        Message(role="user", text="And?"),
    )
    assert (await written(models, ask(*history, functions=(TIME,))))[0] == TextDelta(5, "All right.")
    called, answered = server.bodies[0]["contents"][1:]
    assert [part.get("thoughtSignature") for part in called["parts"]] == [None, UNSIGNED, UNSIGNED]
    first, second, text = answered["parts"]
    assert first["functionResponse"]["response"]["code"] == "INTERRUPTED"
    assert second["functionResponse"] == {"id": "fc_2", "name": "current_time", "response": {"time": "12:00"}}
    assert text == {"text": "And?"}


async def test_a_result_that_was_cut_goes_out_as_text(server: GeminiTextServer, models: Models) -> None:
    cut = Message(role="tool", call_id="fc_1", text='{"page":"aaaa')
    await written(models, ask(HI, Message(role="assistant", uses=(ROME,)), cut, functions=(TIME,), model="gemini-2.5-flash"))
    call, answer = server.bodies[0]["contents"][1:]
    assert answer["parts"][0]["functionResponse"]["response"] == {"output": '{"page":"aaaa'}
    assert "thoughtSignature" not in call["parts"][0]


async def test_the_user_begins_and_ends(server: GeminiTextServer, models: Models) -> None:
    await written(models, ask(Message(role="assistant", text="Hello.")))
    assert [part["text"] for content in server.bodies[0]["contents"] for part in content["parts"]] == [OPENING, "Hello.", GO_ON]


async def test_endless_arguments_are_cut_off_at_the_bound(server: GeminiTextServer, models: Models) -> None:
    server.script([Call("add", {"a": "x" * (ARGUMENTS_LIMIT - 9)})], [Call("add", {"a": "x" * (ARGUMENTS_LIMIT - 8)})])
    assert isinstance((await written(models))[0], ToolRequested)
    with pytest.raises(VoxbridgeError) as caught:
        await written(models)
    assert caught.value.limit == ARGUMENTS_LIMIT


async def test_an_answer_that_is_cut_at_its_limit_stands_but_not_its_calls(server: GeminiTextServer, models: Models) -> None:
    server.script(["It is", Finish("MAX_TOKENS")], [Call("add", {}), Finish("MAX_TOKENS")])
    assert (await written(models))[0] == TextDelta(5, "It is")
    with pytest.raises(VoxbridgeError, match="limit of tokens in the middle of a call"):
        await written(models)


@pytest.mark.parametrize(
    "finish", [Finish("SAFETY"), Finish("MALFORMED_FUNCTION_CALL"), Finish("CONTINUATION"), Finish(blocked="PROHIBITED_CONTENT")]
)
async def test_a_refusal_is_an_error_with_its_reason_and_nothing_is_called(
    server: GeminiTextServer, models: Models, finish: Finish
) -> None:
    server.script([Call("add", {}), finish])
    got: list[Any] = []
    with pytest.raises(VoxbridgeError, match=finish.blocked or finish.reason) as caught:
        await written(models, into=got)
    assert (caught.value.code, caught.value.retryable, got) == (Code.PROVIDER_REFUSED, False, [])


@pytest.mark.parametrize(
    ("status", "code", "retryable"),
    [
        (Status(429, "RESOURCE_EXHAUSTED", retry_after="3"), Code.PROVIDER_UNAVAILABLE, True),
        (Status(503, "UNAVAILABLE"), Code.PROVIDER_UNAVAILABLE, True),
        (Status(500, "INTERNAL", within=True), Code.PROVIDER_UNAVAILABLE, True),
        (Status(400, "INVALID_ARGUMENT", f"said {KEY}"), Code.PROVIDER_REFUSED, False),
        (Status(400, "INVALID_ARGUMENT", f"API key not valid: {KEY}"), Code.PROVIDER_REFUSED, False),
        (Status(403, "PERMISSION_DENIED", f"the key {KEY} is wrong"), Code.PROVIDER_REFUSED, False),
    ],
)
async def test_an_http_error_says_whether_asking_again_helps_and_never_says_the_key(
    server: GeminiTextServer, models: Models, status: Status, code: Code, retryable: bool
) -> None:
    server.script([status])
    with pytest.raises(VoxbridgeError, match="The language model") as caught:
        await written(models)
    assert (caught.value.code, caught.value.retryable) == (code, retryable)
    assert caught.value.retry_after_ms == (3_000 if status.headers else None)
    assert KEY not in str(caught.value.as_dict())
    assert caught.value.__cause__ is None


@pytest.mark.parametrize("end", [Fault.DROP, End()])
async def test_a_stream_that_ends_without_its_end_is_a_failure_that_passes(
    server: GeminiTextServer, models: Models, end: Fault | End
) -> None:
    server.script(["It is ", Call("add", {}), end])
    got: list[Any] = []
    with pytest.raises(VoxbridgeError) as caught:
        await written(models, into=got)
    assert got == [TextDelta(5, "It is ")]
    assert (caught.value.code, caught.value.retryable) == (Code.PROVIDER_UNAVAILABLE, True)


@pytest.mark.usefixtures("impatient")
async def test_silence_is_a_time_out(server: GeminiTextServer, models: Models) -> None:
    server.script(["It is ", Fault.HANG])
    with pytest.raises(VoxbridgeError, match="did not answer in time") as caught:
        await written(models)
    assert caught.value.code == Code.TIMED_OUT


@pytest.mark.parametrize("data", [b"data: {broken\r\n\r\n", b"data: []\r\n\r\n", b'data: {"candidates": 1}\r\n\r\n'])
async def test_a_chunk_that_cannot_be_read_is_an_error_of_the_model(server: GeminiTextServer, models: Models, data: bytes) -> None:
    server.script(["It is ", Raw(data), End()])
    with pytest.raises(VoxbridgeError, match="The language model"):
        await written(models)


async def test_a_vendor_that_is_busy_is_asked_once_more(server: GeminiTextServer) -> None:
    models = Models(Config())
    server.script([Status(503, "UNAVAILABLE")], ["It is noon."])
    assert (await written(models))[0] == TextDelta(5, "It is noon.")
    server.script([Status(503, "UNAVAILABLE")], [Status(503, "UNAVAILABLE")])
    with pytest.raises(VoxbridgeError):
        await written(models)
    assert len(server.requests) == 4
    await models.close()


@pytest.mark.usefixtures("impatient")
async def test_a_request_that_is_cancelled_lets_go_of_its_connection(server: GeminiTextServer, models: Models) -> None:
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
    async with GeminiTextServer(tls=context) as server:
        monkeypatch.setenv("GOOGLE_GEMINI_BASE_URL", server.url)
        monkeypatch.setenv("GEMINI_API_KEY", KEY)
        monkeypatch.setattr(base, "RETRIES", 0)
        strange = Models(Config())
        with pytest.raises(VoxbridgeError, match="cannot be reached"):
            await written(strange)
        await strange.close()
        monkeypatch.setenv("SSL_CERT_FILE", str(ca))
        models = Models(Config())
        assert (await written(models))[0] == TextDelta(5, "All right.")
        await models.close()
