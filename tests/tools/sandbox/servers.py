"""Servers that handlers ask: one that tells what it was sent, and one that nobody may reach."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from urllib.parse import parse_qs, urlsplit

Reply = bytes | Callable[["Seen"], bytes | Awaitable[bytes]]


@dataclass
class Seen:
    """A request as a server saw it."""

    method: str
    target: str
    headers: dict[str, str]
    body: bytes

    @property
    def path(self) -> str:
        return urlsplit(self.target).path

    @property
    def query(self) -> dict[str, list[str]]:
        return parse_qs(urlsplit(self.target).query)


@dataclass
class Server:
    """A server on loopback. `seen` are its requests, `connections` counts what was opened, whether or not it asked."""

    port: int = 0
    connections: int = 0
    seen: list[Seen] = field(default_factory=list)
    replies: dict[str, Reply] = field(default_factory=dict)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"


def answer(body: bytes | str, *, status: str = "200 OK", **headers: str) -> bytes:
    """Return the bytes of an answer; `_` in a header's name stands for `-`."""
    data = body.encode() if isinstance(body, str) else body
    told = {
        "content-type": "text/plain",
        "content-length": str(len(data)),
        **{name.replace("_", "-"): text for name, text in headers.items()},
    }
    lines = "".join(f"{name}: {text}\r\n" for name, text in told.items())
    return f"HTTP/1.1 {status}\r\n{lines}connection: close\r\n\r\n".encode() + data


def echo(seen: Seen) -> bytes:
    told = {"method": seen.method, "target": seen.target, "headers": seen.headers, "body": seen.body.decode("latin-1")}
    return answer(json.dumps(told), content_type="application/json")


@asynccontextmanager
async def serving() -> AsyncIterator[Server]:
    """Serve on a free port of loopback; a path without a reply of its own is answered with what was asked."""
    server = Server()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        server.connections += 1
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
            method, target, _ = head[0].split(" ")
            headers = {name.lower(): text for name, _, text in (line.partition(": ") for line in head[1:] if line)}
            seen = Seen(method, target, headers, await reader.readexactly(int(headers.get("content-length", 0))))
            server.seen.append(seen)
            reply = server.replies.get(seen.path, echo)
            made = reply if isinstance(reply, bytes) else reply(seen)
            writer.write(made if isinstance(made, bytes) else await made)
            await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError, ValueError):
            pass
        finally:
            writer.close()

    listening = await asyncio.start_server(serve, "127.0.0.1", 0)
    server.port = listening.sockets[0].getsockname()[1]
    async with listening:
        yield server
