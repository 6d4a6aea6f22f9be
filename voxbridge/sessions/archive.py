"""Sessions written from the log into files and back, and as tests.

Owns such files: reading and writing them, and the test that is made of one. Does not own the format (`voxbridge.shared.log.session_file`).
A file or an import that fails halfway leaves nothing behind.
"""

from __future__ import annotations

import asyncio
import os
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO, Final, NamedTuple

from nats.errors import Error as NatsError
from nats.js.api import Header, PubAck
from nats.js.errors import APIError

from voxbridge.shared import events
from voxbridge.shared.bus import subjects
from voxbridge.shared.clock import SystemClock
from voxbridge.shared.errors import Code, Unavailable, VoxbridgeError
from voxbridge.shared.log import session_file
from voxbridge.shared.log.reader import Log, position, type_of
from voxbridge.shared.log.writer import OUT_OF_TURN

IN_FLIGHT: Final = 64
"""Events of an import that may wait for their acknowledgement."""

_FILTER: Final = "Nats-Expected-Last-Subject-Sequence-Subject"
_ACK_S: Final = 10.0


class Recording(NamedTuple):
    """A session that was read from a file."""

    sid: str
    log: list[events.Recorded]


async def count(log: Log, sid: str) -> int:
    """Return how many events of a session the log holds now."""
    try:
        info = await log.js.stream_info(subjects.stream_of(sid), subjects_filter=subjects.stored_subject(sid))
    except (TimeoutError, NatsError, APIError) as error:
        raise Unavailable(f"The event log does not answer: {error}.") from error
    return sum((info.state.subjects or {}).values())


async def export(log: Log, sid: str) -> AsyncIterator[bytes]:
    """Yield the lines of a session's file, read as they are asked for: what the log holds now, without later events.

    Raises `NOT_FOUND` when the log holds nothing of the session, `TOO_LARGE` for one that does not fit a file.
    """
    left = await count(log, sid)
    if not left:
        raise VoxbridgeError(Code.NOT_FOUND, "There is no session with this id.", field="session_id")
    if left > session_file.EVENTS_LIMIT:
        message = f"A file holds at most {session_file.EVENTS_LIMIT:,} events; this session has {left:,}."
        raise VoxbridgeError(Code.TOO_LARGE, message, limit=session_file.EVENTS_LIMIT)
    yield session_file.header(sid, exported_at_ms=SystemClock().now_us() // 1_000, events=left)
    after, more = 0, True
    while left and more:
        page = await log.page(sid, after=after)
        for stored in page.messages[:left]:
            after = position(stored)
            _, writer, visible = subjects.parse_event_subject((stored.headers or {})["Nats-Subject"])
            yield session_file.line(stored.data, seq=after, writer=writer, visible=visible, event_type=type_of(stored))
        left, more = max(0, left - len(page.messages)), page.more
    if left:
        raise VoxbridgeError(Code.NOT_FOUND, f"{left} events of this session left the log while it was read.", field="session_id")


def lines(path: Path) -> Iterator[tuple[int, session_file.Header, session_file.Line]]:
    """Yield each event of a file with the number of its line; raises `INVALID_ARGUMENT` or `TOO_LARGE` that names line and field."""
    try:
        with path.open("rb") as file:
            header = session_file.read_header(_next(file, 1) or b"{}")
            number = after = 0
            while text := _next(file, number + 2):
                number += 1
                if number > header.events:
                    raise session_file.cut(number, header)
                found = session_file.read_line(text, number + 1, after=after)
                after = found.seq
                yield number + 1, header, found
            if number != header.events:
                raise session_file.cut(number, header)
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise VoxbridgeError(Code.NOT_FOUND, f"{path} cannot be read: {reason}.", field="file") from error


def _next(file: BinaryIO, number: int) -> bytes:
    text = file.readline(session_file.LINE_LIMIT + 1)
    if len(text) > session_file.LINE_LIMIT:
        raise session_file.too_long(number)
    return text.strip() or text[:0]


def read(path: Path) -> Recording:
    """Return the session in a file, typed and upcast to the current version; raises as `lines`."""
    found: list[events.Recorded] = []
    sid = ""
    for number, header, line in lines(path):
        sid = header.sid
        found.append(session_file.recorded(line, sid, number))
    return Recording(sid, found)


async def load(log: Log, path: Path, *, sid: str = "") -> tuple[str, int, int]:
    """Write a file into the log, under its own session id or under `sid`; return the id, the events and when it began (µs).

    Raises `CONFLICT` when the log has a session with this id already; then, and after any other error, nothing of it is left.
    """
    for _ in lines(path):  # check the whole file before writing any of it
        pass
    writing: _Import | None = None
    began = 0
    try:
        for number, header, line in lines(path):
            if writing is None:
                writing, began = _Import(log, sid or header.sid), line.ts
            await writing.put(number, line)
        if writing is not None:
            await writing.settle()
    except BaseException:
        if writing is not None:
            await asyncio.shield(writing.undo())
        raise
    if writing is None:
        raise VoxbridgeError(Code.INVALID_ARGUMENT, "The file holds no event.", field="file")
    return writing.sid, len(writing.positions), began


class _Import:
    """An import in progress. Its first event is fenced; the positions of later ones are known from their acknowledgements."""

    def __init__(self, log: Log, sid: str) -> None:
        self.sid = sid
        self.positions: dict[int, int] = {}
        self.ours = False
        self._log = log
        self._mark = os.urandom(4).hex()
        self._last = 0
        self._waiting: dict[int, asyncio.Task[PubAck]] = {}

    async def put(self, number: int, line: session_file.Line) -> None:
        if len(self._waiting) >= IN_FLIGHT or not self._waiting.keys().isdisjoint(session_file.named(line)):
            await self.settle()
        # The event's new position is not known yet and not needed: its payload does not hold it, and positions only grow.
        new = session_file.renumbered(line, line.seq, self.positions, number)
        subject = subjects.event_subject(self.sid, line.writer, line.visible, line.type)
        headers: dict[str, str] = {Header.MSG_ID: f"{line.id}.{self._mark}", subjects.IMPORTED: "1"}
        if not self.ours:
            headers |= {Header.EXPECTED_LAST_SUBJECT_SEQUENCE: "0", _FILTER: subjects.stored_subject(self.sid)}
        sending = self._log.js.publish(subject, session_file.payload(new, self.sid), timeout=_ACK_S, headers=headers)
        # Tasks begin in the order of their creation, and each sends before it waits; `settle` checks that order.
        self._waiting[line.seq] = asyncio.create_task(sending)
        if not self.ours:
            await self.settle()
            self.ours = True

    async def settle(self) -> None:
        """Wait for the appends that are under way."""
        waiting, self._waiting = self._waiting, {}
        acks = await asyncio.gather(*waiting.values(), return_exceptions=True)
        for seq, ack in zip(waiting, acks, strict=True):
            if isinstance(ack, APIError) and ack.err_code in OUT_OF_TURN:
                message = f"The log has a session {self.sid} already. Import it under another id: --as NEW_SID, or --as new."
                raise VoxbridgeError(Code.CONFLICT, message, field="sid", retryable=False) from ack
            if isinstance(ack, BaseException):
                raise Unavailable(f"The event log did not take an event: {ack or type(ack).__name__}.") from ack
            if ack.seq <= self._last:
                raise Unavailable("The connection was cut during the import; try it again.")
            self.positions[seq] = self._last = ack.seq

    async def undo(self) -> None:
        """Remove from the log what was written."""
        with suppress(TimeoutError, NatsError, APIError, VoxbridgeError):
            await asyncio.gather(*self._waiting.values(), return_exceptions=True)
            if not self.ours and not (await self._log.position(self.sid, "*"))[1].endswith(self._mark):
                return
            await self._log.js.purge_stream(subjects.stream_of(self.sid), subject=subjects.stored_subject(self.sid))


@contextmanager
def whole_file(path: Path) -> Iterator[BinaryIO]:
    """Open a file that appears only once it is complete, and is readable by its owner only: it holds what people said."""
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            yield file
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
