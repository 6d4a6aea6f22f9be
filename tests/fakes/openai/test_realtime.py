"""The stand-in for OpenAI Realtime, as the vendor's SDK sees it: its events and its refusals."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, cast

import pytest
from openai import AsyncOpenAI
from openai.resources.realtime.realtime import AsyncRealtimeConnection
from openai.types.realtime import RealtimeSessionCreateRequestParam
from websockets.exceptions import ConnectionClosed, InvalidStatus

from tests.eventually import BOUND_S
from tests.fakes.openai.realtime import KEY, OpenAIRealtimeServer
from tests.fakes.openai.realtime_turns import Turn, frames, tone

SESSION: RealtimeSessionCreateRequestParam = {
    "type": "realtime",
    "audio": {
        "input": {"format": {"type": "audio/pcm", "rate": 24_000}, "transcription": {"model": "gpt-transcribe"}},
        "output": {"voice": "marin"},
    },
}


@pytest.fixture
async def server() -> AsyncIterator[OpenAIRealtimeServer]:
    async with OpenAIRealtimeServer() as server:
        yield server


@asynccontextmanager
async def session(server: OpenAIRealtimeServer, key: str = KEY, headers: dict[str, str] | None = None) -> AsyncIterator[Client]:
    async with (
        AsyncOpenAI(api_key=key, base_url=server.url) as client,
        client.realtime.connect(model="gpt-realtime-2.1", extra_headers=headers or {}) as sdk,
    ):
        yield Client(sdk)


class Client:
    def __init__(self, sdk: AsyncRealtimeConnection) -> None:
        self.sdk = sdk
        self.kinds: list[str] = []

    async def until(self, kind: str) -> Any:
        """Return the next event of a type."""
        async with asyncio.timeout(BOUND_S):
            while True:
                event: Any = await self.sdk.recv()
                self.kinds.append(event.type)
                if event.type == kind:
                    return event

    async def send(self, **event: Any) -> None:
        await self.sdk.send(cast("Any", event))

    async def refusal(self, **event: Any) -> Any:
        """Send an event. Return the error that answers it."""
        await self.send(**event)
        return (await self.until("error")).error

    async def speak(self, pcm: bytes) -> None:
        for frame in frames(pcm, rate=24_000):
            await self.sdk.input_audio_buffer.append(audio=base64.b64encode(frame).decode())


async def test_speech_is_heard_committed_transcribed_and_answered(server: OpenAIRealtimeServer) -> None:
    server.script(Turn(hears="What time is it?", says="It is noon.", audio_ms=450))
    async with session(server) as client:
        await client.sdk.session.update(session=SESSION)
        await client.until("session.updated")
        await client.speak(tone(400, rate=24_000) + bytes(48 * 600))
        assert (await client.until("input_audio_buffer.speech_started")).audio_start_ms == 0
        assert (await client.until("input_audio_buffer.speech_stopped")).audio_end_ms == 900
        item = (await client.until("input_audio_buffer.committed")).item_id
        heard = await client.until("conversation.item.input_audio_transcription.completed")
        assert (heard.item_id, heard.transcript) == (item, "What time is it?")
        audio = 0
        await client.until("response.created")
        for _ in range(5):
            audio += len(base64.b64decode((await client.until("response.output_audio.delta")).delta))
        assert audio == 450 * 48
        done = await client.until("response.done")
        assert (done.response.status, done.response.usage.output_tokens) == ("completed", 12)
        assert done.response.output[0].content[0].transcript == "It is noon."
        assert client.kinds.index("response.output_item.added") < client.kinds.index("response.output_item.done")


async def test_speech_over_a_response_cancels_it(server: OpenAIRealtimeServer) -> None:
    server.script(Turn(audio_ms=5_000, says="A long story.", hold_after_ms=300))
    async with session(server) as client:
        await client.sdk.response.create()
        await client.until("response.output_audio.delta")
        await client.speak(tone(40, rate=24_000))
        await client.until("input_audio_buffer.speech_started")
        item = await client.until("response.output_item.done")
        assert item.item.status == "incomplete"
        done = await client.until("response.done")
        assert (done.response.status, done.response.status_details.reason) == ("cancelled", "turn_detected")


async def test_calls_texts_and_empty_turns(server: OpenAIRealtimeServer) -> None:
    server.script(Turn(calls=(("time", '{"place":"Rome"}'), ("date", "{}"))), Turn(writes="Noon."), Turn())
    async with session(server) as client:
        await client.sdk.response.create()
        first = (await client.until("response.output_item.done")).item
        second = (await client.until("response.output_item.done")).item
        assert [(call.name, call.arguments, call.status) for call in (first, second)] == [
            ("time", '{"place":"Rome"}', "completed"),
            ("date", "{}", "completed"),
        ]
        await client.until("response.done")
        await client.send(
            type="conversation.item.create", item={"type": "function_call_output", "call_id": first.call_id, "output": "noon"}
        )
        await client.until("conversation.item.added")
        await client.sdk.response.create()
        assert (await client.until("response.output_text.delta")).delta == "Noon."
        await client.until("response.done")
        await client.sdk.response.create()
        assert (await client.until("response.done")).response.output == []


@pytest.mark.parametrize(
    ("event", "code", "param"),
    [
        ({"type": "session.update", "session": {}}, "missing_required_parameter", "session.type"),
        ({"type": "session.update", "session": {"type": "realtime", "voice": "ash"}}, "unknown_parameter", "session.voice"),
        (
            {
                "type": "session.update",
                "session": {"type": "realtime", "audio": {"input": {"format": {"type": "audio/pcm", "rate": 16_000}}}},
            },
            "invalid_value",
            "session.audio.input.format.rate",
        ),
        ({"type": "session.update", "session": {"type": "realtime", "input_audio_format": "pcm16"}}, "unknown_parameter", None),
        ({"type": "session.update", "session": {"type": "realtime", "audio": {"output": {"voice": "Puck"}}}}, "invalid_value", None),
        ({"type": "transcription_session.update", "session": {}}, "invalid_value", "type"),
        ({"type": "input_audio_buffer.append", "audio": "AAA="}, None, None),
        ({"type": "input_audio_buffer.append", "audio": "AAAA"}, "invalid_value", "audio"),
        ({"type": "input_audio_buffer.append", "audio": "?"}, "invalid_value", "audio"),
        ({"type": "input_audio_buffer.commit"}, "input_audio_buffer_commit_empty", None),
        ({"type": "response.cancel"}, "response_cancel_not_active", None),
        (
            {"type": "conversation.item.truncate", "item_id": "item_9", "content_index": 0, "audio_end_ms": 1},
            "item_truncate_invalid_item_id",
            "item_id",
        ),
        (
            {"type": "conversation.item.create", "item": {"type": "function_call_output", "call_id": "call_9", "output": ""}},
            "invalid_tool_call_id",
            "item.call_id",
        ),
        (
            {"type": "conversation.item.create", "item": {"type": "message", "role": "assistant", "content": [{"type": "input_text"}]}},
            "invalid_value",
            "item.content[0].type",
        ),
        (
            {"type": "conversation.item.create", "item": {"type": "message", "role": "user", "content": [], "id": "i" * 33}},
            "string_above_max_length",
            "item.id",
        ),
    ],
)
async def test_what_the_service_would_refuse_is_refused(
    server: OpenAIRealtimeServer, event: dict[str, Any], code: str | None, param: str | None
) -> None:
    async with session(server) as client:
        if code is None:
            await client.send(**event)
            event, code = {"type": "response.cancel"}, "response_cancel_not_active"
        error = await client.refusal(**event, event_id="mine")
        assert (error.type, error.code, error.event_id) == ("invalid_request_error", code, "mine")
        assert param is None or error.param == param


async def test_one_response_at_a_time_and_a_voice_for_the_whole_session(server: OpenAIRealtimeServer) -> None:
    server.script(Turn(audio_ms=300, hold_after_ms=200))
    async with session(server) as client:
        await client.sdk.session.update(session=SESSION)
        await client.sdk.response.create()
        item = (await client.until("response.output_audio.delta")).item_id
        assert (await client.refusal(type="response.create")).code == "conversation_already_has_active_response"
        change = {"type": "realtime", "audio": {"output": {"voice": "cedar"}}}
        assert (await client.refusal(type="session.update", session=change)).code == "cannot_update_voice"
        await client.sdk.response.cancel()
        assert (await client.until("response.done")).response.status_details.reason == "client_cancelled"
        await client.sdk.conversation.item.truncate(item_id=item, content_index=0, audio_end_ms=150)
        assert (await client.until("conversation.item.truncated")).audio_end_ms == 150
        late = await client.refusal(type="conversation.item.truncate", item_id=item, content_index=0, audio_end_ms=151)
        assert "already shorter than 151ms" in late.message


@pytest.mark.parametrize(("status", "key"), [(401, "sk-other"), (429, KEY), (503, KEY)])
async def test_a_request_may_be_refused(server: OpenAIRealtimeServer, status: int, key: str) -> None:
    if key == KEY:
        server.refuse(status)
    with pytest.raises(InvalidStatus) as caught:
        async with session(server, key):
            pytest.fail("it was opened")
    assert caught.value.response.status_code == status


async def test_the_beta_is_over(server: OpenAIRealtimeServer) -> None:
    with pytest.raises(InvalidStatus):
        async with session(server, headers={"OpenAI-Beta": "realtime=v1"}):
            pytest.fail("it was opened")


@pytest.mark.parametrize(("fault", "code"), [("kill", None), ("close", 4_008), ("expire", 1_001)])
async def test_a_session_may_end(server: OpenAIRealtimeServer, fault: str, code: int | None) -> None:
    async with session(server) as client:
        await client.until("session.created")
        theirs = await server.session()
        match fault:
            case "kill":
                theirs.kill(mid_frame=True)
            case "close":
                await theirs.close(4_008, "scripted")
            case _:
                await theirs.expire()
                assert (await client.until("error")).error.code == "session_expired"
        with pytest.raises(ConnectionClosed) as caught:
            await client.until("nothing")
        assert (caught.value.rcvd.code if caught.value.rcvd else None) == code


async def test_the_echo_is_the_same_audio(server: OpenAIRealtimeServer) -> None:
    server.echo = True
    async with session(server) as client:
        sent = tone(100, rate=24_000)
        await client.speak(sent)
        came = b"".join([base64.b64decode((await client.until("response.output_audio.delta")).delta) for _ in range(5)])
        assert came == sent


async def test_a_silent_service_answers_nothing(server: OpenAIRealtimeServer) -> None:
    server.silent = True
    async with session(server) as client:
        await client.sdk.response.create()
        theirs = await server.session()
        await theirs.until("response.create")
        await theirs.raw('{"type":"only.this"}')
        assert (await client.until("only.this")).type == "only.this"
        assert client.kinds == ["only.this"]
