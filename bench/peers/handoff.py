"""Handoffs, as a separate process: from the model's tool call to the first audio of the next agent, as the caller hears it.

    python -m bench.peers.handoff '{"url": "ws://127.0.0.1:8431/echo", "bare": true, "calls": 14}'

A caller speaks, is answered, speaks again, and the model (`handoff_google`) calls the tool. One new call at a time, with the microphone on
all the while. Owns the caller and its figures. A crash loses one measurement.
"""

from __future__ import annotations

import asyncio
import math
import struct
import sys
import time
from contextlib import suppress
from typing import Final

import msgspec
import uvloop

from bench.clients.client import FRAME_S, PCM_BYTES, Session
from bench.clients.websocket import connect
from bench.peers.echo import Finder, Sent
from bench.peers.handoff_google import KNOWS, UNRESUMABLE
from voxbridge.shared.audio import frames

CALLS_LIMIT: Final = 100
PATIENCE_S: Final = 20.0
SPEECH_S: Final = 0.2
PAUSE_S: Final = 0.4
"""Seconds from the first agent's last audio to the caller's next word: by then its turn is over, and its resumption handle has come."""

AGENT: Final = "first"
_TONE: Final = struct.pack(f"<{PCM_BYTES // 2}h", *(round(9_000 * math.sin(math.tau * 400 * at / 16_000)) for at in range(PCM_BYTES // 2)))
_STILL: Final = bytes(PCM_BYTES)


class Task(msgspec.Struct, frozen=True, kw_only=True):
    """Description of the calls to make."""

    url: str
    bare: bool
    calls: int


class Handoffs(msgspec.Struct, frozen=True, kw_only=True):
    """Times in ms, and for each kind of handoff its count and how many kept the history. `failed` has the reasons of failed ones."""

    ms: list[float]
    stand_in_ms: list[float]
    """CPU time of the stand-in in each. It is not subtracted: some of it ran concurrently with the framework."""

    plain: int
    plain_kept: int
    unresumable: int
    unresumable_kept: int
    failed: list[str]


class Call(Session):
    """A session of the product that begins with a given agent."""

    async def start_with(self, agent: str) -> None:
        """Start it; raises `ConnectionError`, `TimeoutError`."""
        self._heard = asyncio.get_running_loop().create_future()
        self.socket.send_text(msgspec.json.encode({"type": "start", "mode": "gemini", "agent": agent}))
        async with asyncio.timeout(PATIENCE_S):
            await self._heard


class Caller:
    """A caller that speaks and listens for answers."""

    def __init__(self, session: Session) -> None:
        self.speaking_until = 0.0
        self.last_heard = 0.0
        self._session = session
        self._finder = Finder()
        self._answered = asyncio.Event()
        self._handed: asyncio.Future[tuple[float, Sent]] = asyncio.get_running_loop().create_future()
        session.socket.on_binary = self._hear

    async def hand_over(self) -> tuple[float, Sent]:
        """Speak until the call is handed over. Return the ms, and the second agent's frame; raises `TimeoutError`."""
        microphone = asyncio.create_task(self._speak())
        try:
            async with asyncio.timeout(PATIENCE_S):
                self._say_something()
                await self._answered.wait()
                while time.perf_counter() < self.last_heard + PAUSE_S:  # noqa: ASYNC110 - waits for silence
                    await asyncio.sleep(FRAME_S)
                self._say_something()
                return await self._handed
        finally:
            microphone.cancel()
            await asyncio.wait({microphone})

    def _say_something(self) -> None:
        self.speaking_until = time.perf_counter() + SPEECH_S

    async def _speak(self) -> None:
        began, sent = time.perf_counter(), 0
        while True:
            pcm = _TONE if time.perf_counter() < self.speaking_until else _STILL
            self._session.socket.send_binary(frames.pack(frames.PCM16, 0, sent, 0, pcm))
            sent += 1
            await asyncio.sleep(max(0.0, began + sent * FRAME_S - time.perf_counter()))

    def _hear(self, frame: bytes) -> None:
        now = time.perf_counter_ns()
        pcm = frame[frames.PREFIX_SIZE :]
        if not pcm.strip(b"\0"):
            return
        self.last_heard = now / 1e9
        self._answered.set()
        for sent in self._finder.take(pcm):
            if not self._handed.done():
                self._handed.set_result(((now - sent.sent_ns) / 1e6, sent))


async def one(task: Task) -> tuple[float, Sent]:
    """Run one call with one handoff; raises `TimeoutError`, `ConnectionError`."""
    session = Call(await connect(task.url, "" if task.bare else "voxbridge.v1"))
    try:
        caller = Caller(session)
        if not task.bare:
            await session.start_with(AGENT)
        return await caller.hand_over()
    finally:
        if not task.bare:
            with suppress(ConnectionError, TimeoutError):
                await session.end()
        session.socket.close()


async def handoffs(task: Task) -> Handoffs:
    """Run so many calls, one after the other, after one that is not counted."""
    done: list[tuple[float, Sent]] = []
    failed: list[str] = []
    for number in range(task.calls + 1):
        try:
            found = await one(task)
        except (TimeoutError, ConnectionError) as error:
            failed.append(str(error) or f"no handoff within {PATIENCE_S:g} s")
            if len(failed) > 1:
                break
            continue
        if number:
            done.append(found)
    plain = [sent for _, sent in done if not sent.number & UNRESUMABLE]
    without = [sent for _, sent in done if sent.number & UNRESUMABLE]
    return Handoffs(
        ms=[ms for ms, _ in done],
        stand_in_ms=[sent.session / 1_000 for _, sent in done],
        plain=len(plain),
        plain_kept=sum(bool(sent.number & KNOWS) for sent in plain),
        unresumable=len(without),
        unresumable_kept=sum(bool(sent.number & KNOWS) for sent in without),
        failed=failed,
    )


async def main(task: Task) -> None:
    """Run one task and print its result as one line of JSON."""
    if not 1 <= task.calls <= CALLS_LIMIT:
        raise ValueError(f"1 to {CALLS_LIMIT} calls, not {task.calls}.")
    sys.stdout.write(msgspec.json.encode(await handoffs(task)).decode() + "\n")


if __name__ == "__main__":
    uvloop.run(main(msgspec.json.decode(sys.argv[1].encode(), type=Task)))
