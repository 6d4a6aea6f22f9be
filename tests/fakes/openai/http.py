"""A stand-in for OpenAI over HTTP: chat completions, transcriptions and speech, with the same answers on the wire.

`script` sets the answers of the next requests to a path, used in order; after that each gets a short default. A request that breaks a rule
of the service is refused and uses no scripted answer. The rules and their sources are in `tests.fakes.openai.http_rules`. OpenAI Realtime
is a separate service: `tests.fakes.openai.realtime`.
"""

from __future__ import annotations

import json
import math
import ssl
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final, Self

import numpy as np

from tests.fakes.openai.http_rules import CHAT, HEARING, SPEECH, Refusal, check, form
from tests.fakes.sse import Answer, Body, Request, SseServer, Stream
from tests.voice.model_server import Fault

KEY: Final = "sk-proj-of-the-tests"
RATE: Final = 24_000
_PIECE: Final = 4_096
_MS_PER_CHARACTER: Final = 60


class Use:
    """A tool call. `arguments` are written as JSON in so many pieces; a text is sent unchanged, for malformed JSON."""

    def __init__(self, name: str, arguments: dict[str, Any] | str, *, pieces: int = 1, id: str = "") -> None:
        self.name = name
        self.text = arguments if isinstance(arguments, str) else json.dumps(arguments)
        self.pieces = pieces
        self.id = id


class Stop:
    """Finish reason of the answer; without one it is `tool_calls` or `stop`."""

    def __init__(self, reason: str) -> None:
        self.reason = reason


class Status:
    """An HTTP error instead of an answer."""

    def __init__(self, code: int, error: str = "", message: str = "scripted", **headers: str) -> None:
        self.code = code
        self.error = error
        self.message = message
        self.headers = {name.replace("_", "-"): value for name, value in headers.items()}


Item = str | bytes | Use | Stop | Status | Fault


def tone(text: str, voice: str) -> bytes:
    """Return a tone in place of speech: PCM16 at 24 kHz, with a length that depends on the text and a pitch that depends on the voice."""
    pitch = 90 + 10 * (sum(voice.encode()) % 20)
    samples = np.arange(len(text) * _MS_PER_CHARACTER * RATE // 1_000)
    return bytes((np.sin(samples * (2 * math.pi * pitch / RATE)) * 8_000).astype("<i2"))


class OpenAIServer(SseServer):
    """The service. `base_url` is for `OPENAI_BASE_URL`; `speak` makes PCM16 at 24 kHz from a text and a voice."""

    def __init__(self, *, key: str = KEY, speak: Callable[[str, str], bytes] = tone, tls: ssl.SSLContext | None = None) -> None:
        super().__init__(tls)
        self.key = key
        self.speak = speak
        self.refused: list[str] = []
        """Reasons of the refused requests."""

        self._scripts: dict[str, list[list[Item]]] = {CHAT: [], HEARING: [], SPEECH: []}
        self._calls = 0

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()

    @property
    def base_url(self) -> str:
        """Base URL for the SDK."""
        return f"{self.url}/v1"

    def script(self, part: str, *answers: Iterable[Item]) -> None:
        """Set the answers of the next requests to a path: text and calls of a chat, the text of a transcription, speech as bytes."""
        self._scripts[part].extend(list(answer) for answer in answers)

    def asked(self, part: str) -> list[dict[str, Any]]:
        """Return the bodies of the requests to a path, including refused ones; a form is given as its fields."""
        return [form(one) if part == HEARING else one.body for one in self.requests if one.path == part]

    def answer(self, request: Request) -> Answer:
        """Refuse the request, or answer as scripted."""
        try:
            check(request, self.key)
        except Refusal as refusal:
            self.refused.append(refusal.message)
            return _error(refusal.status, refusal.message, refusal.param, refusal.code)
        scripted = self._scripts[request.path]
        items = scripted.pop(0) if scripted else None
        first = items[0] if items else None
        if isinstance(first, Status):
            return _error(first.code, first.message, None, first.error or None, first.headers)
        if isinstance(first, Fault):
            return [first]
        match request.path:
            case "/v1/audio/speech":
                return self._speech(request.body, items)
            case "/v1/audio/transcriptions":
                return _heard(form(request), "".join(str(item) for item in items or ["Hello there."]))
        written = self._written(request.body, items or ["All right."])
        return written if request.body.get("stream") else _whole(request.body, written)

    def _speech(self, body: dict[str, Any], items: list[Item] | None) -> Answer:
        format = body.get("response_format", "mp3")
        if format not in ("pcm", "wav"):
            raise NotImplementedError(f"This stand-in has no encoder for {format}.")
        pieces = items if items is not None else [self.speak(body["input"], body["voice"])]
        return Stream(f"audio/{format}", _sound(pieces, header=_header() if format == "wav" else b""))

    def _written(self, body: dict[str, Any], items: list[Item]) -> Iterator[bytes | Fault]:
        base = {"id": f"chatcmpl-{len(self.requests):04d}", "object": "chat.completion.chunk", "created": 1, "model": body["model"]}
        counts = bool((body.get("stream_options") or {}).get("include_usage"))
        more = {"usage": None} if counts else {}

        def event(delta: dict[str, Any], reason: str | None = None) -> bytes:
            return _event({**base, "choices": [{"index": 0, "delta": delta, "logprobs": None, "finish_reason": reason}], **more})

        yield event({"role": "assistant", "content": ""})
        index, reason = -1, "stop"
        for item in items:
            match item:
                case str():
                    yield event({"content": item})
                case Use():
                    index += 1
                    self._calls += 1
                    reason = "tool_calls"
                    head = {
                        "id": item.id or f"call_{self._calls:04d}",
                        "type": "function",
                        "function": {"name": item.name, "arguments": ""},
                    }
                    yield event({"tool_calls": [{"index": index, **head}]})
                    for piece in _pieces(item):
                        yield event({"tool_calls": [{"index": index, "function": {"arguments": piece}}]})
                case Stop():
                    reason = item.reason
                case bytes() | Fault():
                    yield item
                    if isinstance(item, Fault):
                        return
        yield event({}, reason)
        if counts:
            yield _event({**base, "choices": [], "usage": _usage(body)})
        yield b"data: [DONE]\n\n"


def _usage(body: dict[str, Any]) -> dict[str, Any]:
    asked = len(json.dumps(body["messages"])) // 4
    return {"prompt_tokens": asked, "completion_tokens": 3, "total_tokens": asked + 3}


def _event(fields: dict[str, Any]) -> bytes:
    return b"data: " + json.dumps(fields).encode() + b"\n\n"


def _whole(body: dict[str, Any], events: Iterator[bytes | Fault]) -> Answer:
    """Return the stream as one whole answer."""
    message: dict[str, Any] = {"role": "assistant", "content": None, "refusal": None}
    calls: dict[int, dict[str, Any]] = {}
    choice: dict[str, Any] = {}
    fields: dict[str, Any] = {}
    for event in events:
        if isinstance(event, Fault):
            return [event]
        if b"[DONE]" in event:
            break
        fields = json.loads(event.removeprefix(b"data: "))
        (choice,) = fields["choices"]
        if choice["delta"].get("content"):
            message["content"] = (message["content"] or "") + choice["delta"]["content"]
        for part in choice["delta"].get("tool_calls", ()):
            into = calls.setdefault(part["index"], {name: value for name, value in part.items() if name != "index"})
            if into.get("id") and "id" not in part:
                into["function"]["arguments"] += part["function"]["arguments"]
    if calls:
        message["tool_calls"] = list(calls.values())
    whole = {"index": 0, "message": message, "logprobs": None, "finish_reason": choice["finish_reason"]}
    return Body(200, {**fields, "object": "chat.completion", "choices": [whole], "usage": _usage(body)})


def _heard(fields: dict[str, Any], text: str) -> Body:
    kind = fields.get("response_format", "json")
    if kind == "text":
        return Body(200, f"{text}\n".encode(), {"content-type": "text/plain; charset=utf-8"})
    return Body(200, {"text": text, "usage": {"type": "tokens", "input_tokens": 10, "output_tokens": 5, "total_tokens": 15}})


def _sound(pieces: Iterable[Item], header: bytes) -> Iterator[bytes | Fault]:
    if header:
        yield header
    for piece in pieces:
        if isinstance(piece, bytes):
            yield from (piece[at : at + _PIECE] for at in range(0, len(piece), _PIECE))
        elif isinstance(piece, Fault):
            yield piece
            return


def _header() -> bytes:
    """Return the header of a WAV file of unknown length, as the service streams it."""
    rest = b"WAVEfmt " + b"".join(
        value.to_bytes(size, "little") for value, size in ((16, 4), (1, 2), (1, 2), (RATE, 4), (RATE * 2, 4), (2, 2), (16, 2))
    )
    return b"RIFF\xff\xff\xff\xff" + rest + b"data\xff\xff\xff\xff"


def _pieces(use: Use) -> list[str]:
    step = max(1, -(-len(use.text) // use.pieces))
    return [use.text[at : at + step] for at in range(0, len(use.text), step)]


def _error(status: int, message: str, param: str | None, code: str | None, headers: dict[str, str] | None = None) -> Body:
    kinds = {401: "invalid_request_error", 429: "rate_limit_error"}
    kind = kinds.get(status, "invalid_request_error" if status < 500 else "server_error")
    return Body(status, {"error": {"message": message, "type": kind, "param": param, "code": code}}, headers)
