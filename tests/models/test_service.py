"""The running service through OpenAI's own client: real weights, real engines."""

from __future__ import annotations

import io
import json
import os
import re
import signal
import time
import wave
from typing import Any, Final

import httpx
import numpy as np
import pytest
from openai import APIStatusError, OpenAI
from openai.types.chat import ChatCompletionMessageFunctionToolCallParam, ChatCompletionMessageParam, ChatCompletionToolParam

from tests.browser.stage.speech import shared_words
from tests.running_models import RunningModels
from voxbridge.services.models.engines import audio

# The first run on a machine downloads 1.3 GB.
pytestmark = pytest.mark.timeout(900)

SYSTEM: Final = "You are a voice assistant. Be brief."
TIMER: Final[ChatCompletionToolParam] = {
    "type": "function",
    "function": {
        "name": "set_timer",
        "description": "Start a timer that speaks up when it ends.",
        "parameters": {
            "type": "object",
            "properties": {"seconds": {"type": "integer", "minimum": 1, "examples": [300]}, "label": {"type": "string"}},
            "required": ["seconds"],
            "additionalProperties": False,
        },
    },
}
CLOCK: Final[ChatCompletionToolParam] = {
    "type": "function",
    "function": {
        "name": "current_time",
        "description": "The time and date now in a city or country.",
        "parameters": {"type": "object", "properties": {"place": {"type": "string", "examples": ["Lisbon"]}}, "required": ["place"]},
    },
}


def ask(text: str, system: str = SYSTEM) -> list[ChatCompletionMessageParam]:
    """Return a conversation of one question."""
    return [{"role": "system", "content": system}, {"role": "user", "content": text}]


def say(openai: OpenAI, text: str) -> bytes:
    """Return a WAV of the spoken text."""
    return openai.audio.speech.create(model="piper", voice="joe", input=text, response_format="wav").content


def as_wav(samples: Any) -> bytes:
    """Return a WAV at 16 kHz of samples from -1 to 1."""
    out = io.BytesIO()
    with wave.open(out, "wb") as stream:
        stream.setnchannels(1)
        stream.setsampwidth(2)
        stream.setframerate(audio.RATE)
        stream.writeframes((samples * 32_767).astype("<i2").tobytes())
    return out.getvalue()


def plain(text: str) -> str:
    """Return only letters and digits, in lower case."""
    return " ".join(re.findall(r"[a-z0-9]+", text.lower()))


def test_what_is_spoken_is_understood(openai: OpenAI) -> None:
    text = "I would like to book a table for four people on Friday evening."
    said = openai.audio.transcriptions.create(model="whisper", language="en", file=("a.wav", say(openai, text)))
    assert shared_words(text, said.text) >= 0.8, "no two renderings of the voice are alike"


def test_a_long_recording_is_understood_to_its_end(openai: OpenAI) -> None:
    sentence = "The quick brown fox jumps over the lazy dog, and the dog does not mind at all. "
    recording = say(openai, sentence * 8 + "This was the last sentence.")
    said = openai.audio.transcriptions.create(model="whisper", language="en", file=("a.wav", recording), response_format="verbose_json")
    assert float(said.duration) > 30
    assert "last sentence" in plain(said.text)


def test_an_encoder_cut_to_the_recording_reads_less_than_30_seconds(openai: OpenAI) -> None:
    said = openai.audio.transcriptions.create(
        model="whisper", language="en", file=("a.wav", say(openai, "Please close the window, it is cold.")), response_format="verbose_json"
    )
    extra = said.model_extra or {}
    assert extra["frames"] < 1_000
    assert extra["avg_logprob"] > -0.8


@pytest.mark.parametrize("kind", ["silence", "hiss", "tone", "hum"])
def test_silence_and_noise_have_no_words(http: httpx.Client, kind: str) -> None:
    time_s = np.arange(2 * audio.RATE) / audio.RATE
    samples = {
        "silence": np.zeros(time_s.size),
        "hiss": np.random.default_rng(1).normal(0, 0.05, time_s.size),
        "tone": 0.2 * np.sin(2 * np.pi * 440 * time_s),
        "hum": 0.1 * np.sin(2 * np.pi * 50 * time_s),
    }[kind]
    answer = http.post("/v1/audio/transcriptions", files={"file": ("a.wav", as_wav(samples))}, data={"model": "whisper"})
    assert answer.json() == {"text": ""}


def test_a_turn_that_is_over_is_told_from_one_that_was_cut(openai: OpenAI, http: httpx.Client) -> None:
    samples = audio.decode(say(openai, "Remember that my car is on level three."))
    voiced = samples[: np.flatnonzero(np.abs(samples) > 0.01)[-1]]

    def turn(part: Any) -> dict[str, Any]:
        answer: dict[str, Any] = http.post("/v1/audio/turns", files={"file": ("a.wav", as_wav(part))}).raise_for_status().json()
        return answer

    whole, cut = turn(voiced), turn(voiced[: int(voiced.size * 0.75)])
    assert whole["complete"] is True
    assert cut["complete"] is False
    assert cut["probability"] < whole["probability"]


def test_speech_streams_as_24_khz_pcm(openai: OpenAI) -> None:
    text = "This is the first sentence. And here comes a second one, which is somewhat longer than the first."
    started, arrivals, size = time.monotonic(), [], 0
    with openai.audio.speech.with_streaming_response.create(model="piper", voice="joe", input=text, response_format="pcm") as answer:
        assert answer.headers["x-sample-rate"] == "24000"
        for chunk in answer.iter_bytes():
            arrivals.append(time.monotonic() - started)
            size += len(chunk)
    assert size % 2 == 0
    assert 3 < size / 2 / 24_000 < 12
    assert len(arrivals) > 1
    assert arrivals[0] < arrivals[-1]


def test_speed_shortens_speech(openai: OpenAI) -> None:
    def seconds(speed: float) -> float:
        body = openai.audio.speech.create(
            model="piper", voice="joe", input="One two three four five six.", response_format="pcm", speed=speed
        )
        return len(body.content) / 48_000

    assert seconds(2.0) < 0.75 * seconds(1.0)


def test_the_two_voices_sound_unlike_and_say_the_same_in_the_same_time(openai: OpenAI) -> None:
    text = "The wind had been asleep for a hundred years. Then a girl whistled, and it opened one eye."
    spoken = {
        voice: openai.audio.speech.create(model="piper", voice=voice, input=text, response_format="wav").content
        for voice in ("joe", "jamie")
    }
    heard = {voice: audio.decode(wav) for voice, wav in spoken.items()}
    assert 1.1 < pitch_of(heard["jamie"]) / pitch_of(heard["joe"]) < 1.4
    assert 0.8 < heard["jamie"].size / heard["joe"].size < 1.2
    for wav in spoken.values():
        said = openai.audio.transcriptions.create(model="whisper", file=("said.wav", wav)).text
        assert shared_words(text, said) >= 0.75, "no two renderings of a voice are alike, and numbers may be written as digits"


def pitch_of(samples: audio.Samples) -> float:
    """Return the median pitch of a voice in Hz, by autocorrelation of 40 ms windows."""
    size, low, high = audio.RATE // 25, audio.RATE // 60, audio.RATE // 400
    found = []
    for start in range(0, samples.size - size, size // 2):
        piece = samples[start : start + size].astype(np.float64)
        alike = np.correlate(piece, piece, "full")[size - 1 :]
        lag = high + int(np.argmax(alike[high:low]))
        if alike[0] > size * 1e-3 and alike[lag] > 0.5 * alike[0]:
            found.append(audio.RATE / lag)
    return float(np.median(found))


def test_piper_is_started_again_when_it_dies(openai: OpenAI, models_service: RunningModels) -> None:
    before = say(openai, "Before.")
    os.kill(piper_pid(models_service), signal.SIGKILL)
    after = say(openai, "After.")
    assert len(before) > 1_000
    assert len(after) > 1_000


def piper_pid(service: RunningModels) -> int:
    """Return the process id of the service's Piper."""
    import psutil

    children = psutil.Process(service.process.pid).children(recursive=True)
    return next(child.pid for child in children if "piper.http_server" in child.cmdline())


def test_words_stream_token_by_token_with_usage_at_the_end(openai: OpenAI) -> None:
    stream = openai.chat.completions.create(
        model="local",
        messages=ask("Name three colours."),
        stream=True,
        stream_options={"include_usage": True},
        max_tokens=40,
        temperature=0,
    )
    chunks = list(stream)
    words = [chunk.choices[0].delta.content for chunk in chunks if chunk.choices and chunk.choices[0].delta.content]
    assert len(words) > 3
    assert [chunk.choices[0].finish_reason for chunk in chunks if chunk.choices][-1] in {"stop", "length"}
    usage = chunks[-1].usage
    assert usage is not None
    assert usage.completion_tokens >= len(words)
    assert usage.total_tokens == usage.prompt_tokens + usage.completion_tokens


def test_a_tool_is_called_with_arguments_that_fit_and_its_result_is_spoken(openai: OpenAI) -> None:
    messages = ask("Set a timer for ten seconds.")
    first = openai.chat.completions.create(model="local", messages=messages, tools=[TIMER, CLOCK], temperature=0)
    assert first.choices[0].finish_reason == "tool_calls"
    call = (first.choices[0].message.tool_calls or [])[0]
    assert call.type == "function"
    assert call.function.name == "set_timer"
    assert json.loads(call.function.arguments)["seconds"] == 10
    made: ChatCompletionMessageFunctionToolCallParam = {
        "id": call.id,
        "type": "function",
        "function": {"name": call.function.name, "arguments": call.function.arguments},
    }
    messages.append({"role": "assistant", "tool_calls": [made]})
    messages.append({"role": "tool", "tool_call_id": call.id, "content": '{"timer": "started", "seconds": 10}'})
    second = openai.chat.completions.create(model="local", messages=messages, tools=[TIMER, CLOCK], temperature=0)
    assert second.choices[0].finish_reason == "stop"
    assert "10" in (second.choices[0].message.content or "") or "ten" in (second.choices[0].message.content or "").lower()


def test_a_streamed_call_names_the_tool_first_and_its_arguments_add_up(openai: OpenAI) -> None:
    stream = openai.chat.completions.create(
        model="local", messages=ask("What time is it in Tokyo?"), tools=[TIMER, CLOCK], temperature=0, stream=True
    )
    calls = [call for chunk in stream for call in (chunk.choices[0].delta.tool_calls or [])]
    assert calls[0].id
    assert calls[0].function is not None
    assert calls[0].function.name == "current_time"
    assert "tokyo" in json.loads("".join(call.function.arguments or "" for call in calls if call.function))["place"].lower()


def test_a_greeting_is_answered_in_words_although_there_are_tools(openai: OpenAI) -> None:
    answer = openai.chat.completions.create(model="local", messages=ask("Hello!"), tools=[TIMER, CLOCK], temperature=0)
    assert answer.choices[0].message.tool_calls is None
    assert answer.choices[0].message.content


def test_the_choice_of_a_tool_can_be_forced_and_forbidden(openai: OpenAI) -> None:
    forced = openai.chat.completions.create(
        model="local",
        messages=ask("Hello!"),
        tools=[TIMER, CLOCK],
        tool_choice={"type": "function", "function": {"name": "set_timer"}},
        temperature=0,
    )
    call = (forced.choices[0].message.tool_calls or [])[0]
    assert call.type == "function"
    assert call.function.name == "set_timer"
    assert json.loads(call.function.arguments)["seconds"] >= 0
    forbidden = openai.chat.completions.create(
        model="local", messages=ask("Set a timer for ten seconds."), tools=[TIMER], tool_choice="none", temperature=0, max_tokens=24
    )
    assert forbidden.choices[0].message.tool_calls is None


@pytest.mark.parametrize(
    "schema",
    [
        {
            "type": "object",
            "properties": {"city": {"type": "string"}, "kind": {"enum": ["town", "city"]}, "million": {"type": "number"}},
            "required": ["city", "kind", "million"],
        },
        {
            "type": "object",
            "properties": {"names": {"type": "array", "items": {"type": "string", "maxLength": 20}, "maxItems": 3}},
            "required": ["names"],
        },
        {"type": "object", "properties": {'quo"te ä': {"type": ["integer", "null"]}}, "required": ['quo"te ä']},
        {
            "$defs": {
                "point": {"type": "object", "properties": {"x": {"type": "integer"}, "y": {"type": "integer"}}, "required": ["x", "y"]}
            },
            "type": "object",
            "properties": {"from": {"$ref": "#/$defs/point"}, "to": {"anyOf": [{"$ref": "#/$defs/point"}, {"type": "null"}]}},
            "required": ["from", "to"],
        },
    ],
    ids=["scalars", "array", "odd names", "references"],
)
def test_json_fits_its_schema(openai: OpenAI, schema: dict[str, Any]) -> None:
    answer = openai.chat.completions.create(
        model="local",
        messages=ask("Describe Paris."),
        response_format={"type": "json_schema", "json_schema": {"name": "it", "schema": schema}},
        temperature=0,
        max_tokens=120,
    )
    value = json.loads(answer.choices[0].message.content or "")
    assert set(schema["required"]) <= set(value) <= set(schema["properties"])


def test_a_cancelled_answer_frees_its_slot_at_once(openai: OpenAI, http: httpx.Client) -> None:
    stream = openai.chat.completions.create(
        model="local", messages=ask("Write a very long story about the sea."), stream=True, max_tokens=2_000
    )
    for _ in range(5):
        next(iter(stream))
    assert requests_at(http, "llm") == 1
    stream.close()
    started = time.monotonic()
    again = openai.chat.completions.create(model="local", messages=ask("Say yes."), max_tokens=2)
    assert again.choices[0].message.content
    assert time.monotonic() - started < 5
    assert requests_at(http, "llm") == 0


def test_an_answer_cancelled_before_its_first_word_frees_its_slot_too(
    models_service: RunningModels, openai: OpenAI, http: httpx.Client
) -> None:
    body = {"model": "local", "messages": ask("Hi.", system="Read this. " * 800), "stream": True}
    with pytest.raises(httpx.ReadTimeout):
        httpx.post(f"{models_service.base_url}/chat/completions", json=body, timeout=httpx.Timeout(10, read=0.5))
    started = time.monotonic()
    openai.chat.completions.create(model="local", messages=ask("Say yes."), max_tokens=2)
    assert time.monotonic() - started < 15
    assert requests_at(http, "llm") == 0


def requests_at(http: httpx.Client, role: str) -> float:
    """Return the number of running and waiting requests for a role."""
    found = re.search(rf'voxbridge_model_requests{{role="{role}"}} ([\d.]+)', http.get("/metrics").text)
    assert found
    return float(found[1])


def test_a_warm_prefix_is_not_read_again(openai: OpenAI) -> None:
    system = "You are the voice of a small museum. " + "Visitors ask you about paintings, opening hours and the way to the café. " * 6
    openai.chat.completions.create(model="local", messages=ask("Hello.", system), max_tokens=1)
    warm = openai.chat.completions.create(model="local", messages=ask("Where are the paintings?", system), max_tokens=1)
    assert warm.usage is not None
    assert warm.usage.prompt_tokens_details is not None
    assert (warm.usage.prompt_tokens_details.cached_tokens or 0) > 0.8 * warm.usage.prompt_tokens


def test_a_transcription_does_not_wait_for_a_long_answer(openai: OpenAI) -> None:
    recording = say(openai, "What time is it in Tokyo?")
    stream = openai.chat.completions.create(
        model="local", messages=ask("Write a very long story about the sea."), stream=True, max_tokens=2_000
    )
    next(iter(stream))
    started = time.monotonic()
    said = openai.audio.transcriptions.create(model="whisper", language="en", file=("a.wav", recording))
    took = time.monotonic() - started
    stream.close()
    assert "tokyo" in said.text.lower()
    assert took < 10


def test_a_conversation_longer_than_the_context_is_refused(openai: OpenAI) -> None:
    with pytest.raises(APIStatusError) as refused:
        openai.chat.completions.create(model="local", messages=ask("word " * 8_000))
    assert refused.value.status_code == 413
    assert refused.value.body["code"] == "TOO_LARGE"  # type: ignore[index]
    assert "4,096 tokens" in str(refused.value)


@pytest.mark.parametrize(
    ("path", "body", "status", "code", "field"),
    [
        ("/v1/chat/completions", {"model": "gpt-9", "messages": [{"role": "user", "content": "x"}]}, 404, "NOT_FOUND", "model"),
        ("/v1/chat/completions", {"messages": []}, 400, "INVALID_ARGUMENT", "messages"),
        ("/v1/chat/completions", {"messages": [{"role": "nobody", "content": "x"}]}, 400, "INVALID_ARGUMENT", "messages.0.role"),
        ("/v1/chat/completions", {"messages": [{"role": "user", "content": "x"}], "max_tokens": 0}, 400, "INVALID_ARGUMENT", "max_tokens"),
        (
            "/v1/chat/completions",
            {"messages": [{"role": "user", "content": "x"}], "tools": [TIMER, TIMER]},
            400,
            "INVALID_ARGUMENT",
            "tools",
        ),
        ("/v1/audio/speech", {"input": ""}, 400, "INVALID_ARGUMENT", "input"),
        ("/v1/audio/speech", {"input": "x" * 4_097}, 400, "INVALID_ARGUMENT", "input"),
        ("/v1/audio/speech", {"input": "x", "voice": "nobody"}, 400, "INVALID_ARGUMENT", "voice"),
        ("/v1/audio/speech", {"input": "x", "response_format": "mp3"}, 400, "INVALID_ARGUMENT", "response_format"),
        ("/v1/audio/speech", {"input": "x", "speed": 5}, 400, "INVALID_ARGUMENT", "speed"),
        ("/v1/nothing", {}, 404, "NOT_FOUND", None),
    ],
)
def test_a_wrong_request_is_answered_with_its_field(
    http: httpx.Client, path: str, body: dict[str, Any], status: int, code: str, field: str | None
) -> None:
    answer = http.post(path, json=body)
    assert answer.status_code == status
    error = answer.json()["error"]
    assert error["code"] == code
    assert error["param"] == field
    assert error["type"] == "invalid_request_error"
    assert error["message"]


def test_a_recording_that_is_none_and_a_language_that_is_none_are_refused(http: httpx.Client) -> None:
    none = http.post("/v1/audio/transcriptions", files={"file": ("a.wav", b"none")}, data={"model": "whisper"})
    assert (none.status_code, none.json()["error"]["param"]) == (400, "file")
    samples = 0.1 * np.sin(np.arange(audio.RATE) / 10)
    wrong = http.post("/v1/audio/transcriptions", files={"file": ("a.wav", as_wav(samples))}, data={"model": "whisper", "language": "xx"})
    assert (wrong.status_code, wrong.json()["error"]["param"]) == (400, "language")


def test_too_large_a_body_is_refused_before_it_is_read(http: httpx.Client) -> None:
    answer = http.post("/v1/audio/turns", files={"file": ("a.wav", bytes(10 << 20))})
    assert answer.status_code == 413
    assert answer.json()["error"]["code"] == "TOO_LARGE"


@pytest.mark.parametrize("headers", [{"Origin": "http://127.0.0.1:8420"}, {"Host": "models.example"}])
def test_pages_and_foreign_names_are_refused(http: httpx.Client, headers: dict[str, str]) -> None:
    answer = http.get("/v1/models", headers=headers)
    assert answer.status_code == 403
    assert answer.json()["error"]["code"] == "FORBIDDEN_ORIGIN"


def test_health_readiness_models_metrics_and_the_api_document(http: httpx.Client, openai: OpenAI) -> None:
    health = http.get("/healthz").json()
    assert health["status"] == "ok"
    assert health["late"] == "" or health["late"].startswith("the machine is busy (load ")
    ready = http.get("/readyz").json()
    assert ready["ready"] is True
    assert {model["state"] for model in ready["models"].values()} == {"ready"}
    assert {"whisper-base", "qwen2.5-coder-1.5b", "piper-joe", "smart-turn"} <= {model.id for model in openai.models.list()}
    assert "voxbridge_model_seconds_bucket" in http.get("/metrics").text
    assert "/v1/audio/turns" in http.get("/openapi.json").json()["paths"]


def test_every_voice_that_is_listed_can_be_asked_for(http: httpx.Client) -> None:
    listed = [voice["id"] for model in http.get("/v1/models").json()["data"] for voice in model.get("voices", ())]
    assert listed == ["joe", "jamie"]
    for voice in listed:
        answer = http.post("/v1/audio/speech", json={"model": "piper", "input": "Yes.", "voice": voice, "response_format": "pcm"})
        assert answer.status_code == 200
        assert len(answer.content) > 4_800
