"""Writer of the log: appends one writer's events of one session, in order, each exactly once.

Every event carries its id, so a retry after a lost acknowledgement stores nothing twice. A fenced writer also sends the position of the
last event under its own prefix: if another process wrote there since, the server refuses the append, and the writer stops for good with
`Conflict`. The server takes an id once, whoever sends it, so the id of a message ends in a code of the writer's own, which nobody can
foretell, and what is acknowledged as stored before is looked at: an id that another process used up is replaced. Only one append of a
session is in flight, which keeps the order through any loss of the connection; different sessions append in parallel.

A crash here loses the events that were not yet acknowledged; no process has acted on them.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections import deque
from collections.abc import Awaitable, Callable
from contextlib import suppress
from hashlib import blake2b
from typing import Final, NamedTuple

from nats.errors import Error as NatsError
from nats.js.api import Header
from nats.js.errors import APIError, BadRequestError

from voxbridge.shared import events
from voxbridge.shared.bus import subjects
from voxbridge.shared.errors import Code, Conflict, Unavailable, VoxbridgeError
from voxbridge.shared.log.append_stats import is_full
from voxbridge.shared.log.quotas import Quota
from voxbridge.shared.log.reader import Log

PENDING_LIMIT: Final = 2048
"""Events that may wait for the log in one session."""

PENDING_BYTES: Final = 16 * 1024 * 1024
"""Bytes that may wait for the log in one session."""

EVENT_LIMIT: Final = 1024 * 1024 - 4096
"""Bytes of an event. The server counts the headers too, and closes the connection of a client that sends more than 1 MiB."""

ACK_TIMEOUT_S: Final = 2.0
GIVE_UP_S: Final = 30.0
"""Seconds that an append is retried while the log does not answer."""

FULL_GIVE_UP_S: Final = 600.0
"""Seconds that an append is retried while NATS is up and its disk takes nothing; `PENDING_LIMIT` bounds the queue meanwhile."""

_NOT_COUNTED: Final = frozenset({"session.requested", "session.end_requested", "client.connected", "client.disconnected"})
"""Events that a quota never holds back: without them no service knows that a client came or went."""

_FILTER: Final = "Nats-Expected-Last-Subject-Sequence-Subject"
OUT_OF_TURN: Final = frozenset({10071, 10158, 10164})
"""Error codes of an append that another one got ahead of: its position is no longer the last (10071; 10164 while the other append is still
on its way to the replicas), or an append with the same id is on its way (10158)."""

_WRONG_LAST_SEQUENCE: Final = 10071
_BACK_OFF_S: Final = (0.05, 0.1, 0.2, 0.4, 0.8, 1.0)

_log = logging.getLogger(__name__)


class _Pending(NamedTuple):
    id: str
    subject: str
    payload: bytes
    acked: asyncio.Future[int] | None


class End(NamedTuple):
    """The end of a writer's events in the log: the number of the next event, and the position of the last one."""

    number: int = 0
    last_seq: int = 0


class Policy(NamedTuple):
    """Conduct of a writer beside writing."""

    on_failed: Callable[[VoxbridgeError], None] | None = None
    """Called with the error that stopped the writer."""

    hold: Callable[[], Awaitable[None]] | None = None
    """Awaited before each try of an append."""

    give_up_s: float = GIVE_UP_S
    """Seconds that an append is retried while the log does not answer."""

    quota: Quota | None = None
    """Limit of what is written, in addition to the limits on what waits."""


_EMPTY: Final = End()
_USUAL: Final = Policy()


class SessionWriter:
    """Queue and appender of one writer's events in one session."""

    def __init__(
        self,
        log: Log,
        sid: str,
        writer: str,
        *,
        stem: str = "",
        fenced: bool = True,
        end: End = _EMPTY,
        policy: Policy = _USUAL,
    ) -> None:
        """Set up a writer that goes on after `end`. `stem` makes the ids unique where several processes write under one prefix without a
        fence."""
        self.sid = sid
        self.writer = writer
        self.number, self.last_seq = end
        self.failed: VoxbridgeError | None = None
        self._log = log
        self._stem = f"{sid}.{writer}.{stem}." if stem else f"{sid}.{writer}."
        self._key = secrets.token_bytes(32)
        self._fence = subjects.stored_subject(sid, writer) if fenced else ""
        self._policy = policy
        self._queue: deque[_Pending] = deque()
        self._bytes = 0
        self._drain: asyncio.Task[None] | None = None

    def message_id(self, event_id: str) -> str:
        """Return the id by which the server knows an event again: another one for each writer, though two that continue at the same number
        make the same ids of events."""
        return f"{event_id}.{blake2b(event_id.encode(), key=self._key, digest_size=8).hexdigest()}"

    def submit(self, event: events.Event, *, ts: int, cause: int | str | None, acked: asyncio.Future[int] | None = None) -> str:
        """Queue an event; return its id. `acked` gets its log position.

        Raises `OVERLOADED` when `PENDING_LIMIT` events or `PENDING_BYTES` wait or the quota is used up, `TOO_LARGE` for an event over
        `EVENT_LIMIT`, `INTERNAL` for an event of another writer, and the error that stopped the writer, if any.
        """
        if self.failed is not None:
            raise self.failed
        kind = events.kind_of(event)
        if kind.writer != self.writer:
            raise VoxbridgeError(Code.INTERNAL, f"{kind.name} is written by {kind.writer}, not by {self.writer}.", retryable=False)
        event_id = f"{self._stem}{self.number}"
        payload = events.encode(event, event_id=event_id, sid=self.sid, ts=ts, cause=cause)
        if len(payload) > EVENT_LIMIT:
            raise VoxbridgeError(
                Code.TOO_LARGE,
                f"An event has at most {EVENT_LIMIT} bytes; this {kind.name} has {len(payload)}.",
                field=kind.name,
                limit=EVENT_LIMIT,
            )
        if len(self._queue) >= PENDING_LIMIT or self._bytes + len(payload) > PENDING_BYTES:
            raise VoxbridgeError(
                Code.OVERLOADED,
                f"The log is behind: {len(self._queue)} events of this session, {self._bytes} bytes, wait for it.",
                limit=PENDING_LIMIT if len(self._queue) >= PENDING_LIMIT else PENDING_BYTES,
            )
        if self._policy.quota is not None and kind.name not in _NOT_COUNTED:
            self._policy.quota.take(len(payload))
        self.number += 1
        self._bytes += len(payload)
        self._queue.append(_Pending(event_id, subjects.event_subject(self.sid, self.writer, kind.visible, kind.name), payload, acked))
        if self._drain is None:
            self._drain = asyncio.create_task(self._run())
        return event_id

    async def append(self, event: events.Event, *, ts: int, cause: int | str | None) -> int:
        """Append an event and wait for its log position."""
        acked: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        self.submit(event, ts=ts, cause=cause, acked=acked)
        return await acked

    async def flushed(self) -> None:
        """Wait until the queue is empty; raises the error that stopped the writer."""
        while self._drain is not None:
            await asyncio.wait({self._drain})
        if self.failed is not None:
            raise self.failed

    def stop(self, error: VoxbridgeError) -> None:
        """Stop for good, as after a conflict: nothing more is appended, and waiting callers get `error`."""
        if self.failed is None:
            self._fail(error)
            if self._drain is not None:
                self._drain.cancel()
                self._drain = None  # a task cancelled before its first step never runs its `finally`

    async def _run(self) -> None:
        try:
            while self._queue:
                head = self._queue[0]
                self.last_seq = await self._append(head)
                self._queue.popleft()
                self._bytes -= len(head.payload)
                if head.acked is not None and not head.acked.done():
                    head.acked.set_result(self.last_seq)
        except VoxbridgeError as error:
            self._fail(error)
        except Exception as error:  # noqa: BLE001 - otherwise the events queued behind it would wait forever
            _log.exception("session %s: append failed.", self.sid)
            self._fail(VoxbridgeError(Code.INTERNAL, f"An event could not be appended: {error!r}.", retryable=False))
        finally:
            self._drain = None

    def _fail(self, error: VoxbridgeError) -> None:
        self.failed = error
        _log.error("session %s: the %s writer stopped: %s", self.sid, self.writer, error.message)
        for pending in self._queue:
            if pending.acked is not None and not pending.acked.done():
                pending.acked.set_exception(error)
        self._queue.clear()
        self._bytes = 0
        if self._policy.on_failed is not None:
            self._policy.on_failed(error)

    async def _append(self, event: _Pending) -> int:
        number, acknowledged = self._log.appends.begin(), False
        try:
            seq = await self._publish(event)
            acknowledged = True
            return seq
        finally:
            self._log.appends.end(number, acknowledged=acknowledged)

    async def _publish(self, event: _Pending) -> int:
        headers: dict[str, str] = {Header.MSG_ID: self.message_id(event.id)}
        if self._fence:
            headers[Header.EXPECTED_LAST_SUBJECT_SEQUENCE] = str(self.last_seq)
            headers[_FILTER] = self._fence
        loop = asyncio.get_running_loop()
        begun = loop.time()
        attempt = 0
        while True:
            if self._policy.hold is not None:
                await self._policy.hold()
            try:
                return await self._try(event, headers)
            except (TimeoutError, NatsError, Unavailable) as error:
                full = is_full(error)
                self._log.appends.refused(full=full)
                # A full or failing disk leaves the bus running, so the call goes on and the log can still catch up.
                patience_s = max(self._policy.give_up_s, FULL_GIVE_UP_S) if full or self._stuck(error) else self._policy.give_up_s
                if loop.time() - begun > patience_s:
                    raise Unavailable(f"The event log has not taken an event for {patience_s:g} s: {error}.") from error
                _log.warning("session %s: append tried again: %s", self.sid, error or type(error).__name__)
                await self._pause(_BACK_OFF_S[min(attempt, len(_BACK_OFF_S) - 1)])
                attempt += 1

    def _stuck(self, error: BaseException) -> bool:
        """Return whether the server is connected and yet gives no answer, as it does when its disk takes nothing."""
        return isinstance(error, TimeoutError) and self._log.nc.is_connected

    async def _pause(self, seconds: float) -> None:
        """Wait before the next try; a reconnect ends the wait early."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds) as bound:
                with self._log.appending(bound):
                    await asyncio.get_running_loop().create_future()

    async def _try(self, event: _Pending, headers: dict[str, str]) -> int:
        timeout_s = min(ACK_TIMEOUT_S, self._policy.give_up_s)
        try:
            async with asyncio.timeout(timeout_s) as bound:
                with self._log.appending(bound):
                    acked = await self._log.js.publish(event.subject, event.payload, timeout=timeout_s, headers=headers)
            return acked.seq if not acked.duplicate else await self._stored_before(event, headers, acked.seq)
        except APIError as error:
            if error.err_code not in OUT_OF_TURN:
                if isinstance(error, BadRequestError):
                    message = f"The log refused an event: {error.description}."
                    raise VoxbridgeError(Code.INTERNAL, message, retryable=False) from error
                raise
            return await self._whose(headers, error)

    async def _stored_before(self, event: _Pending, headers: dict[str, str], seq: int) -> int:
        """Return the position of an earlier try of ours. Raises `UNAVAILABLE`, for another try under a new id, if the id is used up by what
        another process stored elsewhere."""
        if await self._log.subject_at(self.sid, seq) in ("", event.subject):
            return seq
        self._key = secrets.token_bytes(32)
        headers[Header.MSG_ID] = self.message_id(event.id)
        raise Unavailable(f"The id of an event of session {self.sid} is used up by another process.")

    async def _whose(self, headers: dict[str, str], error: APIError) -> int:
        """Return the position of our own earlier try if it was stored without an acknowledgement. The server checks the position before the
        id, so such a retry looks like another process's append until the log is read. Raises `Conflict` if it was another process's.

        While the log holds neither append, one of them is on its way to the replicas and may still be lost with their leader. Then
        `UNAVAILABLE` is raised, so that the append is tried again.
        """
        if self._fence:
            seq, stored_id = await self._log.position(self.sid, self.writer)
            if stored_id == headers[Header.MSG_ID]:
                return seq
            if seq != self.last_seq or error.err_code == _WRONG_LAST_SEQUENCE:
                raise Conflict(f"Another process writes the {self.writer} events of session {self.sid}.") from error
        raise Unavailable(f"Another append is on its way to the replicas: {error.description}.") from error
