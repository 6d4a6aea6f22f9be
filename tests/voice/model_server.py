"""A stand-in for the models' endpoints: OpenAI's HTTP API on loopback, with scripted answers.

Scripted answers of a part are used in order; after that every request gets the part's usual answer.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Iterable
from contextlib import suppress
from enum import Enum
from typing import Any, Final, Self

from tests.eventually import BOUND_S
from voxbridge.shared.audio.frames import OUTPUT_RATE

PARTS: Final = {
    "/v1/audio/transcriptions": "stt",
    "/v1/chat/completions": "llm",
    "/v1/audio/speech": "tts",
    "/v1/audio/turns": "turn",
}
READY: Final = "/readyz"
"""Path of the readiness check, which always succeeds."""

_NO_SOUND: Final = 1_000
"""Bytes of a request: longer than one with a WAV file without samples."""

USUAL: Final[dict[str, list[Any]]] = {"stt": ["Hello there."], "llm": ["All right."], "tts": [200], "turn": [0.9]}


_FIELD = re.compile(rb'name="(\w+)"\r\n\r\n([^\r]*)\r\n')


class Fault(Enum):
    """Faults of a server in place of an answer."""

    HANG = "says nothing more"
    DROP = "cuts the connection"


class Status:
    """An HTTP error."""

    def __init__(self, code: int, message: str = "scripted") -> None:
        self.code = code
        self.body = json.dumps({"error": {"message": message, "type": "scripted"}}).encode()


class Raw:
    """Raw bytes of a body."""

    def __init__(self, body: bytes, kind: str = "application/json") -> None:
        self.body = body
        self.kind = kind


def call(name: str, arguments: str, *, index: int = 0, pieces: int = 1) -> list[dict[str, Any]]:
    """Return the deltas of a tool call whose arguments come in so many pieces."""
    step = max(1, -(-len(arguments) // pieces))
    parts = [arguments[at : at + step] for at in range(0, len(arguments), step)] or [""]
    head = {"index": index, "id": f"call_{index}", "type": "function", "function": {"name": name, "arguments": parts[0]}}
    rest = [{"index": index, "function": {"arguments": part}} for part in parts[1:]]
    return [{"tool_calls": [one]} for one in [head, *rest]]


class ModelServer:
    """The server of all four parts on one port. `url` is the base URL for OpenAI's clients."""

    def __init__(self) -> None:
        self.url = ""
        self.requests: list[tuple[str, dict[str, Any]]] = []
        self.heard: list[int] = []
        """Approximate ms of audio of each transcription."""

        self.usual = dict(USUAL)
        """Answers of each part to a request that has none in the script."""

        self.running = 0
        self._scripts: dict[str, list[list[Any]]] = {part: [] for part in USUAL}
        self._server: asyncio.Server | None = None
        self._connections: set[asyncio.Task[None]] = set()
        self._asked = asyncio.Condition()
        self._released = asyncio.Event()

    def script(self, part: str, *answers: Iterable[Any]) -> None:
        """Set the answers of the next requests to a part: lists of texts, deltas (dict), ms of audio (tts), `Status`, `Fault`, `Raw`."""
        self._scripts[part].extend(list(answer) for answer in answers)

    def release(self) -> None:
        """End the hanging answers."""
        self._released.set()

    def asked(self, part: str) -> list[dict[str, Any]]:
        """Return the JSON bodies of the requests to a part, without those of one token; of a form its fields, without the file."""
        return [body for where, body in self.requests if where == part and body.get("max_tokens") != 1]

    async def until_asked(self, part: str, count: int = 1) -> None:
        """Wait until a part got so many requests."""
        async with asyncio.timeout(BOUND_S), self._asked:
            await self._asked.wait_for(lambda: len(self.asked(part)) >= count)

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        self.url = f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}/v1"
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._server is not None
        self._server.close()
        for task in list(self._connections):
            task.cancel()
        await asyncio.gather(*self._connections, return_exceptions=True)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._connections.add(task)
        try:
            with suppress(ConnectionError, asyncio.IncompleteReadError):
                while await self._one(reader, writer):
                    pass
        except asyncio.CancelledError:
            pass
        finally:
            self._connections.discard(task)
            writer.close()

    async def _one(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        path = head.split(" ", 2)[1]
        length = next((int(line.split(":")[1]) for line in head.splitlines() if line.lower().startswith("content-length:")), 0)
        payload = await reader.readexactly(length)
        form = {name.decode(): value.decode() for name, value in _FIELD.findall(payload)}
        body = json.loads(payload) if payload.startswith(b"{") else form
        if path == READY:
            writer.write(_head(200, "application/json", "content-length: 13") + b'{"models":{}}')
            await writer.drain()
            return True
        part = PARTS.get(path)
        if part is None:
            return await self._answer(writer, "", [Status(404, f"There is no {path} here.")], stream=False)
        if part == "stt":
            self.heard.append(length // 32)
        async with self._asked:
            self.requests.append((part, body))
            self._asked.notify_all()
        warming = body.get("max_tokens") == 1
        scripted = self._scripts[part]
        answer = scripted.pop(0) if scripted and not warming else self.usual[part]
        if part in ("stt", "turn") and length < _NO_SOUND:
            answer = [Status(400, "The recording has no samples.")]
        self.running += 1
        try:
            return await self._answer(writer, part, answer, stream=bool(body.get("stream")))
        finally:
            self.running -= 1

    async def _answer(self, writer: asyncio.StreamWriter, part: str, answer: list[Any], *, stream: bool) -> bool:
        first = answer[0] if answer else None
        if isinstance(first, Status | Raw):
            status, kind = (first.code, "application/json") if isinstance(first, Status) else (200, first.kind)
            writer.write(_head(status, kind, f"content-length: {len(first.body)}") + first.body)
            await writer.drain()
            return True
        if isinstance(first, Fault):
            return await self._fault(writer, first)
        kinds = {"llm": "text/event-stream" if stream else "application/json", "tts": "audio/pcm"}
        writer.write(_head(200, kinds.get(part, "application/json"), "transfer-encoding: chunked"))
        for item in answer:
            if isinstance(item, Fault):
                return await self._fault(writer, item)
            _chunk(writer, item.body if isinstance(item, Raw) else _body(part, item, stream=stream))
            await writer.drain()
        if part == "llm" and stream:
            _chunk(writer, _event({"choices": [], "usage": {"prompt_tokens": 7, "completion_tokens": 3, "total_tokens": 10}}))
            _chunk(writer, b"data: [DONE]\n\n")
        writer.write(b"0\r\n\r\n")
        await writer.drain()
        return True

    async def _fault(self, writer: asyncio.StreamWriter, fault: Fault) -> bool:
        if fault is Fault.HANG:
            await writer.drain()
            await self._released.wait()
        writer.transport.abort()
        return False


def _head(status: int, kind: str, length: str) -> bytes:
    return f"HTTP/1.1 {status} Scripted\r\ncontent-type: {kind}\r\n{length}\r\n\r\n".encode()


def _chunk(writer: asyncio.StreamWriter, data: bytes) -> None:
    if data:
        writer.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")


def _event(fields: dict[str, Any]) -> bytes:
    frame = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "local", **fields}
    return b"data: " + json.dumps(frame).encode() + b"\n\n"


def _body(part: str, item: Any, *, stream: bool) -> bytes:
    if part == "tts":
        return bytes((16, 32)) * (int(item) * OUTPUT_RATE // 1_000)
    if part == "stt":
        return json.dumps({"text": item}).encode()
    if part == "turn":
        return json.dumps({"probability": item}).encode()
    delta = item if isinstance(item, dict) else {"content": item}
    if stream:
        return _event({"choices": [{"index": 0, "delta": delta, "finish_reason": None}]})
    message = {"role": "assistant", "content": str(item)}
    choice = {"index": 0, "message": message, "finish_reason": "stop"}
    return json.dumps({"id": "c", "object": "chat.completion", "created": 1, "model": "local", "choices": [choice]}).encode()
