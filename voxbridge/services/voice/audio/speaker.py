"""Sending of a reply's audio: in order, paced to real time with a small lead, and stopped at once.

The lead covers jitter; audio that was not sent yet needs no flush at the client. A crash loses what was not sent; the
session knows from the client's reports what was heard.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Final, Protocol

from voxbridge.shared.audio import frames
from voxbridge.shared.clock import wall_ms32

FRAME_MS: Final = 20
LEAD_MS: Final = 400
"""Milliseconds that sending may be ahead of playing."""

BUFFER_MS: Final = 20_000
"""Milliseconds of audio that may wait to be sent; synthesis waits beyond that."""

LIVE_BUFFER_MS: Final = 300_000
"""The same for the audio of a realtime model, which comes faster than it is heard and cannot be made to wait."""

_BYTES_PER_MS: Final = frames.OUTPUT_RATE * 2 // 1_000
_FRAME_BYTES: Final = FRAME_MS * _BYTES_PER_MS
_END: Final = b""
"""Marker in the queue: the generation has no more audio."""


class AudioSink(Protocol):
    """Destination of frames."""

    def ready(self) -> bool:
        """Tell whether a frame may be sent now."""

    async def hold(self) -> None:
        """Wait until a frame may be sent."""

    def publish(self, frame: bytes) -> None:
        """Send a frame, when one may be sent."""


class Speaker:
    """Sender of a session's reply audio. Generations follow each other; nothing more is sent of a flushed generation."""

    def __init__(self, outlet: AudioSink, started: Callable[[int, int], None], *, sequence: int = 0) -> None:
        """Create the sender. `started` is called with each generation and the number of its first audio frame, once that frame is sent.
        The very first frame has the number `sequence`."""
        self._outlet = outlet
        self._started = started
        self._flushed = 0
        self._newest = 0
        self._finished = 0
        self._queue: deque[tuple[int, bytes]] = deque()
        self._queued_bytes = 0
        self._current = 0
        self._rest = b""
        self._begun = 0.0
        self._sent_ms = 0.0
        self._sequence = sequence
        self._sending: asyncio.Task[None] | None = None
        self._room = asyncio.Event()
        self._more = asyncio.Event()
        self._closed = False
        self._whole = True
        """True if frames are filled up before they are sent: synthesised audio comes in large pieces."""

    async def put(self, generation: int, pcm: bytes) -> None:
        """Queue PCM16 at 24 kHz; wait while `BUFFER_MS` are queued. Audio of a flushed generation is dropped."""
        while self._wanted(generation) and self._queued_bytes >= BUFFER_MS * _BYTES_PER_MS:
            self._room.clear()
            await self._room.wait()
        if pcm and self._wanted(generation):
            self._newest = max(self._newest, generation)
            self._whole = True
            self._add(generation, pcm)

    def put_whole(self, generation: int, pcm: bytes) -> None:
        """Queue a few words of PCM16 at 24 kHz at once; later audio of the generation follows them."""
        if pcm and self._wanted(generation):
            self._newest = max(self._newest, generation)
            self._whole = True
            self._add(generation, pcm)

    def put_now(self, generation: int, pcm: bytes) -> bool:
        """Queue PCM16 at 24 kHz from a model that is speaking, to be sent as it comes. Returns False if `LIVE_BUFFER_MS` are queued."""
        if not self._wanted(generation):
            return True
        if self._queued_bytes >= LIVE_BUFFER_MS * _BYTES_PER_MS:
            return False
        self._newest = max(self._newest, generation)
        self._whole = False
        if not self._goes_straight(generation, pcm):
            self._add(generation, pcm)
        return True

    def finish(self, generation: int) -> None:
        """Mark the last frame of a generation, once: all of its audio was queued."""
        if self._wanted(generation) and self._finished < generation == self._newest:
            self._finished = generation
            self._add(generation, _END)

    def flush(self, generation: int) -> Awaitable[None]:
        """Send nothing more of this generation or an earlier one. Awaiting the result tells the client to drop what it has."""
        self._flushed = max(self._flushed, generation)
        self._forget()
        return self._published(frames.pack(frames.FLUSH, generation, self._next_sequence(), wall_ms32()))

    def stop(self) -> None:
        """Send nothing more at all."""
        self._closed = True
        self._forget()

    def _wanted(self, generation: int) -> bool:
        return generation > self._flushed and not self._closed

    def _goes_straight(self, generation: int, pcm: bytes) -> bool:
        """Send a piece in the middle of a reply directly, without waking the task that paces; return False if it must be queued.

        Sending directly is the usual case for audio that comes at the speed at which it is heard.
        """
        if self._more.is_set() or self._sending is None or generation != self._current or self._rest or len(pcm) > _FRAME_BYTES:
            return False
        now = asyncio.get_running_loop().time()
        self._begun = max(self._begun, now - self._sent_ms / 1_000)
        if self._sent_ms - (now - self._begun) * 1_000 > LEAD_MS or not self._outlet.ready():
            return False
        self._outlet.publish(self._packed(pcm, 0))
        return True

    def _add(self, generation: int, pcm: bytes) -> None:
        self._queue.append((generation, pcm))
        self._queued_bytes += len(pcm)
        self._more.set()
        if self._sending is None or self._sending.done():
            self._sending = asyncio.create_task(self._send())

    def _forget(self) -> None:
        kept = [(generation, pcm) for generation, pcm in self._queue if self._wanted(generation)]
        if self._sending is not None and not self._wanted(self._current):
            self._sending.cancel()
            self._sending = None
        self._queue.clear()
        self._queued_bytes = 0
        for generation, pcm in kept:
            self._add(generation, pcm)
        self._room.set()

    async def _send(self) -> None:
        loop = asyncio.get_running_loop()
        self._begun, self._sent_ms, self._rest, self._current = loop.time(), 0.0, b"", self._queue[0][0]
        heard = 0
        while True:
            if not self._queue:
                self._more.clear()
                await self._more.wait()
                # The client played on while the synthesis was waited for, so sending is not ahead any more.
                self._begun = max(self._begun, loop.time() - self._sent_ms / 1_000)
            generation, pcm = self._queue.popleft()
            self._queued_bytes -= len(pcm)
            self._room.set()
            if generation != self._current:
                await self._frame(self._rest, 0)  # the previous generation was never finished; the rest of it is still sent
                self._current, self._rest = generation, b""
            self._rest += pcm
            while len(self._rest) >= _FRAME_BYTES or (self._rest and not self._whole and not self._queue and pcm != _END):
                frame, self._rest = self._rest[:_FRAME_BYTES], self._rest[_FRAME_BYTES:]
                await self._frame(frame, 0)
                if heard != generation:
                    heard = generation
                    self._started(generation, self._sequence - 1)
                    if not self._wanted(generation):
                        return
                ahead = self._sent_ms - (loop.time() - self._begun) * 1_000
                if ahead > LEAD_MS:
                    await asyncio.sleep((ahead - LEAD_MS) / 1_000)
            if pcm == _END:
                rest, self._rest = self._rest, b""
                await self._frame(rest, frames.LAST)
                if not self._queue:
                    self._sending = None
                if rest and heard != generation:
                    heard = generation
                    self._started(generation, self._sequence - 1)
                if self._sending is None or not self._wanted(generation):
                    return

    async def _frame(self, pcm: bytes, flags: int) -> None:
        if not pcm and not flags:
            return
        if not self._outlet.ready():
            await self._outlet.hold()
            # The client played on meanwhile, so sending is not ahead any more.
            self._begun = max(self._begun, asyncio.get_running_loop().time() - self._sent_ms / 1_000)
        self._outlet.publish(self._packed(pcm, flags))

    async def _published(self, frame: bytes) -> None:
        if not self._outlet.ready():
            await self._outlet.hold()
        self._outlet.publish(frame)

    def _packed(self, pcm: bytes, flags: int) -> bytes:
        self._sent_ms += len(pcm) / _BYTES_PER_MS
        return frames.pack(frames.PCM16, self._current, self._next_sequence(), wall_ms32(), pcm, flags)

    def _next_sequence(self) -> int:
        self._sequence += 1
        return self._sequence - 1
