"""A gateway, a voice worker and an executor as separate processes, on servers of the test, with scripted models."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from websockets.asyncio.client import ClientConnection, connect
from websockets.typing import Subprotocol

from tests.eventually import BOUND_S, eventually, opens
from voxbridge.shared.audio import frames
from voxbridge.shared.config import Config

_PARTS = ("tools", "voice", "gateway")


@asynccontextmanager
async def stack(config: Config) -> AsyncIterator[dict[str, asyncio.subprocess.Process]]:
    """Run the three services; killed after the test."""
    env = {name: value for name, value in os.environ.items() if not name.startswith("VOXBRIDGE_")} | config.as_env()
    running: dict[str, asyncio.subprocess.Process] = {}
    draining: list[asyncio.Task[None]] = []
    try:
        for name in _PARTS:
            running[name] = await asyncio.create_subprocess_exec(
                sys.executable, "-m", f"voxbridge.services.{name}", env=env, stderr=asyncio.subprocess.PIPE, limit=1 << 20
            )
        async with asyncio.timeout(BOUND_S):
            for name in _PARTS:
                stderr = running[name].stderr
                assert stderr is not None
                while f"{name} serves".encode() not in (line := await stderr.readline()):
                    assert line, f"{name} ended as it started"
                draining.append(asyncio.create_task(_drain(stderr)))
            await eventually(lambda: opens(config.port))
        yield running
    finally:
        for process in running.values():
            if process.returncode is None:
                process.kill()
        for process in running.values():
            await process.wait()
        await asyncio.gather(*draining)


async def _drain(stderr: asyncio.StreamReader) -> None:
    while await stderr.readline():
        pass


class Talker:
    """A client that types, and keeps every message."""

    def __init__(self, socket: ClientConnection) -> None:
        self.sid = ""
        self.told: list[dict[str, Any]] = []
        self.frames = 0
        self._bytes: Counter[int] = Counter()
        self._socket = socket
        self._came = asyncio.Condition()
        self._reading = asyncio.create_task(self._read())

    async def start(self, mode: str = "local") -> None:
        """Open a session and wait until it is set up."""
        await self.open(mode)
        self.sid = (await self.until("setup_complete"))["sessionId"]

    async def open(self, mode: str = "local") -> None:
        """Request a session."""
        await self._socket.send(json.dumps({"type": "start", "mode": mode}))

    async def say(self, text: str) -> None:
        """Send a typed message."""
        await self._socket.send(json.dumps({"type": "text", "text": text}))

    async def send(self, message: dict[str, Any]) -> None:
        """Send a message."""
        await self._socket.send(json.dumps(message))

    async def sound(self, frame: bytes) -> None:
        """Send a microphone frame."""
        await self._socket.send(frame)

    async def until(self, type: str, count: int = 1, **fields: Any) -> dict[str, Any]:
        """Wait for the n-th message of this type with these fields, and return it."""

        def fitting() -> list[dict[str, Any]]:
            return [one for one in self.told if one["type"] == type and all(one.get(k) == v for k, v in fields.items())]

        async with asyncio.timeout(BOUND_S), self._came:
            await self._came.wait_for(lambda: len(fitting()) >= count)
        return fitting()[count - 1]

    async def frames_over(self, count: int) -> None:
        """Wait until more than so many audio frames have been received."""
        async with asyncio.timeout(BOUND_S), self._came:
            await self._came.wait_for(lambda: self.frames > count)

    async def stop(self) -> None:
        """Stop receiving."""
        self._reading.cancel()
        await asyncio.wait({self._reading})

    async def _read(self) -> None:
        async for message in self._socket:
            async with self._came:
                if isinstance(message, bytes):
                    self.frames += 1
                    await self._play(message)
                else:
                    self.told.append(json.loads(message))
                self._came.notify_all()

    async def _play(self, frame: bytes) -> None:
        """Report each reply as played to its end as soon as its last frame arrives."""
        prefix = frames.parse(frame)
        self._bytes[prefix.generation] += len(frame) - frames.PREFIX_SIZE
        if prefix.flags & frames.LAST:
            played_ms = self._bytes[prefix.generation] * 1_000 // (2 * frames.OUTPUT_RATE)
            report = {"type": "playback", "generation": prefix.generation, "played_ms": played_ms, "state": "finished"}
            await self._socket.send(json.dumps(report))


@asynccontextmanager
async def talker(config: Config) -> AsyncIterator[Talker]:
    """Connect to the gateway as a browser does."""
    async with connect(f"ws://127.0.0.1:{config.port}/ws/vox", subprotocols=[Subprotocol("voxbridge.v1")], compression=None) as socket:
        person = Talker(socket)
        try:
            yield person
        finally:
            await person.stop()
