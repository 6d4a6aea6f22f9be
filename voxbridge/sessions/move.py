"""Move of a call to another worker: the operator's side of `vx.svc.voice.move`.

Owns the request, and the report once another worker goes on with the call. Does not own the moving
(`voxbridge.services.voice.ownership.migration`) nor how it is shown (`voxbridge.commands.sessions`). A crash here leaves the call with the
worker that has it.
"""

from __future__ import annotations

import asyncio
import json
from contextlib import suppress
from typing import Any, Final

import msgspec
from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.errors import Error as NatsError
from nats.errors import NoRespondersError
from nats.micro.request import ERROR_CODE_HEADER

from voxbridge.shared import events
from voxbridge.shared.bus import subjects
from voxbridge.shared.errors import Code, Conflict, Unavailable, VoxbridgeError
from voxbridge.shared.events.voice import SessionEnded, SessionOwned, SessionReleased, SessionRestored
from voxbridge.shared.log.feed import Feed
from voxbridge.shared.log.reader import Log

SUBJECT: Final = "vx.svc.voice.move"
STATS: Final = "$SRV.STATS.voxbridge-voice"
ANSWER_S: Final = 8.0
"""Seconds within which the owner must have given the session up: it asks the others, and may finish its turn."""

RESTORED_S: Final = 15.0
"""Seconds within which another worker must go on with the session: at worst once its lease has expired."""

LISTEN_S: Final = 0.3
"""Seconds that the workers may take to answer."""


class Report(msgspec.Struct, frozen=True, kw_only=True, rename={"source": "from"}):
    """Result of a move. `pause_ms` is the time between the log's `session.released` and its `session.restored`."""

    session: str
    source: str
    to: str
    pause_ms: int


class Worker(msgspec.Struct, frozen=True, kw_only=True):
    """A voice worker as it describes itself. `loop_lag_p95_ms` and `cpu_share` of one core are over the last ten seconds."""

    process: str
    sessions: int = 0
    room: int = 0
    loop_lag_p95_ms: float = 0.0
    cpu_share: float = 0.0


async def move(log: Log, sid: str, to: str = "") -> Report:
    """Move a session, to the worker `to` if one is named, and wait until it goes on there.

    Raises `NOT_FOUND` for an unknown worker, `CONFLICT` for a session that has ended, `OVERLOADED` when no other worker has room,
    `UNAVAILABLE` when no worker holds it, `TIMED_OUT` when it was given up and is not carried on yet.
    """
    last = await log.last([subjects.stored_subject(sid, "voice", "c", end) for end in (subjects.SESSION, "session.ended")])
    for ended in (one.event for one in last):
        if isinstance(ended, SessionEnded):
            raise Conflict(f"Session {sid} has ended ({ended.reason}).")
    waiting = _Waiting()
    feed = Feed(log, sid, waiting.take, writer="voice", after=(await log.position(sid, "voice"))[0])
    await feed.start()
    try:
        await _ask(log.nc, sid, to)
        async with asyncio.timeout(RESTORED_S):
            return await waiting.report(sid)
    except TimeoutError as error:
        held = f"{waiting.owner} has it" if waiting.owner else "nobody has it yet"
        message = f"Session {sid} was given up and does not go on after {RESTORED_S:g} s; {held}."
        raise VoxbridgeError(Code.TIMED_OUT, message) from error
    finally:
        await feed.stop()


async def workers(nc: Client) -> list[Worker]:
    """Return the voice workers that answer within `LISTEN_S`, those with the most room first."""
    found: list[Worker] = []

    async def take(message: Msg) -> None:
        with suppress(ValueError, TypeError, KeyError, IndexError, msgspec.ValidationError):
            found.append(_worker(json.loads(message.data)))

    inbox = nc.new_inbox()
    subscription = await nc.subscribe(inbox, cb=take)
    try:
        await nc.publish(STATS, b"", reply=inbox)
        await asyncio.sleep(LISTEN_S)
    finally:
        await subscription.unsubscribe()
    return sorted(found, key=lambda one: (-one.room, one.process))


def _worker(stats: dict[str, Any]) -> Worker:
    return msgspec.convert({"process": stats["metadata"]["process"], **stats["endpoints"][0]["data"]}, Worker)


class _Waiting:
    """Observer of a session's events as it moves from one worker to the next."""

    def __init__(self) -> None:
        self.owner = ""
        self._from = ""
        self._released_at = 0
        self._done: asyncio.Future[events.Recorded] = asyncio.get_running_loop().create_future()

    def take(self, recorded: events.Recorded) -> None:
        """Take an event of the voice service."""
        match recorded.event:
            case SessionReleased(worker=worker):
                self._from, self._released_at = worker, recorded.ts
            case SessionOwned(worker=worker) if self._from:
                self.owner = worker
            case SessionRestored() | SessionEnded() if self._from and not self._done.done():
                self._done.set_result(recorded)

    async def report(self, sid: str) -> Report:
        """Return the result of the move, once it is known."""
        done = await self._done
        if isinstance(done.event, SessionEnded):
            raise Conflict(f"Session {sid} was given up and then ended ({done.event.reason}).")
        return Report(session=sid, source=self._from, to=self.owner, pause_ms=max(0, done.ts - self._released_at) // 1_000)


async def _ask(nc: Client, sid: str, to: str) -> None:
    try:
        answer = await nc.request(SUBJECT, msgspec.json.encode({"sid": sid, "to": to}), timeout=ANSWER_S)
    except NoRespondersError as error:
        raise Unavailable("No voice worker is running.") from error
    except (TimeoutError, NatsError) as error:
        raise Unavailable(f"No voice worker says within {ANSWER_S:g} s that it holds session {sid}; try again.") from error
    if ERROR_CODE_HEADER in (answer.headers or {}):
        raise await _refused(nc, answer.data)


async def _refused(nc: Client, payload: bytes) -> VoxbridgeError:
    told = json.loads(payload)
    code, message = Code(told["code"]), str(told["message"])
    if code in (Code.NOT_FOUND, Code.OVERLOADED):
        there = ", ".join(f"{one.process} (room for {one.room})" for one in await workers(nc))
        message = f"{message} Workers: {there}." if there else message
    return VoxbridgeError(code, message, field=told.get("field"), limit=told.get("limit"), retry_after_ms=told.get("retry_after_ms"))
