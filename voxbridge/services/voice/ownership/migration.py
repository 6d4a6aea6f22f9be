"""Moves of sessions to another worker: `vx.svc.voice.move`, requested by an operator.

Every worker receives the request, and only the owner of the session answers it. The owner asks the other workers for room
(`vx.svc.voice.room`). A worker with room reserves a place for `PROMISE_S` and says so; the first to answer gets the session. Only then is
the session released, as for a drain. Its lease is handed over, not freed: no other worker can take it for the three seconds that a lease
lasts. Owns the reserved places and the moves in progress. Does not own the release (`session`) nor the takeover (`orphans`). A crash
here loses a request that was not answered yet; a session between two workers is an orphan as soon as its lease runs out.
"""

from __future__ import annotations

import asyncio
import logging
from typing import Final, Protocol

import msgspec
from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.errors import Error as NatsError
from nats.micro.request import ERROR_CODE_HEADER, ERROR_HEADER, Request

from voxbridge.services.voice import questions
from voxbridge.services.voice.session.session import Session
from voxbridge.shared.bus import subjects
from voxbridge.shared.errors import Code, Conflict, Unavailable, VoxbridgeError
from voxbridge.shared.store.store import Store

MOVE: Final = "vx.svc.voice.move"
ROOM: Final = "vx.svc.voice.room"
"""Subject on which the other workers are asked for room for a session."""

RELEASED: Final = "vx.svc.voice.released"
"""Subject that announces a released session, so that the other workers look at once. The payload is its id and, if the session was
handed to a worker, a blank and that worker."""

ROOM_S: Final = 1.0
"""Seconds that the other workers may take to answer that they have room."""

PROMISE_S: Final = 5.0
"""Seconds for which a place is reserved: longer than the release of a session in the middle of a turn takes."""

LEAVE_S: Final = 5.0
"""Seconds within which a session that is being moved must be released."""

AT_ONCE: Final = 32
"""Number of moves from one worker at a time."""

_log = logging.getLogger(__name__)


class Ask(msgspec.Struct, frozen=True):
    """Request to move a session to the worker `to`; if that is empty, to any worker that has room."""

    sid: str
    to: str = ""


class Moved(msgspec.Struct, frozen=True, rename={"source": "from"}):
    """Result of a move: the worker that had the session, and the worker it was handed to."""

    source: str
    to: str


class Room(msgspec.Struct, frozen=True):
    """Answer of a worker that was asked for room."""

    worker: str
    free: bool


class SessionOwner(Protocol):
    """The sessions of this process."""

    def session(self, sid: str) -> Session | None:
        """Return a session of this process, or None."""

    def room(self) -> int:
        """Return how many more sessions fit, beyond those that were promised a place."""

    def draining(self) -> bool:
        """Tell whether the process is being stopped."""


class Migrations:
    """The moves from this worker, and the places that it reserves for moves to it."""

    def __init__(self, nc: Client, store: Store, worker: str, owner: SessionOwner) -> None:
        self._nc = nc
        self._store = store
        self._worker = worker
        self._owner = owner
        self._moving: dict[str, asyncio.Task[None]] = {}
        self._leaving: dict[str, tuple[str, asyncio.Future[Moved]]] = {}
        self._promised: dict[str, asyncio.TimerHandle] = {}

    def promised(self) -> set[str]:
        """Return the sessions of other workers that a place is reserved for."""
        return set(self._promised)

    def settle(self, sid: str) -> None:
        """Drop the place reserved for a session, such as one that was released to a worker."""
        timer = self._promised.pop(sid, None)
        if timer is not None:
            timer.cancel()

    async def serve(self, request: Request) -> None:
        """Take the request of an operator. An error is sent as a typed error; a request for another worker's session is not answered."""
        try:
            ask = questions.read(request.data, Ask)
            session = self._owner.session(ask.sid)
            if session is None:
                return
            self._check(session, ask)
        except VoxbridgeError as error:
            await _refuse(request, error)
            return
        task = self._moving[ask.sid] = asyncio.create_task(self._serve(request, session, ask))
        task.add_done_callback(lambda _: self._moving.pop(ask.sid, None))

    async def asked_for_room(self, message: Msg) -> None:
        """Promise a place to another worker's session. A worker without room stays silent, unless it is asked by name."""
        try:
            ask = questions.read(message.data, Ask)
        except VoxbridgeError as error:
            _log.warning("a worker asks for room, and cannot be understood: %s", error.message)
            return
        if self._owner.session(ask.sid) is not None or ask.to not in ("", self._worker):
            return
        free = not self._owner.draining() and (ask.sid in self._promised or self._owner.room() > 0)
        if free:
            self.settle(ask.sid)
            self._promised[ask.sid] = asyncio.get_running_loop().call_later(PROMISE_S, self.settle, ask.sid)
        if free or ask.to:
            await subjects.publish(self._nc, message.reply, msgspec.json.encode(Room(self._worker, free)))

    async def stop(self) -> None:
        """Drop all reserved places, and return when every request is answered. The sessions of this process are gone by then."""
        for sid in self.promised():
            self.settle(sid)
        while self._moving:
            await asyncio.wait(self._moving.values())

    async def closed(self, session: Session) -> bool:
        """Finish the move of a session that is over here. Returns whether it was handed to another worker, which then has its lease."""
        to, waiter = self._leaving.pop(session.sid, ("", None))
        if waiter is None:
            return False
        try:
            if session.state.phase == "ended":
                raise Conflict(f"Session {session.sid} ended before it could be moved.")
            if not session.state.ownership.released or not await self._store.hand_over_lease(session.sid, self._worker, to):
                raise Unavailable(f"Session {session.sid} was lost while it was moved; another worker goes on with it.")
        except VoxbridgeError as error:
            _settle(waiter, error)
            return False
        await subjects.publish(self._nc, RELEASED, f"{session.sid} {to}".encode())
        _settle(waiter, Moved(self._worker, to))
        return True

    def _check(self, session: Session, ask: Ask) -> None:
        if ask.to == self._worker:
            raise VoxbridgeError(Code.INVALID_ARGUMENT, f"{ask.to} holds session {ask.sid} already.", field="to")
        if ask.sid in self._moving or session.state.ownership.released:
            raise Conflict(f"Session {ask.sid} is being moved already.")
        if self._owner.draining():
            raise Conflict(f"{self._worker} is being stopped and gives all of its sessions up.")
        if session.state.phase == "ended":
            raise Conflict(f"Session {ask.sid} has ended.")
        if session.state.phase != "open":
            raise Unavailable(f"Session {ask.sid} is only beginning; try again.", retry_after_ms=1_000)
        if len(self._moving) >= AT_ONCE:
            message = f"{self._worker} moves {AT_ONCE} sessions at a time; try again."
            raise VoxbridgeError(Code.OVERLOADED, message, limit=AT_ONCE, retry_after_ms=1_000)

    async def _serve(self, request: Request, session: Session, ask: Ask) -> None:
        try:
            moved = await self._move(session, ask)
        except VoxbridgeError as error:
            await _refuse(request, error)
        else:
            await _respond(request, msgspec.json.encode(moved))

    async def _move(self, session: Session, ask: Ask) -> Moved:
        to = await self._find(ask)
        if self._owner.session(ask.sid) is not session or session.state.ownership.released:
            raise Conflict(f"Session {ask.sid} ended, or was given up, before it could be moved.")
        waiter: asyncio.Future[Moved] = asyncio.get_running_loop().create_future()
        self._leaving[ask.sid] = to, waiter
        session.drain("move")
        try:
            async with asyncio.timeout(LEAVE_S):
                return await waiter
        except TimeoutError as error:
            raise VoxbridgeError(Code.TIMED_OUT, f"Session {ask.sid} was not given up within {LEAVE_S:g} s.") from error

    async def _find(self, ask: Ask) -> str:
        """Return the worker that reserved a place. Raises `NOT_FOUND` for an unknown worker, `OVERLOADED` when there is no room."""
        try:
            answer = await self._nc.request(ROOM, msgspec.json.encode(ask), timeout=ROOM_S)
            found = msgspec.json.decode(answer.data, type=Room)
        except (TimeoutError, NatsError) as error:
            if ask.to:
                raise VoxbridgeError(Code.NOT_FOUND, f"There is no voice worker {ask.to[:64]!r}; nothing was moved.", field="to") from error
            raise VoxbridgeError(Code.OVERLOADED, "No other voice worker has room; nothing was moved.", retry_after_ms=5_000) from error
        except msgspec.DecodeError as error:
            raise VoxbridgeError(Code.INTERNAL, "The answer of another worker cannot be read; nothing was moved.") from error
        if not found.free:
            raise VoxbridgeError(Code.OVERLOADED, f"{found.worker} has no room; nothing was moved.", retry_after_ms=5_000)
        return found.worker


async def _refuse(request: Request, error: VoxbridgeError) -> None:
    headers = {ERROR_HEADER: error.message, ERROR_CODE_HEADER: error.code.value}
    await _respond(request, msgspec.json.encode(error.as_dict()), headers)


async def _respond(request: Request, answer: bytes, headers: dict[str, str] | None = None) -> None:
    try:
        await request.respond(answer, headers=headers)
    except (NatsError, ValueError) as error:  # the bus is away, or the request has no reply subject
        _log.warning("who asked for a move cannot be told what came of it: %s", error)


def _settle(waiter: asyncio.Future[Moved], found: Moved | VoxbridgeError) -> None:
    if waiter.done():
        return
    if isinstance(found, Moved):
        waiter.set_result(found)
    else:
        waiter.set_exception(found)
