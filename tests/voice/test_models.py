"""The clients of the models against a server that answers byte for byte as an OpenAI-compatible one, or fails as one does."""

from __future__ import annotations

import asyncio
import io
import socket
import wave
from collections.abc import AsyncIterator, Callable
from typing import Any

import openai
import pytest

from services.voice import models as models_module
from services.voice.inputs import Completed, TextDelta, ToolRequested
from services.voice.models import ARGUMENTS_LIMIT, TEXT_LIMIT, Models
from services.voice.outputs import Complete, Message, ToolUse
from shared.config import Config
from shared.errors import Code, VoxbridgeError
from shared.frames import OUTPUT_RATE
from shared.functions import Function
from tests.voice.model_server import Fault, ModelServer, Raw, Status, call

ASK = Complete(model="", messages=(Message(role="system", text="Be kind."), Message(role="user", text="Hi")), functions=())
TIME = Function(name="current_time", description="The time.", parameters={"type": "object", "properties": {}})
Ask = Callable[[Models], Any]


async def written(models: Models, request: Complete = ASK, *, into: list[Any] | None = None) -> list[Any]:
    got = [] if into is None else into
    async for one in models.complete(5, request):
        got.append(one)
    return got


async def spoken(models: Models) -> bytes:
    return b"".join([pcm async for pcm in models.synthesize("Hello.", "")])


PARTS: dict[str, tuple[str, Ask]] = {
    "stt": ("transcription", lambda models: models.transcribe(bytes(3_200))),
    "llm": ("language", written),
    "tts": ("speech", spoken),
    "turn": ("end-of-turn", lambda models: models.judge_turn(bytes(3_200))),
}


@pytest.fixture
async def server() -> AsyncIterator[ModelServer]:
    async with ModelServer() as server:
        yield server


@pytest.fixture
async def models(server: ModelServer, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Models]:
    monkeypatch.setattr(models_module, "READ_TIMEOUT_S", 0.3)
    monkeypatch.setattr(models_module, "RETRIES", 0)
    models = Models(Config(models_url=server.url))
    yield models
    await models.close()


async def test_a_transcription_sends_a_wav_file_and_gives_the_words(server: ModelServer, models: Models) -> None:
    server.script("stt", ["  What time is it? "])
    found = await models.transcribe(bytes(32_000))
    assert (found.text, found.language) == ("What time is it?", "en")
    with wave.open(io.BytesIO(models_module._wav(bytes(32_000)))) as file:
        assert (file.getframerate(), file.getnchannels(), file.getsampwidth(), file.getnframes()) == (16_000, 1, 2, 16_000)


async def test_the_turn_model_gives_a_probability(server: ModelServer, models: Models) -> None:
    server.script("turn", [0.25])
    assert await models.judge_turn(bytes(3_200)) == 0.25


async def test_text_comes_as_it_is_written_and_the_count_of_tokens_last(server: ModelServer, models: Models) -> None:
    server.script("llm", ["It is ", "noon."])
    assert await written(models) == [TextDelta(5, "It is "), TextDelta(5, "noon."), Completed(effect=5, input_tokens=7, output_tokens=3)]


async def test_calls_whose_arguments_come_in_pieces_are_put_together(server: ModelServer, models: Models) -> None:
    first = call("current_time", '{"place": "Rome"}', pieces=5)
    second = call("current_time", '{"place": "Oslo"}', index=1, pieces=3)
    server.script("llm", [*first, *second])
    got = await written(models)
    assert got[:2] == [ToolRequested(effect=5, name="current_time", arguments={"place": place}) for place in ("Rome", "Oslo")]
    assert isinstance(got[2], Completed)


async def test_a_call_without_arguments_has_none(server: ModelServer, models: Models) -> None:
    server.script("llm", [*call("current_time", "")])
    assert (await written(models))[0] == ToolRequested(effect=5, name="current_time", arguments={})


@pytest.mark.parametrize("broken", ['{"place": "Ro', "[1, 2]", "noon", "{} {}"])
async def test_arguments_that_are_no_object_let_none_of_the_calls_begin(server: ModelServer, models: Models, broken: str) -> None:
    server.script("llm", ["One moment.", *call("current_time", "{}"), *call("current_time", broken, index=1)])
    got: list[Any] = []
    with pytest.raises(VoxbridgeError, match="language model wrote arguments that are not JSON"):
        await written(models, into=got)
    assert got == [TextDelta(5, "One moment.")]


async def test_endless_arguments_are_cut_off_at_the_bound(server: ModelServer, models: Models) -> None:
    inside = '{"a": "' + "x" * (ARGUMENTS_LIMIT - 9) + '"}'
    server.script("llm", [*call("current_time", inside, pieces=4)], [*call("current_time", inside + " ", pieces=4)])
    assert isinstance((await written(models))[0], ToolRequested)
    with pytest.raises(VoxbridgeError) as caught:
        await written(models)
    assert caught.value.limit == ARGUMENTS_LIMIT


async def test_a_transcript_is_bounded(server: ModelServer, models: Models) -> None:
    server.script("stt", ["x" * TEXT_LIMIT], ["x" * (TEXT_LIMIT + 1)])
    assert len((await models.transcribe(b"")).text) == TEXT_LIMIT
    with pytest.raises(VoxbridgeError, match=str(TEXT_LIMIT)):
        await models.transcribe(b"")


async def test_the_conversation_goes_out_in_the_roles_that_chat_completions_know(server: ModelServer, models: Models) -> None:
    use = ToolUse(call_id="fc_1", name="current_time", arguments={"place": "Rome"})
    history = (
        *ASK.messages,
        Message(role="assistant", text="", uses=(use,)),
        Message(role="tool", call_id="fc_1", text='{"time":"12:00"}'),
    )
    await written(models, Complete(model="big", messages=history, functions=(TIME,)))
    (body,) = server.asked("llm")
    assert body["model"] == "big"
    assert body["messages"][0] == {"role": "system", "content": "Be kind."}
    assert body["messages"][2] == {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": "fc_1", "type": "function", "function": {"name": "current_time", "arguments": '{"place":"Rome"}'}}],
    }
    assert body["messages"][3] == {"role": "tool", "tool_call_id": "fc_1", "content": '{"time":"12:00"}'}
    assert [tool["function"]["name"] for tool in body["tools"]] == ["current_time"]


async def test_no_functions_are_no_field(server: ModelServer, models: Models) -> None:
    await written(models)
    assert "tools" not in server.asked("llm")[0]


async def test_speech_comes_in_even_pieces_whatever_the_network_does(server: ModelServer, models: Models) -> None:
    pcm = bytes(range(256)) * 40
    server.script("tts", [Raw(pcm[:1], "audio/pcm")], [200])
    assert await spoken(models) == b"", "a single byte is no sample"
    pieces = [piece async for piece in models.synthesize("Hello.", "")]
    assert all(piece and len(piece) % 2 == 0 for piece in pieces)
    assert sum(map(len, pieces)) == 200 * OUTPUT_RATE * 2 // 1_000


@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize(
    ("status", "code"), [(500, Code.PROVIDER_UNAVAILABLE), (429, Code.PROVIDER_UNAVAILABLE), (400, Code.PROVIDER_REFUSED)]
)
async def test_an_error_of_an_endpoint_names_the_part(server: ModelServer, models: Models, part: str, status: int, code: Code) -> None:
    name, ask = PARTS[part]
    server.script(part, [Status(status)])
    with pytest.raises(VoxbridgeError, match=f"The {name} model") as caught:
        await ask(models)
    assert caught.value.code in (code, Code.PROVIDER_UNAVAILABLE)


@pytest.mark.parametrize("part", PARTS)
async def test_silence_of_an_endpoint_is_a_time_out(server: ModelServer, models: Models, part: str) -> None:
    name, ask = PARTS[part]
    server.script(part, [Fault.HANG])
    with pytest.raises(VoxbridgeError, match=f"The {name} model did not answer in time") as caught:
        await ask(models)
    assert caught.value.code == Code.TIMED_OUT
    assert caught.value.retryable


@pytest.mark.parametrize("part", PARTS)
async def test_a_cut_connection_is_an_endpoint_that_cannot_be_reached(server: ModelServer, models: Models, part: str) -> None:
    name, ask = PARTS[part]
    server.script(part, [Fault.DROP])
    with pytest.raises(VoxbridgeError, match=f"The {name} model") as caught:
        await ask(models)
    assert caught.value.code == Code.PROVIDER_UNAVAILABLE


@pytest.mark.parametrize("part", ["llm", "tts"])
@pytest.mark.parametrize("fault", list(Fault))
async def test_a_stream_that_stops_in_the_middle_is_a_failure_after_what_came(
    server: ModelServer, models: Models, part: str, fault: Fault
) -> None:
    name, ask = PARTS[part]
    server.script(part, [USUAL_START[part], fault])
    with pytest.raises(VoxbridgeError, match=f"The {name} model"):
        await ask(models)


USUAL_START: dict[str, Any] = {"llm": "It is ", "tts": 100}


@pytest.mark.parametrize("part", ["stt", "llm", "turn"])
@pytest.mark.parametrize("body", [b"not json", b"[]", b'{"other": 1}', b'"text"'])
async def test_an_answer_that_cannot_be_read_names_the_part(server: ModelServer, models: Models, part: str, body: bytes) -> None:
    name, ask = PARTS[part]
    if part == "llm":
        server.script(part, [Raw(b"data: " + body + b"\n\n", "text/event-stream")])
    else:
        server.script(part, [Raw(body)])
    with pytest.raises(VoxbridgeError, match=f"The {name} model"):
        await ask(models)


@pytest.mark.parametrize("part", PARTS)
async def test_a_port_where_nobody_listens_names_the_part(part: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(models_module, "RETRIES", 0)
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        models = Models(Config(models_url=f"http://127.0.0.1:{probe.getsockname()[1]}/v1"))
        name, ask = PARTS[part]
        with pytest.raises(VoxbridgeError, match=f"The {name} model cannot be reached"):
            await ask(models)
        await models.close()


async def test_a_request_that_is_cancelled_lets_go_of_its_connection(server: ModelServer, models: Models) -> None:
    server.script("llm", ["It is ", Fault.HANG])
    asking = asyncio.create_task(written(models))
    await server.until_asked("llm")
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking
    server.release()
    assert (await written(models))[0] == TextDelta(5, "All right.")


async def test_each_part_may_have_an_endpoint_of_its_own(server: ModelServer) -> None:
    async with ModelServer() as other:
        models = Models(Config(models_url=server.url, llm_url=other.url, llm_key="secret"))
        await written(models)
        await models.transcribe(b"")
        assert [part for part, _ in other.requests] == ["llm"]
        assert [part for part, _ in server.requests] == ["stt"]
        assert not models.local
        await models.close()


def test_the_openai_client_tries_again_once() -> None:
    assert models_module.RETRIES == 1
    assert Models(Config()).local
    assert issubclass(openai.RateLimitError, openai.APIStatusError)
