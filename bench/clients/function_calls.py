"""Callers of the tool executor: they append calls as the voice service does, and hear what becomes of them over the live copies of the log.

Owns the load and the check that every call ran and ended once. Does not own the servers nor the executors (`bench.stack`).
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from contextlib import asynccontextmanager
from typing import Final, NamedTuple

import nats
from nats.aio.client import Client
from nats.aio.msg import Msg

from voxbridge.shared import events
from voxbridge.shared.bus import subjects
from voxbridge.shared.events.tools import ToolCompleted, ToolFailed, ToolInterrupted, ToolStarted
from voxbridge.shared.events.voice import ToolCalled, UserSaid
from voxbridge.shared.ids import new_session_id
from voxbridge.shared.log.reader import Log, decode
from voxbridge.shared.log.writer import SessionWriter

FUNCTION: Final = "nothing"
PACK: Final = "bench.clients.empty_pack"
WITHIN_S: Final = 60.0
"""Seconds within which a call must have ended; a longer wait fails the measurement."""

DEADLINE_MS: Final = 60_000
_TOLD: Final = ("tool.started", "tool.completed", "tool.failed", "tool.interrupted")
_LIVE: Final = "vxc.*.tools.c.>"
_PENDING: Final = 64 * 1024 * 1024

Call = tuple[str, str]
"""Session id and call id."""


class Trip(NamedTuple):
    """Times of one call in ms."""

    append: float
    """From sending the call to the log's acknowledgement."""

    after: float
    """From the acknowledgement to hearing the result; 0 when the result was heard before."""


class Load(NamedTuple):
    """A period of load. `spent` is the processor time of the load itself in s."""

    calls: Sequence[Call]
    ended_at: Sequence[float]
    """Seconds from the beginning of the load at which each result was heard."""

    spent: float


def rate(ended_at: Iterable[float], begin: float, end: float) -> float:
    """Return the ends per second from `begin` to `end`; raises `ValueError` for an empty period."""
    if end <= begin:
        raise ValueError("the period is empty")
    return sum(begin <= at < end for at in ended_at) / (end - begin)


def faults(calls: Iterable[Call], recorded: Iterable[events.Recorded]) -> Iterator[str]:
    """Yield one sentence for each call that did not begin once and complete once, by what the log holds."""
    begun: Counter[Call] = Counter()
    completed: Counter[Call] = Counter()
    for one in recorded:
        if isinstance(one.event, ToolStarted):
            begun[one.sid, one.event.call_id] += 1
        elif isinstance(one.event, ToolCompleted):
            completed[one.sid, one.event.call_id] += 1
        elif isinstance(one.event, ToolFailed | ToolInterrupted):
            yield f"{one.event.call_id} of {one.sid} ended with {one.type}"
    for call in calls:
        if (begun[call], completed[call]) != (1, 1):
            yield f"{call[1]} of {call[0]} was begun {begun[call]} times and completed {completed[call]} times"


class Callers:
    """Sessions that call the empty function. Make them with `calling`."""

    def __init__(self, nc: Client, sessions: int) -> None:
        self.sids = [new_session_id() for _ in range(sessions)]
        self._nc = nc
        self._log = Log(nc)
        self._writers = {sid: SessionWriter(self._log, sid, "voice") for sid in self.sids}
        self._heard: dict[Call, asyncio.Future[float]] = {}
        self._calls = 0

    async def listen(self) -> None:
        """Hear the results of all sessions."""
        await self._nc.subscribe(_LIVE, cb=self._hear, pending_bytes_limit=_PENDING, pending_msgs_limit=-1)
        await self._nc.flush()

    async def one(self, sid: str) -> Trip:
        """Call once and wait for the result. Raises `TimeoutError` after `WITHIN_S`."""
        call_id, heard = self._next(sid)
        began = time.perf_counter()
        await self._writers[sid].append(_called(call_id), ts=_now_us(), cause=None)
        appended = time.perf_counter()
        async with asyncio.timeout(WITHIN_S):
            ended = await heard
        return Trip((appended - began) * 1_000, max(0.0, ended - appended) * 1_000)

    async def load(self, seconds: float, *, window: int) -> Load:
        """Keep `window` calls of each session open for `seconds`, then wait for all to end. Raises `TimeoutError` after `WITHIN_S`.

        Calls are published without waiting for the log's acknowledgement, so that the load costs little beside what it loads.
        """
        began, spent = time.perf_counter(), time.process_time()
        calls: list[Call] = []
        ended: list[float] = []

        async def lane(sid: str) -> None:
            while time.perf_counter() - began < seconds:
                call_id, heard = self._next(sid)
                event = _called(call_id)
                payload = events.encode(event, event_id=call_id, sid=sid, ts=_now_us(), cause=None)
                calls.append((sid, call_id))
                await self._nc.publish(subjects.event_subject(sid, "voice", True, events.kind_of(event).name), payload)
                ended.append(await heard - began)

        async with asyncio.timeout(seconds + WITHIN_S):
            await asyncio.gather(*(lane(sid) for sid in self.sids for _ in range(window)))
        return Load(calls, ended, time.process_time() - spent)

    async def appends(self, seconds: float) -> float:
        """Return how many events a second the log takes when every session appends one after the other, without an executor's work."""
        event = UserSaid(text="What time is it in Tokyo?", turn=1, source="speech")
        writers = [SessionWriter(self._log, new_session_id(), "voice") for _ in self.sids]
        began = time.perf_counter()

        async def lane(writer: SessionWriter) -> None:
            while time.perf_counter() - began < seconds:
                await writer.append(event, ts=0, cause=None)

        await asyncio.gather(*map(lane, writers))
        return sum(writer.number for writer in writers) / (time.perf_counter() - began)

    async def check(self, calls: Iterable[Call]) -> None:
        """Read the log; raises `ValueError` when a call did not run and complete exactly once."""
        recorded = [one for sid in self.sids async for one in self._log.read_all(sid, writer="tools", types=_TOLD)]
        found = list(faults(calls, recorded))
        if found:
            raise ValueError(f"{len(found)} calls did not happen once: {found[0]}")

    def _next(self, sid: str) -> tuple[str, asyncio.Future[float]]:
        self._calls += 1
        call_id = f"c{self._calls}"
        heard = self._heard[sid, call_id] = asyncio.get_running_loop().create_future()
        return call_id, heard

    async def _hear(self, message: Msg) -> None:
        recorded = decode(message)
        if isinstance(recorded.event, ToolCompleted | ToolFailed | ToolInterrupted):
            waiting = self._heard.pop((recorded.sid, recorded.event.call_id), None)
            if waiting is not None:
                waiting.set_result(time.perf_counter())


@asynccontextmanager
async def calling(url: str, sessions: int) -> AsyncIterator[Callers]:
    """Yield callers of as many new sessions on the server at `url`."""
    nc = await nats.connect(url)
    try:
        callers = Callers(nc, sessions)
        await callers.listen()
        yield callers
    finally:
        await nc.close()


def _called(call_id: str) -> ToolCalled:
    return ToolCalled(call_id=call_id, name=FUNCTION, arguments={}, kind="server", turn=1, deadline_ms=DEADLINE_MS)


def _now_us() -> int:
    return time.time_ns() // 1_000
