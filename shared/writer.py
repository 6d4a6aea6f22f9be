"""Appending to the log: one writer's events of one session, in order, each exactly once.

Every event carries its id, so a retry after a lost acknowledgement stores nothing twice. A fenced writer also carries the
position of the last event under its own prefix: if anybody else wrote there since, the server refuses, and the
writer stops for good with `Conflict`. Only one append of a session is in flight, which keeps the order through
any loss of the connection; sessions go side by side.

A crash here loses the events that were not yet acknowledged; nobody has acted on them.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable
from typing import Final

from nats.errors import Error as NatsError
from nats.js.api import Header
from nats.js.errors import APIError, BadRequestError

from shared import bus, events
from shared.errors import Code, Conflict, Unavailable, VoxbridgeError
from shared.log import Log

PENDING_LIMIT: Final = 2048
"""Events that may wait for the log in one session."""

ACK_TIMEOUT_S: Final = 2.0
GIVE_UP_S: Final = 30.0
"""How long an append is tried while the log does not answer."""

_FILTER: Final = "Nats-Expected-Last-Subject-Sequence-Subject"
_WRONG_LAST_SEQUENCE: Final = 10071
_BACK_OFF_S: Final = (0.05, 0.1, 0.2, 0.4, 0.8, 1.0)

_log = logging.getLogger(__name__)


class SessionWriter:
    """Appends the events of one writer in one session."""

    def __init__(
        self,
        log: Log,
        sid: str,
        writer: str,
        *,
        stem: str = "",
        number: int = 0,
        last_seq: int = 0,
        fenced: bool = True,
        on_failed: Callable[[VoxbridgeError], None] | None = None,
    ) -> None:
        """`stem` makes the ids unique where several processes write under one prefix without a fence;
        `number` and `last_seq` continue where the log ends."""
        self.sid = sid
        self.writer = writer
        self.number = number
        self.last_seq = last_seq
        self.failed: VoxbridgeError | None = None
        self._log = log
        self._stem = f"{sid}.{writer}.{stem}." if stem else f"{sid}.{writer}."
        self._fence = bus.stored_subject(sid, writer) if fenced else ""
        self._on_failed = on_failed
        self._queue: deque[tuple[str, str, bytes, asyncio.Future[int] | None]] = deque()
        self._drain: asyncio.Task[None] | None = None

    def submit(self, event: events.Event, *, ts: int, cause: int | str | None, acked: asyncio.Future[int] | None = None) -> str:
        """Queue an event; returns its id. `acked` gets its log position.

        Raises `OVERLOADED` when `PENDING_LIMIT` events wait, and the error that stopped the writer if one did.
        """
        if self.failed is not None:
            raise self.failed
        if len(self._queue) >= PENDING_LIMIT:
            raise VoxbridgeError(
                Code.OVERLOADED, f"The log is behind: {PENDING_LIMIT} events of this session wait for it.", limit=PENDING_LIMIT
            )
        kind = events.kind_of(event)
        id = f"{self._stem}{self.number}"
        payload = events.encode(event, id=id, sid=self.sid, ts=ts, cause=cause)
        self.number += 1
        self._queue.append((id, bus.event_subject(self.sid, self.writer, kind.visible, kind.name), payload, acked))
        if self._drain is None:
            self._drain = asyncio.create_task(self._run())
        return id

    async def append(self, event: events.Event, *, ts: int, cause: int | str | None) -> int:
        """Append an event and wait for its log position."""
        acked: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        self.submit(event, ts=ts, cause=cause, acked=acked)
        return await acked

    async def flushed(self) -> None:
        """Wait until nothing is queued; raises what stopped the writer."""
        while self._drain is not None:
            await asyncio.shield(self._drain)
        if self.failed is not None:
            raise self.failed

    async def _run(self) -> None:
        try:
            while self._queue:
                id, subject, payload, acked = self._queue[0]
                self.last_seq = await self._publish(id, subject, payload)
                self._queue.popleft()
                if acked is not None and not acked.done():
                    acked.set_result(self.last_seq)
        except VoxbridgeError as error:
            self._fail(error)
        finally:
            self._drain = None

    def _fail(self, error: VoxbridgeError) -> None:
        self.failed = error
        _log.error("session %s: the %s writer stopped: %s", self.sid, self.writer, error.message)
        for *_, acked in self._queue:
            if acked is not None and not acked.done():
                acked.set_exception(error)
        self._queue.clear()
        if self._on_failed is not None:
            self._on_failed(error)

    async def _publish(self, id: str, subject: str, payload: bytes) -> int:
        headers: dict[str, str] = {Header.MSG_ID: id}
        if self._fence:
            headers[Header.EXPECTED_LAST_SUBJECT_SEQUENCE] = str(self.last_seq)
            headers[_FILTER] = self._fence
        deadline = asyncio.get_running_loop().time() + GIVE_UP_S
        attempt = 0
        while True:
            try:
                ack = await self._log.js.publish(subject, payload, timeout=ACK_TIMEOUT_S, headers=headers)
            except BadRequestError as error:
                if error.err_code != _WRONG_LAST_SEQUENCE:
                    raise VoxbridgeError(Code.INTERNAL, f"The log refused an event: {error.description}.", retryable=False) from error
                # The server checks the position before the id, so our own earlier try, stored but never
                # acknowledged, looks like somebody else's write until we read what is there.
                seq, stored_id = await self._log.position(self.sid, self.writer)
                if stored_id == id:
                    return seq
                raise Conflict(f"Another process writes the {self.writer} events of session {self.sid}.") from error
            except (TimeoutError, NatsError, APIError) as error:
                if asyncio.get_running_loop().time() > deadline:
                    raise Unavailable(f"The event log has not taken an event for {GIVE_UP_S:.0f} s: {error}.") from error
                _log.warning("session %s: append tried again: %s", self.sid, error or type(error).__name__)
                await asyncio.sleep(_BACK_OFF_S[min(attempt, len(_BACK_OFF_S) - 1)])
                attempt += 1
            else:
                return ack.seq
