"""Common HTTP server of the stand-ins for vendors' services: HTTP/1.1 on loopback, with a body or a stream for each request.

A stream is given as the bytes to send, one chunk each, and may contain a `Fault` of `tests.voice.model_server`: silence or a cut.
"""

from __future__ import annotations

import asyncio
import json
import ssl
from collections.abc import Iterable
from contextlib import suppress
from typing import Any

from tests.eventually import BOUND_S
from tests.voice.model_server import Fault


class Request:
    """A request: the path with its query, headers by their lower-case names, the body where it is JSON, and its bytes."""

    def __init__(self, path: str, headers: dict[str, str], body: dict[str, Any], content: bytes = b"") -> None:
        self.path = path
        self.headers = headers
        self.body = body
        self.content = content


class Body:
    """A whole answer: JSON unless it is bytes."""

    def __init__(self, status: int, content: Any, headers: dict[str, str] | None = None) -> None:
        self.status = status
        self.content = content if isinstance(content, bytes) else json.dumps(content).encode()
        self.headers = headers or {}


class Stream:
    """An answer in pieces that is not an event stream."""

    def __init__(self, kind: str, pieces: Iterable[bytes | Fault]) -> None:
        self.kind = kind
        self.pieces = pieces


Answer = Body | Stream | Iterable[bytes | Fault]


class SseServer:
    """A service on loopback. `url` is its address; `requests` has all requests, including refused ones."""

    def __init__(self, tls: ssl.SSLContext | None = None) -> None:
        self.url = ""
        self.requests: list[Request] = []
        self._tls = tls
        self._server: asyncio.Server | None = None
        self._connections: set[asyncio.Task[None]] = set()
        self._asked = asyncio.Condition()
        self._gone = asyncio.Condition()
        self.dropped = 0
        """Silent streams that the client closed."""

    def answer(self, request: Request) -> Answer:
        """Return the answer to a request; implemented by each service."""
        raise NotImplementedError

    async def until_asked(self, count: int = 1) -> None:
        """Wait until there were so many requests."""
        async with asyncio.timeout(BOUND_S), self._asked:
            await self._asked.wait_for(lambda: len(self.requests) >= count)

    async def until_dropped(self) -> None:
        """Wait until a client closed a silent stream."""
        async with asyncio.timeout(BOUND_S), self._gone:
            await self._gone.wait_for(lambda: self.dropped > 0)

    async def start(self) -> None:
        """Listen on a free port."""
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0, ssl=self._tls)
        scheme = "https" if self._tls is not None else "http"
        self.url = f"{scheme}://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"

    async def stop(self) -> None:
        """Cut all connections."""
        if self._server is not None:
            self._server.close()
        for task in list(self._connections):
            task.cancel()
        await asyncio.gather(*self._connections, return_exceptions=True)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        if task is None:
            raise RuntimeError("a connection runs in a task")
        self._connections.add(task)
        try:
            with suppress(ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError, ssl.SSLError):
                while await self._one(reader, writer):
                    pass
        finally:
            self._connections.discard(task)
            writer.close()

    async def _one(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        first, *lines = (await reader.readuntil(b"\r\n\r\n")).decode().rstrip().split("\r\n")
        headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines)}
        payload = await reader.readexactly(int(headers.get("content-length", "0")))
        is_json = "json" in headers.get("content-type", "")
        request = Request(first.split(" ")[1], headers, json.loads(payload) if is_json else {}, payload)
        async with self._asked:
            self.requests.append(request)
            self._asked.notify_all()
        answer = self.answer(request)
        if isinstance(answer, Body):
            fields = {"content-type": "application/json", "content-length": str(len(answer.content)), **answer.headers}
            writer.write(_head(answer.status, fields) + answer.content)
            await writer.drain()
            return True
        kind, items = (answer.kind, answer.pieces) if isinstance(answer, Stream) else ("text/event-stream", answer)
        writer.write(_head(200, {"content-type": kind, "transfer-encoding": "chunked"}))
        for item in items:
            await writer.drain()
            if item is Fault.HANG:
                await reader.read()
                async with self._gone:
                    self.dropped += 1
                    self._gone.notify_all()
                return False
            if item is Fault.DROP:
                writer.transport.abort()
                return False
            if isinstance(item, bytes):
                writer.write(f"{len(item):x}\r\n".encode() + item + b"\r\n")
        writer.write(b"0\r\n\r\n")
        await writer.drain()
        return True


def _head(status: int, headers: dict[str, str]) -> bytes:
    lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    return f"HTTP/1.1 {status} Scripted\r\n{lines}\r\n".encode()
