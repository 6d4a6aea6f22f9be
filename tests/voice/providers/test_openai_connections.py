"""OpenAI Realtime through the provider interface: start, setup and end of a connection."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.eventually import BOUND_S
from tests.fakes import tls
from tests.fakes.openai.realtime import KEY, OpenAIRealtimeServer
from tests.fakes.openai.realtime_turns import Turn, tone
from tests.voice.providers.openai_calls import SETUP, SPEECH, TIME, Call, calling, the_key
from voxbridge.services.voice.core.provider_events import AgentAudio, AgentText, ModelTurnDone, ProviderInput
from voxbridge.services.voice.providers.realtime.base import ConnectionLost, Setup
from voxbridge.services.voice.providers.realtime.openai import model as openai_model
from voxbridge.services.voice.providers.realtime.openai import payloads, responses, wire
from voxbridge.services.voice.providers.realtime.openai.model import OpenAIRealtime
from voxbridge.shared.language.conversation import Message, ToolUse


@pytest.fixture
async def server(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[OpenAIRealtimeServer]:
    async with OpenAIRealtimeServer() as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        yield server


@pytest.fixture
async def model(server: OpenAIRealtimeServer) -> AsyncIterator[OpenAIRealtime]:
    model = OpenAIRealtime(the_key)
    yield model
    await model.close()


@pytest.fixture
async def call(server: OpenAIRealtimeServer, model: OpenAIRealtime) -> AsyncIterator[Call]:
    async with calling(server, model) as call:
        yield call
        assert not call.session.errors, call.session.errors


async def test_a_session_is_set_up_in_the_ga_shape(server: OpenAIRealtimeServer, call: Call) -> None:
    settings = call.session.of("session.update")[0]["session"]
    assert settings["type"] == "realtime"
    assert settings["audio"]["input"] == {
        "format": {"type": "audio/pcm", "rate": 24_000},
        "transcription": {"model": payloads.TRANSCRIPTION, "language": "de"},
        "turn_detection": {"type": "server_vad", "silence_duration_ms": 500, "create_response": True, "interrupt_response": True},
    }
    assert settings["audio"]["output"] == {"format": {"type": "audio/pcm", "rate": 24_000}, "voice": "marin"}
    assert settings["instructions"].startswith("Be kind.")
    assert "`de-AT`" in settings["instructions"]
    assert settings["tools"] == [{"type": "function", "name": "time", "description": "The time.", "parameters": TIME.parameters}]
    assert (server.dialled, call.connection.resumed) == (["gpt-realtime-2.1"], False)


async def test_what_is_not_given_is_left_to_the_vendor(server: OpenAIRealtimeServer, model: OpenAIRealtime) -> None:
    async with calling(server, model, Setup(model="m", voice="", language="", instructions="Hi.", handle="old")) as call:
        settings = call.session.of("session.update")[0]["session"]
        assert (settings["instructions"], settings["tools"]) == ("Hi.", [])
        assert "voice" not in settings["audio"]["output"]
        assert "language" not in settings["audio"]["input"]["transcription"]
        assert call.connection.resumed is False


async def test_a_conversation_is_seeded_in_order_with_its_calls(server: OpenAIRealtimeServer, model: OpenAIRealtime) -> None:
    long = "c" * 64
    history = (
        Message(role="system", text="The user is Ada."),
        Message(role="user", text="What time is it?"),
        Message(role="assistant", text="One moment.", uses=(ToolUse(call_id=long, name="time", arguments={"place": "Rome"}),)),
        Message(role="tool", text='{"time": "noon"}', call_id=long),
        Message(role="tool", text="rain", call_id="of an earlier life"),
        Message(role="assistant", text="It is noon."),
    )
    async with calling(server, model, msgspec.structs.replace(SETUP, history=history)) as call:
        assert not call.session.errors
        items = [
            {name: value for name, value in item.items() if name not in ("id", "object", "status")} for item in call.session.items.values()
        ]
        told = [(item["role"], item["content"][0]["type"], item["content"][0]["text"]) for item in items if item["type"] == "message"]
        assert told == [
            ("system", "input_text", "The user is Ada."),
            ("user", "input_text", "What time is it?"),
            ("assistant", "output_text", "One moment."),
            ("system", "input_text", "The result of an earlier call: rain"),
            ("assistant", "output_text", "It is noon."),
        ]
        asked, result = items[3], items[4]
        assert (asked["name"], json.loads(asked["arguments"]), asked["call_id"]) == ("time", {"place": "Rome"}, result["call_id"])
        assert result["output"] == '{"time": "noon"}'
        assert not call.session.of("response.create")


async def test_a_long_history_does_not_stand_in_its_own_way(server: OpenAIRealtimeServer, model: OpenAIRealtime) -> None:
    history = tuple(Message(role="user", text=f"{number} " + "x" * 4_000) for number in range(300))
    async with calling(server, model, msgspec.structs.replace(SETUP, history=history)) as call:
        assert len(call.session.items) == 300


async def test_a_session_starts_whole_or_not_at_all(server: OpenAIRealtimeServer, model: OpenAIRealtime) -> None:
    with pytest.raises(ConnectionLost, match=r"refused the session \(invalid_value at session.audio.output.voice\)") as caught:
        await model.connect(msgspec.structs.replace(SETUP, voice="Puck"))
    assert not caught.value.retryable


async def test_silence_while_a_session_is_set_up_is_bounded(
    server: OpenAIRealtimeServer, model: OpenAIRealtime, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(openai_model, "SETUP_S", 0.05)
    server.silent = True
    with pytest.raises(ConnectionLost, match="did not set up the session in time") as caught:
        await model.connect(SETUP)
    assert caught.value.retryable


@pytest.mark.parametrize(
    ("status", "code", "retryable", "words"),
    [
        (401, "invalid_api_key", False, "OPENAI_API_KEY"),
        (403, "", False, "/api/config/keys"),
        (429, "", True, "429"),
        (429, "insufficient_quota", False, "insufficient_quota"),
        (500, "", True, "500"),
        (503, "", True, "503"),
        (404, "model_not_found", False, "model_not_found"),
    ],
)
async def test_a_refused_connection_says_whether_it_may_pass(
    server: OpenAIRealtimeServer, model: OpenAIRealtime, status: int, code: str, retryable: bool, words: str
) -> None:
    server.refuse(status, code)
    with pytest.raises(ConnectionLost) as caught:
        await model.connect(SETUP)
    assert (caught.value.retryable, caught.value.close_code) == (retryable, 1006)
    assert words in caught.value.message
    assert KEY not in repr(caught.value)


@pytest.mark.parametrize(
    ("key", "words"), [("", "There is no key"), ("sk-a\r\nhost: b", "refused the key"), ("schlüssel", "refused the key")]
)
async def test_without_a_usable_key_nothing_is_dialled(server: OpenAIRealtimeServer, key: str, words: str) -> None:
    async def keys(provider: str) -> str:
        return key

    model = OpenAIRealtime(keys)
    with pytest.raises(ConnectionLost, match=words) as caught:
        await model.connect(SETUP)
    assert (caught.value.retryable, caught.value.close_code, server.dialled) == (False, 0, [])
    assert "OPENAI_API_KEY" in caught.value.message
    assert "POST /api/config/keys" in caught.value.message
    await model.close()


async def test_each_connection_asks_for_the_key(server: OpenAIRealtimeServer) -> None:
    given = iter(["sk-revoked", KEY])

    async def keys(provider: str) -> str:
        return next(given)

    model = OpenAIRealtime(keys)
    with pytest.raises(ConnectionLost, match="refused the key"):
        await model.connect(SETUP)
    await (await model.connect(SETUP)).close()
    await model.close()


async def test_an_address_where_nobody_listens_is_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        monkeypatch.setenv("OPENAI_BASE_URL", f"http://127.0.0.1:{probe.getsockname()[1]}/v1")
        model = OpenAIRealtime(the_key)
        with pytest.raises(ConnectionLost, match="cannot be reached") as caught:
            await model.connect(SETUP)
        assert (caught.value.retryable, caught.value.close_code) == (True, 1006)
        await model.close()


async def test_a_door_that_nobody_opens_is_not_waited_at(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(openai_model, "CONNECT_S", 0.05)
    with socket.create_server(("127.0.0.1", 0)) as deaf:
        monkeypatch.setenv("OPENAI_BASE_URL", f"http://127.0.0.1:{deaf.getsockname()[1]}/v1")
        model = OpenAIRealtime(the_key)
        with pytest.raises(ConnectionLost, match="did not open a connection in time") as caught:
            await model.connect(SETUP)
        assert caught.value.retryable
        await model.close()


@pytest.mark.parametrize("trusted", [True, False])
async def test_the_certificates_of_ssl_cert_file_are_trusted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, trusted: bool) -> None:
    authority, context = tls.issue(tmp_path)
    async with OpenAIRealtimeServer(tls=context) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        if trusted:
            monkeypatch.setenv("SSL_CERT_FILE", str(authority))
        model = OpenAIRealtime(the_key)
        if trusted:
            await (await model.connect(SETUP)).close()
        else:
            with pytest.raises(ConnectionLost, match="SSL_CERT_FILE") as caught:
                await model.connect(SETUP)
            assert not caught.value.retryable
        await model.close()


async def test_an_event_that_was_refused_is_logged_without_what_was_said(call: Call, caplog: pytest.LogCaptureFixture) -> None:
    await call.session.fail("invalid_value", f"Invalid value: 'my secret, {KEY}'.")
    await call.connection.say("Hello?")
    await call.heard.until(ModelTurnDone)
    assert "invalid_value" in caplog.text
    assert "secret" not in caplog.text
    assert KEY not in caplog.text


@pytest.mark.parametrize(
    ("code", "kind", "retryable"),
    [
        ("session_expired", "invalid_request_error", True),
        ("invalid_api_key", "invalid_request_error", False),
        ("", "authentication_error", False),
        ("insufficient_quota", "invalid_request_error", False),
    ],
)
async def test_some_errors_end_the_connection(call: Call, code: str, kind: str, retryable: bool) -> None:
    await call.session.fail(code, f"with {KEY}", kind)
    lost = await call.lost()
    assert lost.retryable is retryable
    assert KEY not in repr(lost)


@pytest.mark.parametrize(
    ("code", "reason", "retryable"),
    [
        (1_000, "", True),
        (1_001, "", True),
        (1_008, "", False),
        (1_011, "keepalive ping timeout", True),
        (3_000, "invalid_request_error.invalid_api_key", False),
        (4_000, "invalid_request_error.model_not_found", False),
        (4_000, "invalid_request_error.session_expired", True),
    ],
)
async def test_a_close_says_whether_it_may_pass(call: Call, code: int, reason: str, retryable: bool) -> None:
    await call.session.close(code, reason)
    lost = await call.lost()
    assert (lost.close_code, lost.retryable, lost.handle_refused) == (code, retryable, False)
    with pytest.raises(ConnectionLost) as caught:
        call.connection.send_audio(bytes(640))
    assert caught.value.close_code == code


@pytest.mark.parametrize("mid_frame", [False, True])
async def test_a_connection_that_is_cut_was_never_closed(call: Call, mid_frame: bool) -> None:
    call.session.kill(mid_frame=mid_frame)
    lost = await call.lost()
    assert (lost.close_code, lost.retryable) == (1006, True)
    with pytest.raises(ConnectionLost):
        await call.connection.say("Hello?")


async def test_after_sixty_minutes_a_new_connection_is_worth_a_try(call: Call) -> None:
    await call.session.expire()
    assert (await call.lost()).retryable


@pytest.mark.parametrize(
    "broken",
    [
        "{",
        "[]",
        "null",
        '{"type": 5}',
        '{"type":"response.output_audio.delta","response_id":"r","item_id":"i","delta":"?"}',
        '{"type":"response.output_audio.delta","response_id":"r"}',
        '{"type":"response.done"}',
        '{"type":"response.created","response":null}',
        '{"type":"error"}',
    ],
)
async def test_what_cannot_be_read_ends_the_connection(server: OpenAIRealtimeServer, call: Call, broken: str) -> None:
    server.script(Turn(broken=broken))
    await call.connection.say("Hello?")
    lost = await call.lost()
    assert (lost.message, lost.retryable) == ("OpenAI sent something that cannot be read.", True)


async def test_what_the_listener_stumbles_over_is_not_blamed_on_the_vendor(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    def stumble(input: ProviderInput) -> None:
        raise ValueError(input)

    monkeypatch.setattr(call.heard, "take", stumble)
    await call.speak(SPEECH)
    with pytest.raises(ValueError, match="UserVoice"):
        await call.running


async def test_events_that_nobody_knows_yet_are_passed_over(server: OpenAIRealtimeServer, call: Call) -> None:
    server.script(Turn(broken='{"type":"response.hologram.delta","delta":5}', writes="Noon."))
    await call.connection.say("Hello?")
    await call.heard.until(AgentText)


async def test_an_event_may_be_so_long_and_no_longer(server: OpenAIRealtimeServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(openai_model, "MESSAGE_LIMIT", 8_192)
    model = OpenAIRealtime(the_key)
    async with calling(server, model) as call:
        for size in (8_192, 8_193):
            empty = '{"type":"new","fill":""}'
            await call.session.raw(empty.replace('""', '"' + "x" * (size - len(empty)) + '"'))
        assert (await call.lost()).close_code == 1_009
    await model.close()


async def test_half_a_sample_waits_for_its_other_half(call: Call) -> None:
    where = {"response_id": "r", "item_id": "i", "output_index": 0, "content_index": 0}
    for delta in ("AQI=", "AwQF", "Bg=="):
        await call.session.send("response.output_audio.delta", **where, delta=delta)
    await call.session.send("response.output_text.delta", **where, delta="end")
    await call.heard.until(AgentText)
    assert [one for one in call.heard.all if isinstance(one, bytes)] == [b"\1\2", b"\3\4", b"\5\6"]


async def test_closing_does_not_wait_for_a_vendor_that_does_not_listen(
    server: OpenAIRealtimeServer, model: OpenAIRealtime, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(wire, "CLOSE_S", 0.05)
    connection = await model.connect(SETUP)
    server.sessions[0].deafen()
    async with asyncio.timeout(BOUND_S):
        await connection.close()
        await connection.close()
    with pytest.raises(ConnectionLost):
        connection.send_audio(bytes(640))


def test_the_bounds_are_those_of_the_seam() -> None:
    assert wire.CLOSE_S == 1.0
    assert (openai_model.CONNECT_S, openai_model.SETUP_S, responses.CANCEL_S) == (5.0, 5.0, 2.0)


async def test_the_echo_of_many_frames_is_complete(server: OpenAIRealtimeServer, call: Call) -> None:
    server.echo = True
    await call.speak(tone(2_000))
    await call.heard.until_played(1_900 * 48)
    assert [one.ms for one in call.heard.of(AgentAudio)][:2] == [20, 1_020]


REPORTS: list[Callable[..., ConnectionLost]] = [payloads.refused, payloads.closed, payloads.unset]


@pytest.mark.parametrize("report", REPORTS)
def test_refusals_do_not_repeat_what_the_vendor_wrote(report: Callable[..., ConnectionLost]) -> None:
    arguments: dict[Any, tuple[Any, ...]] = {
        payloads.refused: (400, json.dumps({"error": {"message": KEY}}).encode()),
        payloads.closed: (1008, f"key {KEY}"),
        payloads.unset: ("invalid_request_error", "", ""),
    }
    assert KEY not in repr(report(*arguments[report]))
