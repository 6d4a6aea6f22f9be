"""A wire between one process and nats-server that holds the process at the appends of a session: each is held on its way to the log, or its
acknowledgement on the way back. So a process is killed exactly before or after an append, without a change in it and without waiting.

Several sessions can be held at the same time: what belongs to others passes. Events that travel together, as one batch, are held together.
"""

from __future__ import annotations

import asyncio
import re
from asyncio import StreamReader, StreamWriter
from collections import Counter
from contextlib import suppress
from typing import Final, Literal, NamedTuple, Self
from urllib.parse import urlsplit

_LINE: Final = 64 * 1024
_PUBLISHED: Final = {b"PUB": 3, b"HPUB": 4}
"""Words of a command without a reply subject."""

_DELIVERED: Final = (b"MSG", b"HMSG")


class Stop(NamedTuple):
    """A place on the wire: `before` the nth append (from 0) reaches the log, or `after`: before its acknowledgement reaches the process.
    In place of a number: the type of the first event that is held."""

    when: Literal["before", "after"]
    number: int | str


class _Held(NamedTuple):
    writer: StreamWriter
    data: bytes


class Wire:
    """A proxy for the connections of one process. `writer` names whose appends are held, as in the subjects of the log."""

    def __init__(self, nats_url: str, *, writer: str = "tools") -> None:
        self.sent: Counter[str] = Counter()
        """Appends that the process has sent, by session."""

        self.answered: Counter[str] = Counter()
        """Answers of the log to them, by session."""

        self._host = urlsplit(nats_url)
        self._pattern = re.compile(rb"vx\.[as]\.([^.]+)\.ev\.%s\." % writer.encode())
        self._stops: dict[str, Stop] = {}
        self._held: dict[str, list[_Held]] = {}
        self._replies: dict[bytes, str] = {}
        self._server: asyncio.Server | None = None
        self._pumps: set[asyncio.Task[None]] = set()
        self._dead = False

    @property
    def url(self) -> str:
        """URL for the process."""
        assert self._server is not None
        user = f"{self._host.username}:{self._host.password}@" if self._host.username else ""
        return f"nats://{user}127.0.0.1:{self._server.sockets[0].getsockname()[1]}"

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0, limit=_LINE)
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._server is not None
        self._server.close()
        self.cut()
        await asyncio.gather(*self._pumps, return_exceptions=True)

    def stop_at(self, sid: str, stop: Stop) -> None:
        """Hold a session at this place; one it has passed holds nothing."""
        self._stops[sid] = stop

    def holds(self, sid: str) -> bool:
        """Tell whether a session is held."""
        return sid in self._held

    def release(self, sid: str) -> None:
        """Let a session go on."""
        self._stops.pop(sid, None)
        for held in self._held.pop(sid, []):
            if not held.writer.is_closing():
                held.writer.write(held.data)

    def cut(self) -> None:
        """Drop everything that is held, and close the connections: the process is dead."""
        self._dead = True
        self._held.clear()
        for pump in self._pumps:
            pump.cancel()

    async def _accept(self, reader: StreamReader, writer: StreamWriter) -> None:
        assert self._host.hostname is not None
        upstream, downstream = await asyncio.open_connection(self._host.hostname, self._host.port, limit=_LINE)
        pumps = [asyncio.create_task(self._out(reader, downstream)), asyncio.create_task(self._back(upstream, writer))]
        self._pumps.update(pumps)
        try:
            await asyncio.wait(pumps, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for pump in pumps:
                pump.cancel()
            for end in (downstream, writer):
                end.close()

    async def _out(self, reader: StreamReader, server: StreamWriter) -> None:
        """Pass what the process sends."""
        with suppress(OSError, asyncio.IncompleteReadError):
            while line := await reader.readline():
                words = line.split()
                least = _PUBLISHED.get(words[0].upper(), 0) if words else 0
                data = line + await reader.readexactly(int(words[-1]) + 2) if least else line
                found = self._pattern.match(words[1]) if least else None
                if found is None or not self._holds_append(found[1].decode(), words[2] if len(words) > least else b"", server, data):
                    server.write(data)
                    await server.drain()

    def _holds_append(self, sid: str, reply: bytes, server: StreamWriter, data: bytes) -> bool:
        if reply:
            self._replies[reply] = sid
        stop = self._stops.get(sid)
        if stop is not None and isinstance(stop.number, str) and stop.number.encode() in data:
            self._stops[sid] = stop = Stop(stop.when, self.sent[sid] if stop.when == "before" else self.answered[sid])
        if stop == ("before", self.sent[sid]):
            self._held.setdefault(sid, [])
        self.sent[sid] += 1
        held = self._held.get(sid)
        if held is None:
            return False
        held.append(_Held(server, data))
        return True

    async def _back(self, reader: StreamReader, process: StreamWriter) -> None:
        """Pass what the server sends."""
        with suppress(OSError, asyncio.IncompleteReadError):
            while line := await reader.readline():
                words = line.split()
                delivered = bool(words) and words[0].upper() in _DELIVERED
                data = line + await reader.readexactly(int(words[-1]) + 2) if delivered else line
                sid = self._replies.pop(words[1], None) if delivered else None
                if sid is None or not self._holds_answer(sid, process, data):
                    process.write(data)
                    await process.drain()

    def _holds_answer(self, sid: str, process: StreamWriter, data: bytes) -> bool:
        if self._stops.get(sid) == ("after", self.answered[sid]):
            self._held.setdefault(sid, [])
        self.answered[sid] += 1
        held = self._held.get(sid)
        if held is None:
            return False
        held.append(_Held(process, data))
        return True
