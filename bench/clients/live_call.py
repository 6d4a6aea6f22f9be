"""A caller on a realtime model with numbered microphone frames and timestamps of everything received, to measure a call while its agent,
connection or worker is replaced.

Owns the caller's socket, its microphone and what it heard. A crash loses one measurement.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any, Final, NamedTuple

import msgspec

from bench.clients.client import FRAME_S, PCM_BYTES
from bench.clients.websocket import Socket, connect
from voxbridge.shared.audio import frames

PATIENCE_S: Final = 20.0
NUMBERS: Final = 1 << 18
"""Number of distinct frame numbers, each encoded in three samples of 6 bits: too quiet to be taken for speech."""

_SIGN: Final = 33
"""Value of the fourth sample of a numbered frame."""

_REST: Final = bytes(PCM_BYTES - 8)


class Heard(NamedTuple):
    """A frame: arrival time in s of `time.monotonic`, its reply and its first sample."""

    at: float
    generation: int
    sample: int


class LiveCall:
    """A call. `sent` counts its microphone frames; `heard` and `told` have the received frames and messages."""

    def __init__(self, socket: Socket) -> None:
        self.sent = 0
        self.heard: list[Heard] = []
        self.told: list[dict[str, Any]] = []
        self._socket = socket
        self._changed = asyncio.Event()
        self._played: dict[int, int] = {}
        self._failed = ""
        self._microphone: asyncio.Task[None] | None = None
        socket.on_text, socket.on_binary, socket.on_closed = self._told, self._hear, self._closed

    @classmethod
    @asynccontextmanager
    async def begun(cls, url: str, agent: str = "", *, mode: str = "gemini") -> AsyncIterator[LiveCall]:
        """Call this agent or pipeline, and wait until its model listens. The call ends with the block.

        Raises `ConnectionError`, `TimeoutError`."""
        call = cls(await connect(url, "voxbridge.v1"))
        try:
            call._say({"type": "start", "mode": mode, **({"agent": agent} if agent else {})})
            if mode == "gemini":
                await call.until("provider", status="connected")
            else:
                await call.until("setup_complete")
            yield call
            call._say({"type": "end"})
            await call.until("session_ended")
        finally:
            call._socket.close()
            if call._microphone is not None:
                call._microphone.cancel()
                await asyncio.wait({call._microphone})

    def speak(self) -> None:
        """Start sending a numbered frame each 20 ms."""
        self._microphone = asyncio.create_task(self._speak())

    def type(self, text: str) -> None:
        """Send a typed message."""
        self._say({"type": "text", "text": text})

    @property
    def sid(self) -> str:
        """Id of the session."""
        return next(str(one["sessionId"]) for one in self.told if one["type"] == "setup_complete")

    async def until(self, kind: str, count: int = 1, **fields: Any) -> None:
        """Wait for the n-th message of this kind with these fields. Raises `ConnectionError` for a call that failed, `TimeoutError`."""
        await self.when(lambda: sum(one.items() >= {"type": kind, **fields}.items() for one in self.told) >= count)

    async def until_heard(self, wanted: Callable[[Heard], bool], *, count: int = 1, within_s: float = PATIENCE_S) -> Heard:
        """Wait for the n-th frame that matches, and return the first match. Raises `ConnectionError`, `TimeoutError`."""
        await self.when(lambda: sum(map(wanted, self.heard)) >= count, within_s=within_s)
        return next(one for one in self.heard if wanted(one))

    async def when(self, holds: Callable[[], bool], *, within_s: float = PATIENCE_S) -> None:
        """Wait until a condition holds; it is checked after each message or frame. Raises `ConnectionError`, `TimeoutError`."""
        async with asyncio.timeout(within_s):
            while not holds():
                if self._failed:
                    raise ConnectionError(self._failed)
                self._changed.clear()
                await self._changed.wait()

    async def _speak(self) -> None:
        began, first = time.monotonic(), self.sent
        while True:
            self._socket.send_binary(frames.pack(frames.PCM16, 0, self.sent, 0, numbered(self.sent)))
            self.sent += 1
            await asyncio.sleep(max(0.0, began + (self.sent - first) * FRAME_S - time.monotonic()))

    def _hear(self, frame: bytes) -> None:
        now, prefix = time.monotonic(), frames.parse(frame)
        size = len(frame) - frames.PREFIX_SIZE
        generation, before = prefix.generation, self._played.get(prefix.generation)
        if size:
            self.heard.append(
                Heard(now, generation, int.from_bytes(frame[frames.PREFIX_SIZE : frames.PREFIX_SIZE + 2], "little", signed=True))
            )
        played = self._played[generation] = (before or 0) + size
        if prefix.kind == frames.FLUSH:
            self._report(generation, played, "flushed")
        elif prefix.flags & frames.LAST:
            self._report(generation, played, "finished")
        elif before is None:
            self._report(generation, played, "playing")
        self._changed.set()

    def _report(self, generation: int, played: int, state: str) -> None:
        ms = played * 1_000 // (2 * frames.OUTPUT_RATE)
        self._say({"type": "playback", "generation": generation, "played_ms": ms, "state": state})

    def _told(self, payload: bytes) -> None:
        message = msgspec.json.decode(payload, type=dict[str, Any])
        self.told.append(message)
        if message["type"] == "error":
            self._failed = self._failed or str(message["message"])
        self._changed.set()

    def _closed(self, code: int) -> None:
        self._failed = self._failed or f"The socket was closed with {code}."
        self._changed.set()

    def _say(self, message: dict[str, Any]) -> None:
        self._socket.send_text(msgspec.json.encode(message))


def numbered(number: int) -> bytes:
    """Return a microphone frame of 20 ms that carries its number, below `NUMBERS`, in its first samples."""
    if not 0 <= number < NUMBERS:
        raise ValueError(f"a number from 0 to {NUMBERS - 1} was expected, not {number}")
    samples = (number & 63, number >> 6 & 63, number >> 12, _SIGN)
    return b"".join(sample.to_bytes(2, "little") for sample in samples) + _REST


def number_of(mark: int) -> int | None:
    """Return the number of a frame whose first 8 bytes are `mark`, little-endian; None for another frame."""
    low, middle, high, sign = (mark >> shift & 0xFFFF for shift in (0, 16, 32, 48))
    return low | middle << 6 | high << 12 if sign == _SIGN and max(low, middle, high) < 64 else None
