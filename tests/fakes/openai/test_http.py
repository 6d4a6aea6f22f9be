"""The stand-in for OpenAI over HTTP, driven through the SDK only: its refusals, and answers that the SDK can read."""

from __future__ import annotations

import io
import wave
from collections.abc import AsyncIterator
from typing import Any

import httpx2
import openai
import pytest
from openai import AsyncOpenAI

from tests.fakes.openai.http import KEY, RATE, OpenAIServer, Status, Stop, Use
from tests.fakes.openai.http_rules import CHAT, FILE_LIMIT, HEARING, INPUT_LIMIT, SPEECH
from tests.voice.model_server import Fault

USER: dict[str, Any] = {"role": "user", "content": "Hi"}
CALL: dict[str, Any] = {"id": "call_1", "type": "function", "function": {"name": "add", "arguments": "{}"}}
CALLED: dict[str, Any] = {"role": "assistant", "content": None, "tool_calls": [CALL]}
RESULT: dict[str, Any] = {"role": "tool", "tool_call_id": "call_1", "content": "3"}
TOOL: dict[str, Any] = {"type": "function", "function": {"name": "add", "parameters": {"type": "object"}}}


@pytest.fixture
async def server() -> AsyncIterator[OpenAIServer]:
    async with OpenAIServer() as server:
        yield server


@pytest.fixture
async def client(server: OpenAIServer) -> AsyncIterator[AsyncOpenAI]:
    async with AsyncOpenAI(api_key=KEY, base_url=server.base_url, max_retries=0) as client:
        yield client


def chat(*messages: dict[str, Any], **fields: Any) -> dict[str, Any]:
    return {"model": "gpt-6-luna", "messages": list(messages) or [USER], **fields}


def recording(seconds: float, rate: int = 16_000) -> bytes:
    file = io.BytesIO()
    with wave.open(file, "wb") as out:
        out.setparams((1, 2, rate, 0, "NONE", ""))
        out.writeframes(bytes(2 * round(seconds * rate)))
    return file.getvalue()


def heard(**fields: Any) -> dict[str, Any]:
    return {"model": "gpt-transcribe", "file": ("speech.wav", recording(1), "audio/wav"), **fields}


async def test_the_sdk_puts_a_streamed_answer_together(server: OpenAIServer, client: AsyncOpenAI) -> None:
    server.script(CHAT, ["One ", "moment.", Use("add", {"a": 1}, pieces=3), Use("add", {})])
    text, calls, usage, reason = "", dict[int, list[str]](), None, None
    async for chunk in await client.chat.completions.create(**chat(stream=True, stream_options={"include_usage": True})):
        usage = chunk.usage or usage
        for choice in chunk.choices:
            text += choice.delta.content or ""
            reason = choice.finish_reason or reason
            for call in choice.delta.tool_calls or ():
                calls.setdefault(call.index, []).append(call.function.arguments or "" if call.function else "")
    assert (text, reason) == ("One moment.", "tool_calls")
    assert ["".join(pieces) for pieces in calls.values()] == ['{"a": 1}', "{}"]
    assert usage is not None
    assert usage.completion_tokens == 3


async def test_an_answer_comes_whole_too(server: OpenAIServer, client: AsyncOpenAI) -> None:
    server.script(CHAT, ["Hm.", Use("add", {"a": 1}, pieces=2)], ["cut", Stop("length")])
    first = await client.chat.completions.create(**chat())
    assert first.choices[0].message.content == "Hm."
    calls = first.choices[0].message.tool_calls or []
    assert [call.function.arguments for call in calls if call.type == "function"] == ['{"a": 1}']
    assert (await client.chat.completions.create(**chat())).choices[0].finish_reason == "length"


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        (chat(model="gpt-2"), "does not exist"),
        (chat(max_tokens=10), "Use 'max_completion_tokens' instead"),
        (chat(temperature=0), "'temperature' does not support"),
        (chat(reasoning_effort="much"), "Supported values"),
        (chat(model="gpt-4o-mini", reasoning_effort="low"), "Unrecognized request argument"),
        (chat(prompt="Hi"), "Unrecognized request argument supplied: prompt"),
        (chat(tools=[]), "empty array"),
        (chat(tools=[{"type": "function", "function": {"name": "a b"}}]), "does not match pattern"),
        (chat(tools=[{"type": "function", "function": {"name": "a", "parameters": {"type": "array"}}}]), "must be of type 'object'"),
        (chat(stream_options={"include_usage": True}), "only allowed when 'stream'"),
        (chat({"role": "bot", "content": "Hi"}), "Invalid value: 'bot'"),
        (chat({"role": "user", "content": None}), "expected a string"),
        (chat({"role": "assistant", "content": None}), "expected a string"),
        (chat(USER, RESULT), "must be a response to a preceeding message"),
        (chat(USER, CALLED), "call_1"),
        (chat(USER, CALLED, USER), "call_1"),
    ],
)
async def test_a_chat_that_the_service_would_refuse_is_refused(
    server: OpenAIServer, client: AsyncOpenAI, fields: dict[str, Any], message: str
) -> None:
    with pytest.raises(openai.APIStatusError) as caught:
        await client.chat.completions.create(**known(fields))
    assert message in caught.value.message
    assert server.refused
    assert caught.value.status_code in (400, 404)


def known(fields: dict[str, Any]) -> dict[str, Any]:
    """Return the arguments with those unknown to the SDK moved into `extra_body`."""
    others = {name: value for name, value in fields.items() if name == "prompt"}
    return {**{name: value for name, value in fields.items() if name not in others}, "extra_body": others}


async def test_a_call_and_its_result_are_taken(client: AsyncOpenAI) -> None:
    got = await client.chat.completions.create(**chat(USER, CALLED, RESULT, tools=[TOOL], reasoning_effort="none", max_completion_tokens=9))
    assert got.choices[0].message.content == "All right."


async def test_speech_is_sound_in_the_voice_that_was_asked_for(server: OpenAIServer, client: AsyncOpenAI) -> None:
    async def spoken(voice: str, format: Any = "pcm") -> bytes:
        answer = await client.audio.speech.create(model="gpt-4o-mini-tts", voice=voice, input="Hello.", response_format=format)
        assert answer.response.headers["content-type"] == f"audio/{format}"
        return answer.content

    low, high = await spoken("onyx"), await spoken("alloy")
    assert low != high
    assert len(low) == len(high) == len("Hello.") * 60 * RATE // 1_000 * 2
    assert await spoken("onyx", "wav") == (await spoken("onyx", "wav"))[:44] + low
    assert [one["voice"] for one in server.asked(SPEECH)] == ["onyx", "alloy", "onyx", "onyx"]


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"model": "piper"}, "does not exist"),
        ({"voice": "joe"}, "Supported values are: 'alloy'"),
        ({"input": ""}, "too short"),
        ({"input": "a" * (INPUT_LIMIT + 1)}, "too long"),
        ({"response_format": "pcm16"}, "Supported values"),
        ({"speed": 5}, "between 0.25 and 4"),
        ({"extra_body": {"rate": 2}}, "Unrecognized request argument supplied: rate"),
    ],
)
async def test_speech_that_the_service_would_refuse_is_refused(client: AsyncOpenAI, fields: dict[str, Any], message: str) -> None:
    asked = {"model": "gpt-4o-mini-tts", "voice": "onyx", "input": "Hello.", "response_format": "pcm", **fields}
    with pytest.raises(openai.APIStatusError) as caught:
        await client.audio.speech.create(**asked)
    assert message in caught.value.message


async def test_a_recording_is_transcribed(server: OpenAIServer, client: AsyncOpenAI) -> None:
    server.script(HEARING, ["What time is it?"])
    got = await client.audio.transcriptions.create(**heard(language="en", response_format="json"))
    assert got.text == "What time is it?"
    (asked,) = server.asked(HEARING)
    assert (asked["model"], asked["language"], len(asked["file"])) == ("gpt-transcribe", "en", 32_044)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"language": "pt-BR"}, "ISO-639-1"),
        ({"response_format": "verbose_json"}, "not compatible"),
        ({"file": ("speech.wav", recording(0.05), "audio/wav")}, "too short"),
        ({"file": ("speech.wav", b"no sound", "audio/wav")}, "Invalid file format"),
        ({"file": ("speech.wav", bytes(FILE_LIMIT + 1), "audio/wav")}, "size limit"),
        ({"model": "whisper"}, "does not exist"),
    ],
)
async def test_a_recording_that_the_service_would_refuse_is_refused(client: AsyncOpenAI, fields: dict[str, Any], message: str) -> None:
    with pytest.raises(openai.APIStatusError) as caught:
        await client.audio.transcriptions.create(**heard(**fields))
    assert message in caught.value.message


async def test_faults_come_as_the_sdks_own_errors(server: OpenAIServer, client: AsyncOpenAI) -> None:
    server.script(CHAT, [Status(429, "rate_limit_exceeded", "slowly", retry_after="3")], [Fault.DROP], ["Half", Fault.DROP])
    with pytest.raises(openai.RateLimitError) as limited:
        await client.chat.completions.create(**chat())
    assert (limited.value.code, limited.value.response.headers["retry-after"]) == ("rate_limit_exceeded", "3")
    with pytest.raises(openai.APIConnectionError):
        await client.chat.completions.create(**chat())
    with pytest.raises((openai.APIConnectionError, httpx2.TransportError)):
        async for _ in await client.chat.completions.create(**chat(stream=True)):
            pass


@pytest.mark.parametrize(("key", "message"), [("sk-another-one", "Incorrect API key"), ("", "provide an API key")])
async def test_the_right_key_is_needed(server: OpenAIServer, key: str, message: str) -> None:
    headers = {"Authorization": f"Bearer {key}" if key else ""}
    async with AsyncOpenAI(api_key="replaced", base_url=server.base_url, max_retries=0) as client:
        with pytest.raises(openai.AuthenticationError) as caught:
            await client.chat.completions.create(**chat(), extra_headers=headers)
    assert message in caught.value.message
    assert len(server.refused) == 1


async def test_another_path_is_not_there(server: OpenAIServer, client: AsyncOpenAI) -> None:
    with pytest.raises(openai.NotFoundError):
        await client.post("/audio/songs", cast_to=object, body={})
    assert server.refused == ["Invalid URL (POST /v1/audio/songs)"]
