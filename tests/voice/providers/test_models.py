"""The clients of the models against a server with the answers and faults of an OpenAI-compatible one."""

from __future__ import annotations

import asyncio
import io
import json
import socket
import ssl
import subprocess
import sys
import wave
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any, Self

import openai
import pytest

from tests.fakes import tls
from tests.fakes.anthropic.server import KEY as CLAUDE_KEY
from tests.fakes.anthropic.server import AnthropicServer
from tests.fakes.sse import Answer, Body, Request, SseServer
from tests.voice.model_server import Fault, ModelServer, Raw, Status, call
from voxbridge.services.voice.providers.cascade import models as models_module
from voxbridge.services.voice.providers.cascade.models import TEXT_LIMIT, Models
from voxbridge.shared.agents.functions import Function
from voxbridge.shared.audio.frames import OUTPUT_RATE
from voxbridge.shared.config import Config
from voxbridge.shared.errors import Code, VoxbridgeError
from voxbridge.shared.language import base
from voxbridge.shared.language.base import ARGUMENTS_LIMIT, LanguageModel
from voxbridge.shared.language.conversation import Complete, Completed, Message, TextDelta, ToolRequested, ToolUse
from voxbridge.shared.secrets.provider_keys import KEY_LIMIT

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
    monkeypatch.setattr(base, "RETRIES", 0)
    models = Models(Config(models_url=server.url))
    yield models
    await models.close()


async def test_a_transcription_sends_a_wav_file_and_gives_the_words(server: ModelServer, models: Models) -> None:
    server.script("stt", ["  What time is it? "])
    found = await models.transcribe(bytes(32_000))
    assert (found.text, found.language) == ("What time is it?", "en")
    with wave.open(io.BytesIO(models_module._wav(bytes(32_000)))) as file:
        assert (file.getframerate(), file.getnchannels(), file.getsampwidth(), file.getnframes()) == (16_000, 1, 2, 16_000)


async def test_a_recogniser_is_told_what_is_likely_to_be_said(server: ModelServer, models: Models) -> None:
    server.script("stt", ["Ask Gemini."], ["Ask Gemini."])
    await models.transcribe(bytes(3_200), vocabulary=("Claude", "its diff"))
    await models.transcribe(bytes(3_200))
    assert [form.get("prompt") for form in server.asked("stt")] == ["Claude, its diff.", None]


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


async def test_thoughts_are_not_told(server: ModelServer, models: Models) -> None:
    server.script("llm", ["<thi", "nk>The user wants the time.", "</th", "ink>\n\nIt is ", "noon."])
    assert [one.text for one in await written(models) if isinstance(one, TextDelta)] == ["It is ", "noon."]


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
    assert len((await models.transcribe(bytes(3_200))).text) == TEXT_LIMIT
    with pytest.raises(VoxbridgeError, match=str(TEXT_LIMIT)):
        await models.transcribe(bytes(3_200))


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


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Clients created from here on time out after a fraction of a second."""
    monkeypatch.setattr(base, "READ_TIMEOUT_S", 0.3)


@pytest.mark.usefixtures("impatient")
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


@pytest.mark.usefixtures("impatient")
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
    monkeypatch.setattr(base, "RETRIES", 0)
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
        await models.transcribe(bytes(3_200))
        assert [part for part, _ in other.requests] == ["llm"]
        assert [part for part, _ in server.requests] == ["stt"]
        assert not models.local
        await models.close()


def test_the_openai_client_tries_again_once() -> None:
    assert base.RETRIES == 1
    assert Models(Config()).local
    assert issubclass(openai.RateLimitError, openai.APIStatusError)


@pytest.mark.parametrize(("url", "here"), [("", True), ("http://127.0.0.1:8421/v1/", True), ("https://stt.example/v1", False)])
def test_who_transcribes_is_known(url: str, *, here: bool) -> None:
    assert Models(Config(stt_url=url, models_port=8421)).hears_here is here


class Vendor(SseServer):
    """OpenAI's service for the choice of an endpoint: every request is answered, and its headers identify the client."""

    def __init__(self, tls: ssl.SSLContext | None = None) -> None:
        super().__init__(tls)
        self.scripted: list[Answer] = []

    def answer(self, request: Request) -> Answer:
        if self.scripted:
            return self.scripted.pop(0)
        if request.path.endswith("/audio/transcriptions"):
            return Body(200, {"text": "Hello there."})
        if request.path.endswith("/audio/speech"):
            return Body(200, bytes(960))
        choice = {"index": 0, "delta": {"content": "All right."}, "finish_reason": "stop"}
        frame = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [choice]}
        return [b"data: " + json.dumps(frame).encode() + b"\n\n", b"data: [DONE]\n\n"]

    @property
    def asked_with(self) -> list[str]:
        return [request.headers["authorization"] for request in self.requests]

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()


def of(provider: str, model: str = "") -> Complete:
    return Complete(provider=provider, model=model, messages=ASK.messages, functions=(TIME,))


@pytest.fixture
async def vendor(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Vendor]:
    async with Vendor() as vendor:
        monkeypatch.setenv("OPENAI_BASE_URL", f"{vendor.url}/v1")
        monkeypatch.setenv("OPENAI_API_KEY", "sk-of-the-tests")
        yield vendor


async def test_openai_is_asked_for_all_three_parts_with_its_models_and_the_key(vendor: Vendor, models: Models) -> None:
    assert (await written(models, of("openai")))[0] == TextDelta(5, "All right.")
    assert (await models.transcribe(bytes(3_200), provider="openai", language="de")).language == "de"
    assert b"".join([pcm async for pcm in models.synthesize("Hello.", "", provider="openai")]) == bytes(960)
    chat, _, speech = (request.body for request in vendor.requests)
    assert vendor.asked_with == ["Bearer sk-of-the-tests"] * 3
    assert (chat["model"], chat["max_completion_tokens"], chat["reasoning_effort"]) == ("gpt-6-luna", 1_024, "none")
    assert not {"max_tokens", "temperature"} & set(chat), "newer models refuse both"
    assert (speech["model"], speech["voice"], speech["response_format"]) == ("gpt-4o-mini-tts", "alloy", "pcm")


async def test_an_older_model_of_openais_is_not_told_how_to_reason(vendor: Vendor, models: Models) -> None:
    await written(models, of("openai", "gpt-4.1-mini"))
    assert "reasoning_effort" not in vendor.requests[0].body


@pytest.mark.parametrize("provider", ["", "local"])
async def test_local_is_the_installations_own(server: ModelServer, models: Models, provider: str) -> None:
    await written(models, of(provider))
    await models.transcribe(bytes(3_200), provider=provider)
    await spoken(models)
    assert [part for part, _ in server.requests] == ["llm", "stt", "tts"]
    assert server.asked("llm")[0]["model"] == "local"


async def test_a_named_endpoint_is_asked_with_its_own_key(server: ModelServer, vendor: Vendor, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VOXBRIDGE_KEY_MY_VLLM", "sk-mine")
    models = Models(Config(models_url=server.url, endpoints=f"my-vllm={vendor.url}/v1, other={vendor.url}/v1"))
    await written(models, of("my-vllm", "big"))
    await models.transcribe(bytes(3_200), provider="my-vllm", model="ears")
    assert [pcm async for pcm in models.synthesize("Hello.", "ann", provider="other", model="voice")]
    assert vendor.asked_with == ["Bearer sk-mine", "Bearer sk-mine", "Bearer local"]
    assert vendor.requests[0].body["model"] == "big"
    assert vendor.requests[0].body["max_tokens"] == 320
    assert (vendor.requests[2].body["model"], vendor.requests[2].body["voice"]) == ("voice", "ann")
    for ask in (written(models, of("other")), models.transcribe(bytes(3_200), provider="other")):
        with pytest.raises(VoxbridgeError, match="Name a model of other") as caught:
            await ask
        assert (caught.value.code, caught.value.field) == (Code.INVALID_ARGUMENT, "model")
    await models.close()


@pytest.mark.parametrize(("provider", "part"), [("nobody", "language"), ("anthropic", "speech"), ("gemini", "transcription")])
async def test_a_provider_that_has_no_such_part_is_refused(models: Models, provider: str, part: str) -> None:
    asks: dict[str, Callable[[], Any]] = {
        "language": lambda: written(models, of(provider)),
        "speech": lambda: anext(models.synthesize("Hello.", "", provider=provider)),
        "transcription": lambda: models.transcribe(bytes(3_200), provider=provider),
    }
    with pytest.raises(VoxbridgeError, match=f"No {part} model of '{provider}'") as caught:
        await asks[part]()
    assert (caught.value.code, caught.value.field, caught.value.retryable) == (Code.INVALID_ARGUMENT, "provider", False)


@pytest.mark.parametrize(
    ("provider", "variable"), [("anthropic", "ANTHROPIC_API_KEY"), ("gemini", "GEMINI_API_KEY"), ("openai", "OPENAI_API_KEY")]
)
async def test_a_vendor_without_a_key_is_refused_with_what_to_do(
    models: Models, monkeypatch: pytest.MonkeyPatch, provider: str, variable: str
) -> None:
    for name in ("ANTHROPIC_API_KEY", "GEMINI_API_KEY", "GOOGLE_API_KEY", "OPENAI_API_KEY"):
        monkeypatch.setenv(name, "")
    with pytest.raises(VoxbridgeError) as caught:
        await written(models, of(provider))
    assert caught.value.message == f"no key for {provider}; set {variable} or POST /api/config/keys"
    assert (caught.value.code, caught.value.retryable) == (Code.PROVIDER_REFUSED, False)


@pytest.mark.parametrize("key", ["sk two", "sk\nthree", "schlüssel", "x" * (KEY_LIMIT + 1)])
async def test_a_key_that_cannot_be_sent_is_refused_without_being_said(vendor: Vendor, key: str) -> None:
    async def keys(_: str) -> str:
        return key

    models = Models(Config(), keys)
    with pytest.raises(VoxbridgeError, match="the key for openai") as caught:
        await written(models, of("openai"))
    assert key not in str(caught.value.as_dict())
    assert vendor.requests == []
    await models.close()


async def test_a_key_may_change_between_two_requests(vendor: Vendor, monkeypatch: pytest.MonkeyPatch) -> None:
    given = ["sk-one", "sk-one", "sk-two"]

    async def keys(provider: str) -> str:
        assert provider == "openai"
        return given.pop(0)

    models = Models(Config(), keys)
    for _ in range(3):
        await written(models, of("openai"))
    assert vendor.asked_with == ["Bearer sk-one", "Bearer sk-one", "Bearer sk-two"]
    await models.close()


async def test_only_vendors_with_a_key_are_loaded_ahead_and_the_rest_never(models: Models, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("GEMINI_API_KEY", "GOOGLE_API_KEY"):
        monkeypatch.setenv(name, "")
    monkeypatch.setenv("ANTHROPIC_API_KEY", CLAUDE_KEY)
    loaded: list[str] = []

    def load(name: str) -> LanguageModel:
        loaded.append(name)
        return models._language._own

    for name, later in models._language._later.items():
        monkeypatch.setattr(later, "_load", lambda _, name=name: load(name))
    await models.prepare()
    await models.prepare()
    with pytest.raises(VoxbridgeError, match="no key for gemini"):
        await written(models, of("gemini"))
    assert loaded == ["anthropic"]


def test_a_worker_starts_without_the_vendors_sdks() -> None:
    models = "voxbridge.services.voice.providers.cascade.models"
    program = f"import sys, {models}; print([name for name in ('anthropic', 'google.genai') if name in sys.modules])"
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True, text=True, timeout=60)
    assert found.stdout.strip() == "[]"


async def test_a_key_that_the_vendor_refuses_is_never_quoted(monkeypatch: pytest.MonkeyPatch) -> None:
    async with AnthropicServer() as server:
        monkeypatch.setenv("ANTHROPIC_BASE_URL", server.url)
        monkeypatch.setenv("ANTHROPIC_API_KEY", CLAUDE_KEY + "-old")
        models = Models(Config())
        with pytest.raises(VoxbridgeError, match=r"refused the key \(HTTP 401\)") as caught:
            await written(models, of("anthropic"))
        assert (caught.value.code, caught.value.retryable) == (Code.PROVIDER_REFUSED, False)
        await models.close()


async def test_openais_base_url_and_certificates_are_taken_from_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ca, context = tls.issue(tmp_path)
    async with Vendor(context) as vendor:
        monkeypatch.setenv("OPENAI_BASE_URL", f"{vendor.url}/v1")
        monkeypatch.setenv("OPENAI_API_KEY", "sk-of-the-tests")
        monkeypatch.setattr(base, "RETRIES", 0)
        strange = Models(Config())
        with pytest.raises(VoxbridgeError, match="cannot be reached"):
            await written(strange, of("openai"))
        await strange.close()
        monkeypatch.setenv("SSL_CERT_FILE", str(ca))
        models = Models(Config())
        assert (await written(models, of("openai")))[0] == TextDelta(5, "All right.")
        await models.close()


async def test_a_certificate_file_that_is_not_there_is_an_error_of_the_installation(
    vendor: Vendor, monkeypatch: pytest.MonkeyPatch
) -> None:
    models = Models(Config())
    monkeypatch.setenv("GEMINI_API_KEY", "AIza-of-the-tests")
    monkeypatch.setenv("SSL_CERT_FILE", "/nowhere/ca.pem")
    for _ in range(2):
        with pytest.raises(VoxbridgeError, match="client of gemini cannot be made") as caught:
            await written(models, of("gemini"))
        assert (caught.value.code, caught.value.retryable) == (Code.PROVIDER_REFUSED, False)
    await models.close()


async def test_chat_completions_that_were_filtered_or_cut_in_a_call_call_nothing(vendor: Vendor, models: Models) -> None:
    for reason, words in (("content_filter", "content filter"), ("length", "limit of tokens")):
        [delta] = call("current_time", "{}")
        frame = {"choices": [{"index": 0, "delta": delta, "finish_reason": reason}], "id": "c", "created": 1, "model": "m"}
        events = [b"data: " + json.dumps(frame).encode() + b"\n\ndata: [DONE]\n\n"]
        vendor.scripted.append(events)
        got: list[Any] = []
        with pytest.raises(VoxbridgeError, match=words):
            await written(models, of("openai"), into=got)
        assert got == []
