"""The load of the comparison, as a separate process: frames that can be identified in any returned stream, and their times.

    python -m bench.peers.echo '{"kind": "echo", "url": "ws://127.0.0.1:8431/echo", "sessions": 20, "bare": true}'

A peer may split the audio differently, or insert silence. So each frame carries a mark, its session, its number, its send time and a
checksum over all of it; the returned audio is searched as one stream of bytes, and a frame counts when its last byte has arrived, bit-exact
and in its own session. Owns that format and the schedule; sessions are `bench.clients.client`'s. A crash loses one measurement.
"""

from __future__ import annotations

import asyncio
import struct
import sys
import time
import zlib
from collections.abc import Callable
from typing import Final

import msgspec
import psutil
import uvloop

from bench import figures
from bench.clients.client import DRAIN_S, FRAME_S, PCM_BYTES, TIMER_S, EchoResult, Session, Task, check, end_sessions, open_sessions
from voxbridge.shared.audio import frames

READY_S: Final = 30.0
"""Seconds until the first frame of a session must be back."""

_MARK: Final = b"\x11\xee\x2f\xd1\x3b\xc4\x57\xa9"
_HEAD: Final = struct.Struct("<8sIIQ")
_SUM: Final = struct.Struct("<I")
_SAMPLES: Final = (PCM_BYTES - _HEAD.size - _SUM.size) // 2
_TAIL: Final = struct.pack(f"<{_SAMPLES}h", *(at * 7 % 5 - 2 for at in range(_SAMPLES)))


class Sent(msgspec.Struct, frozen=True):
    """Content of a frame: `sent_ns` is the clock of the process that sent it."""

    session: int
    number: int
    sent_ns: int


def payload(sent: Sent) -> bytes:
    """Return 640 bytes of audio with this content; after the first 28 bytes follows a fixed quiet signal."""
    head = _HEAD.pack(_MARK, sent.session, sent.number, sent.sent_ns)
    return head + _SUM.pack(zlib.crc32(_TAIL, zlib.crc32(head))) + _TAIL


class Finder:
    """Searcher for frames in one session's stream, however it is split."""

    def __init__(self) -> None:
        self._rest = b""

    def take(self, pcm: bytes) -> list[Sent]:
        """Return the frames whose last byte is in this piece. Damaged frames are skipped."""
        found: list[Sent] = []
        data = self._rest + pcm
        while (at := data.find(_MARK)) >= 0:
            data = data[at:]
            if len(data) < PCM_BYTES:
                break
            frame = data[:PCM_BYTES]
            _, session, number, sent_ns = _HEAD.unpack_from(frame)
            sent = Sent(session, number, sent_ns)
            if payload(sent) == frame:
                found.append(sent)
                data = data[PCM_BYTES:]
            else:
                data = data[1:]
        else:
            data = data[1 - len(_MARK) :]
        self._rest = data
        return found


class Load:
    """Sender of frames on an even schedule over all sessions."""

    def __init__(self, sessions: list[Session]) -> None:
        self.rtt_ms: list[float] = []
        self.late_ms: list[float] = []
        self.sent = 0
        self.awaited: set[tuple[int, int]] = set()
        """Session and number of each counted frame that is not back."""

        self._ready = [asyncio.Event() for _ in sessions]
        self._sessions = sessions
        for index, session in enumerate(sessions):
            session.socket.on_binary = self._heard(index)

    async def first(self) -> None:
        """Send to each session, one after the other, until a frame is back; raises `TimeoutError`.

        This completes each framework's start-up of a call before the load, and keeps it from delaying other calls."""
        for index, ready in enumerate(self._ready):
            try:
                async with asyncio.timeout(READY_S):
                    while not ready.is_set():
                        self._send(index)
                        await asyncio.sleep(FRAME_S)
            except TimeoutError:
                raise TimeoutError(f"session {index + 1} of {len(self._ready)} had no frame back within {READY_S:g} s") from None

    async def run(self, seconds: float, *, counted: bool) -> None:
        """Send until the time is over. The schedule does not wait for answers."""
        gap = FRAME_S / len(self._sessions)
        began, due, total = time.perf_counter(), 0, round(seconds / gap)
        while due < total:
            now = time.perf_counter()
            while due < total and began + due * gap <= now:
                index = due % len(self._sessions)
                if counted:
                    self.late_ms.append((now - began - due * gap) * 1_000)
                    self.awaited.add((index, self._sessions[index].sequence))
                    self.sent += 1
                self._send(index)
                due += 1
            # Event-loop timers have a resolution of 1 ms; a shorter sleep would spin and take CPU from the measured system.
            await asyncio.sleep(max(TIMER_S, began + due * gap - time.perf_counter()))

    async def drained(self) -> None:
        """Wait for outstanding frames, `DRAIN_S` at most.

        Frames are sent meanwhile, as by a microphone: a system that collects them into larger pieces would otherwise never return the last
        ones."""
        end = time.perf_counter() + DRAIN_S
        while self.awaited and time.perf_counter() < end:
            for index in range(len(self._sessions)):
                self._send(index)
            await asyncio.sleep(FRAME_S)

    def _send(self, index: int) -> None:
        session = self._sessions[index]
        pcm = payload(Sent(index, session.sequence, time.perf_counter_ns()))
        session.socket.send_binary(frames.pack(frames.PCM16, 0, session.sequence, 0, pcm))
        session.sequence += 1

    def _heard(self, index: int) -> Callable[[bytes], None]:
        finder = Finder()

        def take(frame: bytes) -> None:
            for sent in finder.take(frame[frames.PREFIX_SIZE :]):
                self._ready[index].set()
                # Repeated frames and frames of another call do not count.
                if sent.session == index and (index, sent.number) in self.awaited:
                    self.awaited.remove((index, sent.number))
                    self.rtt_ms.append((time.perf_counter_ns() - sent.sent_ns) / 1e6)

        return take


async def echo(task: Task) -> EchoResult:
    """Send microphone frames and measure the time until each is back; raises `TimeoutError` when a session never answers."""
    sessions = await open_sessions(task)
    try:
        load = Load(sessions)
        await load.first()
        await load.run(task.warm_s, counted=False)
        watched = {name: [psutil.Process(pid) for pid in pids] for name, pids in task.pids.items()}
        before, own, began = _cpu(watched), time.process_time(), time.perf_counter()
        await load.run(task.seconds, counted=True)
        after, own_after, took = _cpu(watched), time.process_time(), time.perf_counter() - began
        await load.drained()
        back, lost = list(load.rtt_ms), len(load.awaited)
    finally:
        await end_sessions(sessions, bare=task.bare)
    return EchoResult(
        sessions=task.sessions,
        frames=load.sent,
        rate=load.sent / took,
        lost=lost,
        rtt_ms=figures.series(back, lost=lost),
        late_ms=figures.series(load.late_ms),
        cpu_us={name: (after[name] - before[name]) / load.sent * 1e6 for name in watched},
        client_cpu=(own_after - own) / took,
    )


def _cpu(watched: dict[str, list[psutil.Process]]) -> dict[str, float]:
    return {name: sum(sum(process.cpu_times()[:2]) for process in processes) for name, processes in watched.items()}


async def main(task: Task) -> None:
    """Run one task and print its result as one line of JSON."""
    check(task)
    found = await echo(task)
    sys.stdout.write(msgspec.json.encode(found).decode() + "\n")


if __name__ == "__main__":
    uvloop.run(main(msgspec.json.decode(sys.argv[1].encode(), type=Task)))
