"""Sending a reply's audio: in order, paced to real time with a small lead, and stopped at once.

The lead covers jitter; what the client has not got yet needs no flush. A crash loses what was not sent; the
session knows from the client's reports what was heard.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Final

from shared import frames
from shared.clock import wall_ms32

FRAME_MS: Final = 20
LEAD_MS: Final = 400
"""How far sending may be ahead of playing."""

BUFFER_MS: Final = 20_000
"""Audio that may wait to be sent; synthesis waits beyond it."""

_BYTES_PER_MS: Final = frames.OUTPUT_RATE * 2 // 1_000
_FRAME_BYTES: Final = FRAME_MS * _BYTES_PER_MS


class Speaker:
    """The one voice of a session. Generations follow each other; only the current one is sent."""

    def __init__(self, publish: Callable[[bytes], Awaitable[None]], started: Callable[[int], None]) -> None:
        """`publish` sends a frame, `started` hears of the first frame of each generation."""
        self._publish = publish
        self._started = started
        self._generation = 0
        self._flushed = 0
        self._waiting: deque[bytes] = deque()
        self._waiting_bytes = 0
        self._rest = b""
        self._sequence = 0
        self._finished = False
        self._sending: asyncio.Task[None] | None = None
        self._room = asyncio.Event()
        self._more = asyncio.Event()

    async def put(self, generation: int, pcm: bytes) -> None:
        """Queue PCM16 at 24 kHz; waits while `BUFFER_MS` are queued. Audio of a flushed generation is dropped."""
        while generation > self._flushed and self._waiting_bytes >= BUFFER_MS * _BYTES_PER_MS:
            self._room.clear()
            await self._room.wait()
        if generation <= self._flushed:
            return
        if generation != self._generation:
            self._generation, self._finished, self._rest = generation, False, b""
        self._waiting.append(pcm)
        self._waiting_bytes += len(pcm)
        self._wake()

    def finish(self, generation: int) -> None:
        """All audio of a generation was queued: its last frame is marked."""
        if generation == self._generation and generation > self._flushed:
            self._finished = True
            self._wake()

    async def flush(self, generation: int) -> None:
        """Send nothing more of this generation or an earlier one, and tell the client to drop what it has."""
        self._flushed = max(self._flushed, generation)
        if self._generation <= self._flushed:
            self.stop()
        await self._publish(frames.pack(frames.FLUSH, generation, self._sequence, wall_ms32()))
        self._sequence += 1

    def stop(self) -> None:
        """Forget what is queued."""
        if self._sending is not None:
            self._sending.cancel()
            self._sending = None
        self._waiting.clear()
        self._waiting_bytes = 0
        self._rest = b""
        self._room.set()

    def _wake(self) -> None:
        self._more.set()
        if self._sending is None:
            self._sending = asyncio.create_task(self._send())

    async def _send(self) -> None:
        loop = asyncio.get_running_loop()
        generation, begun, sent_ms = self._generation, loop.time(), 0.0
        while True:
            while not self._ready():
                if self._finished:
                    await self._frame(generation, self._take_rest(), frames.LAST)
                    self._sending = None
                    return
                self._more.clear()
                await self._more.wait()
                # After a wait for the synthesis the client has played on: it is not ahead any more.
                begun = max(begun, loop.time() - sent_ms / 1_000)
            await self._frame(generation, self._take(), 0)
            if sent_ms == 0:
                self._started(generation)
            sent_ms += FRAME_MS
            ahead = sent_ms - (loop.time() - begun) * 1_000
            if ahead > LEAD_MS:
                await asyncio.sleep((ahead - LEAD_MS) / 1_000)

    def _ready(self) -> bool:
        return len(self._rest) + self._waiting_bytes >= _FRAME_BYTES

    def _take(self) -> bytes:
        while len(self._rest) < _FRAME_BYTES:
            self._rest += self._next()
        frame, self._rest = self._rest[:_FRAME_BYTES], self._rest[_FRAME_BYTES:]
        return frame

    def _take_rest(self) -> bytes:
        while self._waiting:
            self._rest += self._next()
        rest, self._rest = self._rest, b""
        return rest

    def _next(self) -> bytes:
        pcm = self._waiting.popleft()
        self._waiting_bytes -= len(pcm)
        self._room.set()
        return pcm

    async def _frame(self, generation: int, pcm: bytes, flags: int) -> None:
        sequence = self._sequence
        self._sequence += 1
        await self._publish(frames.pack(frames.PCM16, generation, sequence, wall_ms32(), pcm, flags))
