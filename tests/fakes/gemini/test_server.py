"""The fake Gemini Live, driven by the google-genai SDK: accepted and refused input, and the echo."""

from __future__ import annotations

import json
from typing import Any

import pytest
from websockets.exceptions import InvalidStatus

from tests.fakes.gemini.client import MODEL, connect, one, refused, rest, said, send
from tests.fakes.gemini.server import VOICES, GeminiServer


def with_voice(name: str) -> dict[str, Any]:
    return {"speech_config": {"voice_config": {"prebuilt_voice_config": {"voice_name": name}}}}


def with_functions(*functions: dict[str, Any]) -> dict[str, Any]:
    return {"tools": [{"function_declarations": list(functions)}]}


_ENCODE = json.dumps


async def test_the_setup_arrives_as_it_was_asked_for(gemini: GeminiServer) -> None:
    config: dict[str, Any] = {
        "speech_config": {"voice_config": {"prebuilt_voice_config": {"voice_name": "Kore"}}, "language_code": "en-US"},
        "system_instruction": "Be kind.",
        "tools": [{"function_declarations": [{"name": "get_time", "description": "The time."}]}, {"google_search": {}}],
        "context_window_compression": {"sliding_window": {"target_tokens": 8_000}, "trigger_tokens": 20_000},
        "thinking_config": {"thinking_budget": 0},
        "realtime_input_config": {"automatic_activity_detection": {"prefix_padding_ms": 20, "silence_duration_ms": 300}},
        "session_resumption": {},
    }
    async with connect(**config) as session:
        assert session.setup_complete is not None
        found = await gemini.opened()
        assert (found.voice, found.instruction, found.model_name, found.key) == ("Kore", "Be kind.", MODEL, "key-1")
        assert found.api_version == "v1beta"
        assert found.setup["tools"][1] == {"functionDeclarations": [{"name": "get_time", "description": "The time."}]}
        assert gemini.connections == [found]
    await gemini.until(lambda: found.closed_at is not None)
    assert gemini.connections == []


@pytest.mark.parametrize("version", ["v1", "v1alpha"])
async def test_other_versions_of_the_api_are_there(gemini: GeminiServer, version: str) -> None:
    async with connect(version=version):
        assert (await gemini.opened()).api_version == version


@pytest.mark.usefixtures("gemini")
async def test_an_unknown_version_is_not_found() -> None:
    with pytest.raises(InvalidStatus) as caught:
        async with connect(version="v9"):
            pass
    assert caught.value.response.status_code == 404


@pytest.mark.usefixtures("gemini")
@pytest.mark.parametrize(
    ("config", "reason"),
    [
        (with_voice("Nobody"), "voice api_name 'Nobody' is not available"),
        ({"response_modalities": ["AUDIO", "TEXT"]}, "Unsupported response modalities"),
        ({"response_modalities": ["TEXT"]}, "Cannot extract voices"),
        (with_functions({"name": "two words"}), "Invalid function name"),
        (with_functions({"name": "same"}, {"name": "same"}), "Duplicate function declaration found: same"),
        (with_functions({"name": "a", "parameters": {"type": "OBJECT"}, "parameters_json_schema": {}}), "exclude each other"),
        ({"model": "gemini-3.8-live", "thinking_config": {"thinking_level": "LOW"}}, "Thinking level is not supported"),
        ({"model": "gemini-3.8-live", "proactivity": {"proactive_audio": False}}, "Proactive audio"),
        ({"model": "gemini-3.8-live-extended-thinking"}, "Thinking level is required"),
    ],
)
async def test_a_setup_that_the_service_would_not_take_is_closed_with_1007(config: dict[str, Any], reason: str) -> None:
    error = await refused(connect(**config))
    assert error.code == 1007
    assert reason in str(error)


@pytest.mark.usefixtures("gemini")
async def test_every_prebuilt_voice_is_taken() -> None:
    assert len(VOICES) == 30
    async with connect(**with_voice("Zephyr")) as session:
        assert session.setup_complete is not None


@pytest.mark.usefixtures("gemini")
@pytest.mark.parametrize(
    ("setup", "reason"),
    [
        ({"setup": {"model": MODEL}}, "unexpected model name format"),
        ({"setup": {"model": f"models/{MODEL}", "toolConfig": {}}}, "Unknown name \"toolConfig\" at 'setup'"),
        ({"setup": {"model": f"models/{MODEL}", "generation_config": {"tone": 1}}}, "Unknown name \"tone\" at 'setup.generationConfig'"),
        ({"setup": {"model": f"models/{MODEL}", "sessionResumption": {"transparent": True}}}, 'Unknown name "transparent"'),
        ({"realtime_input": {"text": "hi"}}, "setup must be the first message"),
        ({"hello": {}}, 'Unknown name "hello"'),
    ],
)
async def test_a_first_message_that_is_wrong_is_closed_with_1007(
    monkeypatch: pytest.MonkeyPatch, setup: dict[str, Any], reason: str
) -> None:
    monkeypatch.setattr("google.genai.live.json.dumps", lambda _: _ENCODE(setup))
    error = await refused(connect())
    assert error.code == 1007
    assert reason in str(error)


@pytest.mark.parametrize(
    ("message", "reason"),
    [
        ({"setup": {"model": f"models/{MODEL}"}}, "setup must be the first message"),
        ({"realtimeInput": {"audio": {"data": "AAAA", "mimeType": "audio/wav"}}}, "Unsupported audio: audio/wav"),
        ({"realtimeInput": {"audio": {"data": "AAAA", "mimeType": "audio/pcm;rate=16000"}}}, "half a sample"),
        ({"realtimeInput": {"audio": {"data": "A!AA", "mimeType": "audio/pcm;rate=16000"}}}, "Base64 decoding failed"),
        ({"realtimeInput": {"mediaChunks": []}}, "media_chunks is deprecated"),
        ({"realtimeInput": {"activityStart": {}}}, "Explicit activity control is not supported"),
        ({"clientContent": {"turns": [{"role": "system", "parts": []}]}}, "Please use a valid role"),
        ({"realtimeInput": {"smell": {}}}, "Unknown name \"smell\" at 'realtimeInput'"),
        ({"realtimeInput": {"text": "a", "audioStreamEnd": True}}, "one kind of input"),
        ({"clientContent": {"turns": [], "silent": True}}, "Unknown name \"silent\" at 'clientContent'"),
        ({"toolResponse": {"functionResponses": [{"id": "1", "error": "x"}]}}, 'Unknown name "error"'),
        ({"contextUpdate": {"voice": "Puck"}}, "Unknown name \"voice\" at 'contextUpdate'"),
        ({"toolResponse": {"functionResponses": [{"name": "a", "response": {}}]}}, "without an id"),
        ({"toolResponse": {"functionResponses": [{"id": "1", "response": [1]}]}}, "TYPE_MESSAGE"),
        ({"toolResponse": {"functionResponses": [{"id": "1", "scheduling": "SOON"}]}}, "'SOON'"),
        ({"toolResponse": {"functionResponses": [{"id": "1", "response": {"a": "x" * 16_400}}]}}, "invalid argument"),
    ],
)
@pytest.mark.parametrize("echo", [False, True])
async def test_a_message_that_the_service_would_not_take_is_closed_with_1007(
    gemini: GeminiServer, message: dict[str, Any], reason: str, echo: bool
) -> None:
    gemini.options.echo = echo
    error = await refused(connect(), lambda session: session._ws.send(json.dumps(message)))
    assert error.code == 1007
    assert reason in str(error)


async def test_a_wrong_key_no_key_and_an_unknown_model_are_refused(gemini: GeminiServer) -> None:
    gemini.options.keys = {"key-1"}
    gemini.options.models = {MODEL}
    error = await refused(connect(key="key-2"))
    assert (error.code, "API key not valid" in str(error)) == (1007, True)
    error = await refused(connect(http_options={"headers": {"x-goog-api-key": ""}}))
    assert (error.code, "unregistered callers" in str(error)) == (1008, True)
    error = await refused(connect(model="gemini-1.0-pro"))
    assert (error.code, "is not supported for bidi" in str(error)) == (1008, True)
    async with connect() as session:
        assert session.setup_complete is not None


async def test_echo_gives_each_message_of_audio_back(gemini: GeminiServer) -> None:
    gemini.options.echo = True
    frames = [bytes([(7 * at + number) % 256 for at in range(640)]) for number in range(50)]
    async with connect() as session:
        for frame in frames:
            await send(session, frame)
        back = [(await one(session)).data for _ in frames]
        assert back == frames
        await session._ws.send(json.dumps({"realtimeInput": {"audio": {"mimeType": "audio/pcm;rate=16000", "data": "AAD__w=="}}}))
        message = await session._ws.recv()
        assert isinstance(message, bytes), "answers come in binary frames"
        assert json.loads(message)["serverContent"]["modelTurn"]["parts"][0]["inlineData"]["data"] == "AAD//w=="
        assert gemini.sessions[0].audio_bytes == 50 * 640 + 4
        await session.send_realtime_input(text="hi")
        assert said(await rest(session)) == "All right."
