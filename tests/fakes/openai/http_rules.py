"""Requests that OpenAI's HTTP service refuses, with approximately its messages: chat completions, transcriptions and speech.

From the API reference and the types of the SDK: fields, ranges, formats, voices, models of each path. From reported errors: the wording,
the rule that every call needs an answer, `max_tokens` and sampling on reasoning models, the shortest recording, language codes. None of it
was seen in a live run.
"""

from __future__ import annotations

import io
import re
import wave
from email.parser import BytesParser
from email.policy import HTTP
from typing import Any, Final

from tests.fakes.sse import Request

CHAT: Final = "/v1/chat/completions"
HEARING: Final = "/v1/audio/transcriptions"
SPEECH: Final = "/v1/audio/speech"

CHAT_MODELS: Final = ("gpt-6-luna", "gpt-5.1", "gpt-4o-mini")
STT_MODELS: Final = ("gpt-transcribe", "gpt-4o-transcribe", "gpt-4o-mini-transcribe", "whisper-1")
TTS_MODELS: Final = ("gpt-4o-mini-tts", "tts-1", "tts-1-hd")
VOICES: Final = ("alloy", "ash", "ballad", "cedar", "coral", "echo", "fable", "marin", "nova", "onyx", "sage", "shimmer", "verse")
INPUT_LIMIT: Final = 4_096
FILE_LIMIT: Final = 25 * 1024 * 1024
SHORTEST_S: Final = 0.1

_REASONING: Final = ("gpt-5", "gpt-6")
_CHAT: Final = {
    *(
        "model",
        "messages",
        "tools",
        "tool_choice",
        "parallel_tool_calls",
        "stream",
        "stream_options",
        "max_tokens",
        "max_completion_tokens",
    ),
    *("temperature", "top_p", "reasoning_effort", "response_format", "seed", "stop", "n", "user", "metadata", "store", "service_tier"),
    *("frequency_penalty", "presence_penalty", "logprobs", "top_logprobs", "logit_bias", "verbosity", "prompt_cache_key"),
}
_SPEECH: Final = {"model", "input", "voice", "instructions", "response_format", "speed", "stream_format"}
_HEARING: Final = {
    *("file", "model", "language", "prompt", "response_format", "temperature", "stream", "chunking_strategy", "include[]"),
    "timestamp_granularities[]",
}
_MESSAGES: Final = {
    "system": {"role", "content", "name"},
    "developer": {"role", "content", "name"},
    "user": {"role", "content", "name"},
    "assistant": {"role", "content", "name", "refusal", "tool_calls"},
    "tool": {"role", "content", "tool_call_id"},
}


class Refusal(Exception):
    """A request that the service refuses."""

    def __init__(self, message: str, param: str | None = None, code: str | None = None, status: int = 400) -> None:
        super().__init__(message)
        self.message = message
        self.param = param
        self.code = code
        self.status = status


def check(request: Request, key: str) -> None:
    """Raise `Refusal` for a request that is wrong."""
    given = request.headers.get("authorization", "").removeprefix("Bearer ")
    if not given:
        raise Refusal("You didn't provide an API key.", status=401)
    if given != key:
        raise Refusal(f"Incorrect API key provided: {given[:8]}****{given[-4:]}.", code="invalid_api_key", status=401)
    match request.path:
        case "/v1/chat/completions":
            _chat(request.body)
        case "/v1/audio/speech":
            _speech(request.body)
        case "/v1/audio/transcriptions":
            _hearing(form(request))
        case path:
            raise Refusal(f"Invalid URL (POST {path})", status=404)


def form(request: Request) -> dict[str, Any]:
    """Return the fields of a form: text, and bytes for a file."""
    kind = request.headers.get("content-type", "")
    _want(kind.startswith("multipart/form-data"), "Invalid body: failed to parse multipart/form-data.")
    head = f"content-type: {kind}\r\n\r\n".encode()
    found: dict[str, Any] = {}
    for part in BytesParser(policy=HTTP).parsebytes(head + request.content).iter_parts():
        name = str(part.get_param("name", header="content-disposition"))
        content = part.get_payload(decode=True)
        if not isinstance(content, bytes):
            raise Refusal("Invalid body: failed to parse multipart/form-data.")
        found[name] = content if part.get_filename() else content.decode()
    return found


def _want(right: bool, message: str, param: str | None = None, code: str | None = None) -> None:
    if not right:
        raise Refusal(message, param, code)


def _known(given: dict[str, Any], allowed: set[str], path: str = "") -> None:
    for name in given:
        _want(name in allowed, f"Unrecognized request argument supplied: {path}{name}", code="unknown_parameter")


def _model(model: Any, known: tuple[str, ...]) -> None:
    _want(isinstance(model, str) and bool(model), "you must provide a model parameter")
    if model not in known:
        raise Refusal(f"The model `{model}` does not exist or you do not have access to it.", code="model_not_found", status=404)


def _one_of(given: dict[str, Any], name: str, known: tuple[str, ...]) -> None:
    if name in given:
        expected = ", ".join(f"'{one}'" for one in known)
        _want(given[name] in known, f"Invalid value: '{given[name]}'. Supported values are: {expected}.", name, "invalid_value")


def _between(given: dict[str, Any], name: str, least: float, most: float) -> None:
    if name in given:
        _want(least <= float(given[name]) <= most, f"Invalid '{name}': expected a value between {least} and {most}.", name)


def _speech(body: dict[str, Any]) -> None:
    _known(body, _SPEECH)
    _model(body.get("model"), TTS_MODELS)
    text = body.get("input")
    _want(isinstance(text, str) and bool(text), "Invalid 'input': string too short. Expected a string with minimum length 1.", "input")
    _want(
        len(str(text)) <= INPUT_LIMIT,
        f"Invalid 'input': string too long. Expected at most {INPUT_LIMIT}.",
        "input",
        "string_above_max_length",
    )
    _want("voice" in body, "Missing required parameter: 'voice'.", "voice", "missing_required_parameter")
    _one_of(body, "voice", VOICES)
    _one_of(body, "response_format", ("mp3", "opus", "aac", "flac", "wav", "pcm"))
    _one_of(body, "stream_format", ("audio", "sse"))
    _between(body, "speed", 0.25, 4)


def _hearing(fields: dict[str, Any]) -> None:
    _known(fields, _HEARING)
    model = fields.get("model")
    _model(model, STT_MODELS)
    content = fields.get("file")
    _want(isinstance(content, bytes), "Invalid type for 'file': expected a file.", "file", "invalid_type")
    if len(content or b"") > FILE_LIMIT:
        raise Refusal(f"Maximum content size limit ({FILE_LIMIT}) exceeded", "file", status=413)
    _want(
        _seconds(content or b"") >= SHORTEST_S,
        f"Audio file is too short. Minimum audio length is {SHORTEST_S} seconds.",
        "file",
        "audio_too_short",
    )
    formats = ("json", "text", "srt", "verbose_json", "vtt") if model == "whisper-1" else ("json",)
    given = fields.get("response_format", "json")
    _want(given in formats, f"response_format '{given}' is not compatible with model '{model}'.", "response_format", "unsupported_value")
    language = fields.get("language", "en")
    known = re.fullmatch(r"[a-z]{2,3}", language) is not None
    _want(
        known,
        f"Invalid language '{language}'. Language parameter must be specified in ISO-639-1 format.",
        "language",
        "invalid_language_format",
    )
    _between(fields, "temperature", 0, 1)


def _seconds(content: bytes) -> float:
    try:
        with wave.open(io.BytesIO(content)) as recording:
            return float(recording.getnframes() / recording.getframerate())
    except (wave.Error, EOFError):
        raise Refusal(
            "Invalid file format. Supported formats: ['flac', 'm4a', 'mp3', 'mp4', 'mpeg', 'mpga', 'oga', 'ogg', 'wav', 'webm']"
        ) from None


def _chat(body: dict[str, Any]) -> None:
    _known(body, _CHAT)
    model = body.get("model")
    _model(model, CHAT_MODELS)
    if str(model).startswith(_REASONING):
        _want(
            "max_tokens" not in body,
            "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.",
            "max_tokens",
            "unsupported_parameter",
        )
        _want(
            body.get("temperature", 1) == 1,
            "Unsupported value: 'temperature' does not support this value with this model.",
            "temperature",
            "unsupported_value",
        )
        _one_of(body, "reasoning_effort", ("none", "minimal", "low", "medium", "high", "xhigh"))
    else:
        _want("reasoning_effort" not in body, "Unrecognized request argument supplied: reasoning_effort", code="unknown_parameter")
    _between(body, "temperature", 0, 2)
    _want(
        "stream_options" not in body or body.get("stream") is True,
        "The 'stream_options' parameter is only allowed when 'stream' is enabled.",
        "stream_options",
    )
    tools = body.get("tools")
    _want(tools is None or bool(tools), "Invalid 'tools': empty array. Expected an array with minimum length 1.", "tools", "empty_array")
    _tools(tools or [])
    _messages(body.get("messages"))


def _tools(tools: list[dict[str, Any]]) -> None:
    for index, tool in enumerate(tools):
        path = f"tools[{index}]"
        _known(tool, {"type", "function"}, f"{path}.")
        _want(tool.get("type") == "function", f"Invalid value: '{tool.get('type')}'.", f"{path}.type", "invalid_value")
        function = tool.get("function") or {}
        _known(function, {"name", "description", "parameters", "strict"}, f"{path}.function.")
        named = re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", str(function.get("name", ""))) is not None
        _want(named, f"Invalid '{path}.function.name': string does not match pattern.", f"{path}.function.name", "invalid_value")
        kind = function.get("parameters", {"type": "object"}).get("type")
        wrong = f"Invalid schema for function '{function.get('name')}': schema must be of type 'object', got '{kind}'."
        _want(kind == "object", wrong, path, "invalid_function_parameters")


def _messages(messages: Any) -> None:
    _want(isinstance(messages, list) and bool(messages), "Invalid 'messages': empty array.", "messages", "empty_array")
    open_calls: list[str] = []
    for index, message in enumerate(messages):
        path = f"messages.[{index}]"
        role = message.get("role")
        _want(
            role in _MESSAGES,
            f"Invalid value: '{role}'. Supported values are: 'system', 'assistant', 'user', 'tool' and 'developer'.",
            f"{path}.role",
            "invalid_value",
        )
        _known(message, _MESSAGES[role], f"{path}.")
        if role == "tool":
            asked = message.get("tool_call_id") in open_calls
            _want(asked, "messages with role 'tool' must be a response to a preceeding message with 'tool_calls'.", f"{path}.role")
            open_calls.remove(message["tool_call_id"])
        else:
            _answered(open_calls)
        if role == "assistant":
            calls = message.get("tool_calls")
            _want(calls is None or bool(calls), f"Invalid '{path}.tool_calls': empty array.", f"{path}.tool_calls", "empty_array")
            open_calls = [call["id"] for call in calls or ()]
            _want(
                bool(calls) or isinstance(message.get("content"), str),
                "Invalid value for 'content': expected a string, got null.",
                f"{path}.content",
            )
        else:
            _want(isinstance(message.get("content"), str), "Invalid value for 'content': expected a string, got null.", f"{path}.content")
    _answered(open_calls)


def _answered(open_calls: list[str]) -> None:
    missing = ", ".join(open_calls)
    _want(
        not open_calls,
        "An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'. "
        f"The following tool_call_ids did not have response messages: {missing}",
        "messages",
    )
