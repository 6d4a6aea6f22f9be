"""A call over a socket with a client that can resume, to measure the cost of a cut or a killed process."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from itertools import pairwise
from typing import Any, Final

import msgspec
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed
from websockets.typing import Subprotocol

from voxbridge.shared.audio import frames
from voxbridge.shared.clock import wall_ms32

FRAME_S: Final = 0.02
SILENCE: Final = bytes(640)
IN_FLIGHT_S: Final = 0.05
STEADY_FRAMES: Final = 10
ANSWER_S: Final = 10.0


class Call:
    """An `echo` session. `arrivals` has the time (s, monotonic) at which each frame came back."""

    def __init__(self, socket: ClientConnection, setup: dict[str, Any]) -> None:
        self.sid: str = setup["sessionId"]
        self.token: str = setup["resumeToken"]
        self.seq: int = setup["seq"]
        self.arrivals: list[float] = []
        self._socket = socket

    @classmethod
    @asynccontextmanager
    async def begun(cls, url: str) -> AsyncIterator[Call]:
        """Open a socket and start the session."""
        async with connect(url, subprotocols=[Subprotocol("voxbridge.v1")]) as socket:
            await socket.send('{"type": "start", "mode": "echo"}')
            yield cls(socket, await _until(socket, "setup_complete"))
            with suppress(ConnectionClosed):
                await socket.send('{"type": "end"}')

    async def flow(self, *, over: asyncio.Event) -> None:
        """Send a frame each 20 ms and record the arrival times of replies, until `over`."""
        hearing = asyncio.create_task(self._hear())
        sequence, due = 0, time.monotonic()
        try:
            while not over.is_set():
                await self._socket.send(frames.pack(frames.PCM16, 0, sequence, wall_ms32(), SILENCE))
                sequence += 1
                due += FRAME_S
                with suppress(TimeoutError):
                    await asyncio.wait_for(over.wait(), max(0.0, due - time.monotonic()))
        finally:
            hearing.cancel()

    async def silence_after(self, moment: float, *, gone: float, within_s: float) -> float:
        """Return the longest silence since `moment` in s, once frames come back that were sent after the worker was `gone`."""
        end = time.monotonic() + within_s
        while time.monotonic() < end:
            await asyncio.sleep(FRAME_S)
            if sum(at > gone + IN_FLIGHT_S for at in self.arrivals) >= STEADY_FRAMES:
                since = [*[at for at in self.arrivals if at <= moment][-1:], *(at for at in self.arrivals if at > moment)]
                return max(later - earlier for earlier, later in pairwise(since))
        raise TimeoutError(f"No frame came back within {within_s:g} s.")

    async def _hear(self) -> None:
        async for message in self._socket:
            if isinstance(message, bytes):
                self.arrivals.append(time.monotonic())


async def resume(url: str, sid: str, token: str, last_seq: int, *, until: int) -> tuple[dict[str, Any], list[int]]:
    """Resume on a new socket. Return the answer, and the positions received until position `until`, if that is not 0."""
    async with connect(url, subprotocols=[Subprotocol("voxbridge.v1")]) as socket:
        await socket.send(msgspec.json.encode({"type": "resume", "sessionId": sid, "resumeToken": token, "last_seq": last_seq}).decode())
        answer = await _until(socket, "resumed")
        seen: list[int] = []
        async with asyncio.timeout(ANSWER_S):
            while until and (not seen or seen[-1] < until):
                message = await socket.recv()
                if isinstance(message, str) and "seq" in (said := msgspec.json.decode(message)):
                    seen.append(said["seq"])
        return answer, seen


async def _until(socket: ClientConnection, kind: str) -> dict[str, Any]:
    async with asyncio.timeout(ANSWER_S):
        while True:
            message = await socket.recv()
            if isinstance(message, str):
                said: dict[str, Any] = msgspec.json.decode(message)
                if said["type"] == kind:
                    return said
                if said["type"] == "error":
                    raise ValueError(said["message"])
