"""The load, as a separate process: sessions that send microphone frames, that start, or that are only held open.

    python -m bench.clients.client '{"kind": "echo", "url": "ws://127.0.0.1:8420/ws/vox", "sessions": 50, "seconds": 5}'

Prints one JSON line for each answer. `late_ms` is the client's own delay behind its schedule, which adds to every figure. Counts, times and
addresses are bounded; only loopback addresses are allowed.
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Callable
from typing import Any, Final
from urllib.parse import urlsplit

import msgspec
import psutil
import uvloop

from bench import figures
from bench.clients.websocket import Socket, connect
from voxbridge.shared.audio import frames

FRAME_S: Final = 0.02
PCM_BYTES: Final = 640
SESSIONS_LIMIT: Final = 4_000
SECONDS_LIMIT: Final = 120.0
SETUP_S: Final = 30.0
END_S: Final = 10.0
DRAIN_S: Final = 2.0
TIMER_S: Final = 0.001
SIDE_BY_SIDE: Final = 8
"""Sessions that are set up concurrently before a load."""


class Task(msgspec.Struct, frozen=True, kw_only=True):
    """Description of a load. `pids` are processes, by name, whose CPU time is read while the load is on."""

    kind: str
    url: str
    sessions: int
    mode: str = "echo"
    seconds: float = 5.0
    warm_s: float = 1.0
    gap_s: float = 0.0
    bare: bool = False
    stream: bool = False
    """The answer is one stream of bytes in any pieces, not frame for frame."""

    pids: dict[str, list[int]] = {}


class EchoResult(msgspec.Struct, frozen=True, kw_only=True):
    """Result of an echo load. Times in ms, CPU in µs per frame."""

    sessions: int
    frames: int
    rate: float
    lost: int
    rtt_ms: figures.Series
    late_ms: figures.Series
    cpu_us: dict[str, float]
    client_cpu: float
    """Share of one core that this client used."""


class StartsResult(msgspec.Struct, frozen=True, kw_only=True):
    """Times from `start` to `setup_complete` in ms, one for each session, in the order of their starts."""

    start_ms: list[float]


class Session:
    """A session of the load."""

    def __init__(self, socket: Socket) -> None:
        self.socket = socket
        self.sequence = 0
        self.received = 0
        self._heard: asyncio.Future[bytes] | None = None
        socket.on_text = self._text
        socket.on_closed = self._closed

    async def start(self, mode: str) -> float:
        """Start the session. Return the time to `setup_complete` in ms."""
        self._heard = asyncio.get_running_loop().create_future()
        began = time.perf_counter()
        self.socket.send_text(msgspec.json.encode({"type": "start", "mode": mode}))
        async with asyncio.timeout(SETUP_S):
            await self._heard
        return (time.perf_counter() - began) * 1_000

    async def end(self) -> None:
        """End the session and wait until it is over."""
        self._heard = asyncio.get_running_loop().create_future()
        self.socket.send_text(b'{"type":"end"}')
        async with asyncio.timeout(END_S):
            await self._heard

    def _text(self, payload: bytes) -> None:
        kind = msgspec.json.decode(payload)["type"]
        if kind in ("setup_complete", "session_ended"):
            self._answer(None)
        elif kind == "error":
            self._answer(ConnectionError(payload.decode()))

    def _closed(self, code: int) -> None:
        self._answer(ConnectionError(f"closed with {code}"))

    def _answer(self, error: Exception | None) -> None:
        heard = self._heard
        if heard is None or heard.done():
            return
        if error is None:
            heard.set_result(b"")
        else:
            heard.set_exception(error)


async def open_sessions(task: Task) -> list[Session]:
    """Connect and start every session, a few at a time."""
    gate = asyncio.Semaphore(SIDE_BY_SIDE)

    async def one() -> Session:
        async with gate:
            session = Session(await connect(task.url, "" if task.bare else "voxbridge.v1"))
            if not task.bare:
                await session.start(task.mode)
            return session

    return list(await asyncio.gather(*(one() for _ in range(task.sessions))))


async def end_sessions(sessions: list[Session], *, bare: bool) -> None:
    """End every session and close its socket."""
    if not bare:
        await asyncio.gather(*(session.end() for session in sessions), return_exceptions=True)
    for session in sessions:
        session.socket.close()


class Echo:
    """Sender of frames on an even schedule over all sessions, with their round trips."""

    def __init__(self, sessions: list[Session], *, stream: bool = False) -> None:
        self.rtt_ms: list[float] = []
        self.late_ms: list[float] = []
        self.sent = 0
        self.received = 0
        self._sessions = sessions
        self._clock = time.perf_counter
        for session in sessions:
            session.socket.on_binary = self._stream() if stream else self._received

    async def run(self, seconds: float) -> None:
        """Send until the time is over. Each frame carries its send time; the schedule does not wait for answers."""
        count = len(self._sessions)
        gap = FRAME_S / count
        began = self._clock()
        due = 0
        silence = bytes(PCM_BYTES - 8)
        total = int(seconds / gap)
        while due < total:
            now = self._clock()
            while due < total and began + due * gap <= now:
                session = self._sessions[due % count]
                self.late_ms.append((now - began - due * gap) * 1_000)
                stamp = int(self._clock() * 1e9).to_bytes(8, "little")
                session.socket.send_binary(frames.pack(frames.PCM16, 0, session.sequence, 0, stamp + silence))
                session.sequence += 1
                due += 1
            self.sent += due - self.sent
            # Event-loop timers have a resolution of 1 ms; a shorter sleep would spin and take CPU from the measured system.
            await asyncio.sleep(max(TIMER_S, began + due * gap - self._clock()))

    async def drained(self) -> None:
        """Wait for outstanding frames, `DRAIN_S` at most."""
        end = self._clock() + DRAIN_S
        while self.received < self.sent and self._clock() < end:  # noqa: ASYNC110 - frames are too many to signal each
            await asyncio.sleep(0.02)

    def _stream(self) -> Callable[[bytes], None]:
        """Return a receiver of one session's audio that splits it into frames of the sent size and times the last byte of each."""
        rest = b""

        def take(frame: bytes) -> None:
            nonlocal rest
            rest += frame[frames.PREFIX_SIZE :]
            while len(rest) >= PCM_BYTES:
                self._received(bytes(frames.PREFIX_SIZE) + rest[:8])
                rest = rest[PCM_BYTES:]

        return take

    def _received(self, frame: bytes) -> None:
        self.received += 1
        sent = int.from_bytes(frame[frames.PREFIX_SIZE : frames.PREFIX_SIZE + 8], "little")
        self.rtt_ms.append((self._clock() * 1e9 - sent) / 1e6)


async def echo(task: Task) -> EchoResult:
    """Send microphone frames and measure the time until each comes back."""
    sessions = await open_sessions(task)
    try:
        warm = Echo(sessions, stream=task.stream)
        await warm.run(task.warm_s)
        await warm.drained()
        measured = Echo(sessions, stream=task.stream)
        watched = {name: [psutil.Process(pid) for pid in pids] for name, pids in task.pids.items()}
        before, own, began = _cpu(watched), time.process_time(), time.perf_counter()
        await measured.run(task.seconds)
        after, own_after, took = _cpu(watched), time.process_time(), time.perf_counter() - began
        await measured.drained()
    finally:
        await end_sessions(sessions, bare=task.bare)
    return EchoResult(
        sessions=task.sessions,
        frames=measured.sent,
        rate=measured.sent / took,
        lost=measured.sent - measured.received,
        rtt_ms=figures.series(measured.rtt_ms, lost=measured.sent - measured.received),
        late_ms=figures.series(measured.late_ms),
        cpu_us={name: (after[name] - before[name]) / measured.sent * 1e6 for name in watched},
        client_cpu=(own_after - own) / took,
    )


async def starts(task: Task) -> StartsResult:
    """Start one session every `gap_s` (all at once with 0), hold them all, and return the start time of each."""
    gate = asyncio.Semaphore(SIDE_BY_SIDE)

    async def open_socket() -> Session:
        async with gate:
            return Session(await connect(task.url, "voxbridge.v1"))

    sessions = list(await asyncio.gather(*(open_socket() for _ in range(task.sessions))))

    async def one(number: int, session: Session) -> float:
        await asyncio.sleep(number * task.gap_s)
        return await session.start(task.mode)

    try:
        times = await asyncio.gather(*(one(number, session) for number, session in enumerate(sessions)))
    finally:
        await end_sessions(sessions, bare=False)
    return StartsResult(start_ms=list(times))


async def hold(task: Task) -> None:
    """Open sessions, report it, and hold them until standard input ends."""
    sessions = await open_sessions(task)
    _say({"held": len(sessions)})
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.buffer.read)
    await end_sessions(sessions, bare=task.bare)


def check(task: Task) -> None:
    """Raise `ValueError` for a load that is out of bounds."""
    if urlsplit(task.url).hostname not in ("127.0.0.1", "localhost", "::1"):
        raise ValueError("Only loopback is loaded.")
    if not 1 <= task.sessions <= SESSIONS_LIMIT:
        raise ValueError(f"1 to {SESSIONS_LIMIT} sessions, not {task.sessions}.")
    if not 0 < task.seconds <= SECONDS_LIMIT:
        raise ValueError(f"Up to {SECONDS_LIMIT:g} seconds, not {task.seconds:g}.")


def _cpu(watched: dict[str, list[psutil.Process]]) -> dict[str, float]:
    return {name: sum(sum(process.cpu_times()[:2]) for process in processes) for name, processes in watched.items()}


def _say(answer: Any) -> None:
    sys.stdout.write(msgspec.json.encode(answer).decode() + "\n")
    sys.stdout.flush()


async def main(task: Task) -> None:
    """Run one task."""
    check(task)
    if task.kind == "echo":
        _say(await echo(task))
    elif task.kind == "starts":
        _say(await starts(task))
    else:
        await hold(task)


if __name__ == "__main__":
    uvloop.run(main(msgspec.json.decode(sys.argv[1].encode(), type=Task)))
