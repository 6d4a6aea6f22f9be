"""A browser's side of a call over several sockets: it resumes as docs/protocol.md specifies, queues messages while it is disconnected, and
plays what it receives."""

from __future__ import annotations

import asyncio
import json
from collections import deque
from contextlib import suppress
from typing import Any, Final

from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import WebSocketException
from websockets.typing import Origin, Subprotocol

from tests.eventually import BOUND_S
from voxbridge.shared.audio import frames

FRAME: Final = 3_200
"""Bytes of a microphone frame: 100 ms."""

AGAIN_S: Final = 0.1
REPORT_EVERY_MS: Final = 1_000
_PROTOCOL: Final = Subprotocol("voxbridge.v1")


class Loudspeaker:
    """Playback without delay, with the reports of a page: at a reply's first sound, each second, and at its end."""

    def __init__(self) -> None:
        self.heard: dict[int, int] = {}
        """Milliseconds heard of each reply."""

        self._open: set[int] = set()
        self._flushed = -1

    def play(self, frame: bytes) -> list[dict[str, Any]]:
        """Play a frame from the socket. Return the reports that follow."""
        prefix = frames.parse(frame)
        generation = prefix.generation
        if prefix.kind == frames.FLUSH:
            return self.flush(generation)
        if generation <= self._flushed:
            return []
        before = self.heard.get(generation, 0)
        now = before + (len(frame) - frames.PREFIX_SIZE) * 1_000 // (2 * frames.OUTPUT_RATE)
        self.heard[generation] = now
        begins, ends = generation not in self._open, bool(prefix.flags & frames.LAST)
        self._open.add(generation)
        reports = []
        if begins or before // REPORT_EVERY_MS != now // REPORT_EVERY_MS:
            reports.append(_report(generation, now, "playing"))
        if ends:
            self._open.discard(generation)
            self._flushed = generation
            reports.append(_report(generation, now, "finished"))
        return reports

    def flush(self, generation: int) -> list[dict[str, Any]]:
        """Stop playing all replies up to this one. Return the reports."""
        dropped = sorted(one for one in self._open if one <= generation)
        self._open.difference_update(dropped)
        self._flushed = max(self._flushed, generation)
        return [_report(one, self.heard[one], "flushed") for one in dropped]

    def cut(self) -> list[dict[str, Any]]:
        """Drop what is not played when the socket is lost. Return the reports."""
        return self.flush(max(self._open)) if self._open else []


class Caller:
    """A call. `told` are the JSON messages of all its sockets, in order."""

    def __init__(self, port: int, *, path: str = "/ws/vox", origin: str | None = None) -> None:
        self.sid = self.token = ""
        self.told: list[dict[str, Any]] = []
        self.resumes: list[dict[str, Any]] = []
        self.loudspeaker = Loudspeaker()
        self.reloads = False
        """The page is reloaded when it loses its socket: it knows no more than how to resume."""

        self._url = f"ws://127.0.0.1:{port}{path}"
        self._origin = None if origin is None else Origin(origin)
        self._socket: ClientConnection | None = None
        self._outbox: deque[str | bytes] = deque()
        self._sequence = 0
        self._came = asyncio.Condition()
        self._start: dict[str, Any] = {}
        self._running: asyncio.Task[None] | None = None

    async def start(self, **options: Any) -> None:
        """Open the call and wait until it is set up. `type` among the options is that of the first message, if not `start`."""
        self._start = {"type": "start", **options}
        self._running = asyncio.create_task(self._run())
        await self.until("setup_complete")

    async def says(self, message: dict[str, Any]) -> None:
        """Send a message, or queue it for the next socket."""
        await self._send(json.dumps(message))

    async def types(self, text: str) -> None:
        await self.says({"type": "text", "text": text})

    async def speaks(self, pcm: bytes) -> None:
        """Send microphone audio as fast as it is taken."""
        for start in range(0, len(pcm), FRAME):
            await self._send(frames.pack(frames.PCM16, 0, self._sequence, 0, pcm[start : start + FRAME]))
            self._sequence += 1

    def facts(self, type: str = "", **fields: Any) -> list[dict[str, Any]]:
        """Return the received log events of this type and with these fields."""
        return [
            one
            for one in self.told
            if "seq" in one and type in ("", one["type"]) and all(one.get(name) == value for name, value in fields.items())
        ]

    async def until(self, type: str, count: int = 1, **fields: Any) -> dict[str, Any]:
        """Wait for the n-th event of this type with these fields, and return it."""
        await self.when(lambda: len(self.facts(type, **fields)) >= count)
        return self.facts(type, **fields)[count - 1]

    async def when(self, holds: Any) -> None:
        """Wait until the condition holds; it is checked after each message."""
        try:
            async with asyncio.timeout(BOUND_S), self._came:
                await self._came.wait_for(lambda: bool(holds()))
        except TimeoutError:
            raise AssertionError(f"told until then: {json.dumps(self.told, indent=1)}") from None

    async def resumed(self, count: int = 1) -> dict[str, Any]:
        """Wait for the answer to the n-th resume, and return it."""
        await self.when(lambda: len(self.resumes) >= count)
        return self.resumes[count - 1]

    async def ends(self) -> None:
        """End the call and wait until it has ended."""
        await self.says({"type": "end"})
        await self.until("session_ended")
        assert self._running is not None
        async with asyncio.timeout(BOUND_S):
            await self._running

    async def reload(self) -> None:
        """Reload the page: it loses its socket and what it knew, and comes back."""
        assert self._socket is not None
        self.reloads = True
        count = len(self.resumes)
        await self._socket.close()
        await self.resumed(count + 1)

    async def stop(self) -> None:
        """Stop receiving."""
        if self._running is not None:
            self._running.cancel()
            await asyncio.wait({self._running})

    async def _run(self) -> None:
        while not self.facts("session_ended"):
            with suppress(OSError, WebSocketException, TimeoutError):
                async with connect(
                    self._url, origin=self._origin, subprotocols=[_PROTOCOL], compression=None, ping_interval=None
                ) as socket:
                    await socket.send(json.dumps(self._hello()))
                    async for message in socket:
                        await self._take(socket, message)
            self._socket = None
            if self.reloads:
                self.told, self.loudspeaker, self.reloads = [], Loudspeaker(), False
            for report in self.loudspeaker.cut():
                self._outbox.append(json.dumps(report))
            await asyncio.sleep(AGAIN_S)

    def _hello(self) -> dict[str, Any]:
        if not self.sid:
            return self._start
        last = max((one["seq"] for one in self.facts()), default=0)
        return {"type": "resume", "sessionId": self.sid, "resumeToken": self.token, "last_seq": last}

    async def _take(self, socket: ClientConnection, message: str | bytes) -> None:
        if isinstance(message, bytes):
            for report in self.loudspeaker.play(message):
                await self.says(report)
        else:
            await self._read(socket, json.loads(message))
        async with self._came:
            self._came.notify_all()

    async def _read(self, socket: ClientConnection, message: dict[str, Any]) -> None:
        self.told.append(message)
        if message["type"] == "setup_complete":
            self.sid, self.token = message["sessionId"], message["resumeToken"]
        elif message["type"] == "resumed":
            self.resumes.append(message)
        else:
            return
        while self._outbox:
            await socket.send(self._outbox[0])
            self._outbox.popleft()
        self._socket = socket

    async def _send(self, payload: str | bytes) -> None:
        socket = self._socket
        if socket is None:
            self._outbox.append(payload)
            return
        try:
            await socket.send(payload)
        except WebSocketException:
            self._outbox.append(payload)


def _report(generation: int, played_ms: int, state: str) -> dict[str, Any]:
    return {"type": "playback", "generation": generation, "played_ms": played_ms, "state": state}
