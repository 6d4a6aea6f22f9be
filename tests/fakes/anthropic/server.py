"""A stand-in for Anthropic's `POST /v1/messages`: the same events on the wire, and the same refusals.

`script` sets the answers of the next requests, used in order; after that each gets a short text. A request that breaks a rule of the
service is refused and uses no scripted answer. The rules and their sources are in `tests.fakes.anthropic.rules`.
"""

from __future__ import annotations

import json
import ssl
from collections.abc import Iterable, Iterator
from typing import Any, Final, Self

from tests.fakes.anthropic.rules import Refusal, check
from tests.fakes.sse import Answer, Body, Request, SseServer
from tests.voice.model_server import Fault

KEY: Final = "sk-ant-api03-of-the-tests"
USUAL: Final = ("All right.",)
CACHED_TOKENS: Final = 100
"""Tokens reported for the part of a request that is marked for the cache."""


class Use:
    """A tool call. `input` is written as JSON in so many pieces; a text is sent unchanged, for malformed JSON."""

    def __init__(self, name: str, input: dict[str, Any] | str, *, pieces: int = 1, id: str = "") -> None:
        self.name = name
        self.text = input if isinstance(input, str) else (json.dumps(input) if input else "")
        self.pieces = pieces
        self.id = id


class Thought:
    """A block of thinking."""

    def __init__(self, text: str) -> None:
        self.text = text


class Block:
    """Marker: the next text begins a new block."""


class Stop:
    """Stop reason of the message; without one it is `tool_use` or `end_turn`. `explanation` is that of a refusal."""

    def __init__(self, reason: str, explanation: str = "") -> None:
        self.reason = reason
        self.explanation = explanation


class Status:
    """An HTTP error instead of a message."""

    def __init__(self, code: int, type: str, message: str = "scripted", **headers: str) -> None:
        self.code = code
        self.type = type
        self.message = message
        self.headers = {name.replace("_", "-"): value for name, value in headers.items()}


class Failure:
    """An error event within the stream."""

    def __init__(self, type: str, message: str = "scripted") -> None:
        self.type = type
        self.message = message


class Raw:
    """Raw bytes in the stream."""

    def __init__(self, data: bytes) -> None:
        self.data = data


class End:
    """Marker: the stream is closed cleanly here, without the end of the message."""


Item = str | Use | Thought | Block | Stop | Status | Failure | Raw | End | Fault


class AnthropicServer(SseServer):
    """The service. `strict_roles`: user and assistant must alternate, as the service's older versions and most gateways require."""

    def __init__(self, *, key: str = KEY, strict_roles: bool = True, tls: ssl.SSLContext | None = None) -> None:
        super().__init__(tls)
        self.key = key
        self.refused: list[str] = []
        """Reasons of the refused requests."""

        self._strict_roles = strict_roles
        self._scripts: list[list[Item]] = []
        self._cache: set[str] = set()
        self._paused: Any = None
        self._calls = 0

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()

    def script(self, *answers: Iterable[Item]) -> None:
        """Set the answers of the next requests."""
        self._scripts.extend(list(answer) for answer in answers)

    @property
    def bodies(self) -> list[dict[str, Any]]:
        """Bodies of all requests."""
        return [request.body for request in self.requests]

    def answer(self, request: Request) -> Answer:
        """Refuse the request, or answer as scripted."""
        try:
            check(request, key=self.key, strict_roles=self._strict_roles, paused=self._paused)
        except Refusal as refusal:
            self.refused.append(refusal.message)
            return _error(Status(refusal.status, refusal.type, refusal.message))
        items: list[Item] = self._scripts.pop(0) if self._scripts else [*USUAL]
        if items and isinstance(items[0], Status):
            return _error(items[0])
        if items and items[0] is Fault.DROP:
            return [Fault.DROP]
        return self._message(request, items)

    def _message(self, request: Request, items: list[Item]) -> Iterator[bytes | Fault]:
        yield event("message_start", message=self._start(request))
        yield event("ping")
        blocks: list[dict[str, Any]] = []
        stop: Stop | None = None
        for item in items:
            match item:
                case str():
                    if not blocks or blocks[-1]["type"] != "text":
                        yield from _closed(blocks)
                        yield _opened(blocks, {"type": "text", "text": ""})
                    blocks[-1]["text"] += item
                    yield _delta(blocks, type="text_delta", text=item)
                case Block():
                    yield from _closed(blocks)
                    yield _opened(blocks, {"type": "text", "text": ""})
                case Thought():
                    yield from _closed(blocks)
                    yield _opened(blocks, {"type": "thinking", "thinking": "", "signature": ""})
                    blocks[-1] |= {"thinking": item.text, "signature": "EqQB"}
                    yield _delta(blocks, type="thinking_delta", thinking=item.text)
                    yield _delta(blocks, type="signature_delta", signature="EqQB")
                case Use():
                    yield from _closed(blocks)
                    self._calls += 1
                    id = item.id or f"toolu_{self._calls:04d}"
                    yield _opened(blocks, {"type": "tool_use", "id": id, "name": item.name, "input": {}})
                    for piece in _pieces(item):
                        yield _delta(blocks, type="input_json_delta", partial_json=piece)
                case Failure():
                    yield event("error", error={"type": item.type, "message": item.message})
                    return
                case Raw():
                    yield item.data
                case Fault():
                    yield item
                case End():
                    return
                case Stop():
                    stop = item
        yield from _closed(blocks)
        usual = "tool_use" if any(block["type"] == "tool_use" for block in blocks) else "end_turn"
        reason = stop.reason if stop is not None else usual
        self._paused = blocks if reason == "pause_turn" else None
        details = {"type": "refusal", "category": None, "explanation": stop.explanation} if stop and stop.explanation else None
        delta = {"stop_reason": reason, "stop_sequence": None, "stop_details": details}
        yield event("message_delta", delta=delta, usage={"output_tokens": 3})
        yield event("message_stop")

    def _start(self, request: Request) -> dict[str, Any]:
        marked = [one for one in (*request.body.get("tools", ()), *_blocks(request.body.get("system", ""))) if one.get("cache_control")]
        prefix = json.dumps([request.body["model"], request.body.get("tools"), request.body.get("system")])
        known = prefix in self._cache
        self._cache.add(prefix)
        usage = {
            "input_tokens": 7,
            "cache_creation_input_tokens": CACHED_TOKENS if marked and not known else 0,
            "cache_read_input_tokens": CACHED_TOKENS if marked and known else 0,
            "output_tokens": 1,
        }
        return {
            "id": f"msg_{len(self.requests):04d}",
            "type": "message",
            "role": "assistant",
            "model": request.body["model"],
            "content": [],
            "stop_reason": None,
            "stop_sequence": None,
            "usage": usage,
        }


def event(type: str, **fields: Any) -> bytes:
    """Return an event of the stream."""
    return f"event: {type}\ndata: {json.dumps({'type': type, **fields})}\n\n".encode()


def _opened(blocks: list[dict[str, Any]], block: dict[str, Any]) -> bytes:
    blocks.append(dict(block))
    return event("content_block_start", index=len(blocks) - 1, content_block=block)


def _delta(blocks: list[dict[str, Any]], **delta: Any) -> bytes:
    return event("content_block_delta", index=len(blocks) - 1, delta=delta)


def _closed(blocks: list[dict[str, Any]]) -> Iterator[bytes]:
    if blocks:
        yield event("content_block_stop", index=len(blocks) - 1)


def _pieces(use: Use) -> list[str]:
    step = max(1, -(-len(use.text) // use.pieces))
    return ["", *(use.text[at : at + step] for at in range(0, len(use.text), step))]


def _blocks(system: Any) -> list[dict[str, Any]]:
    return system if isinstance(system, list) else []


def _error(status: Status) -> Body:
    body = {"type": "error", "error": {"type": status.type, "message": status.message}, "request_id": "req_0001"}
    return Body(status.code, body, {"request-id": "req_0001", **status.headers})
