"""The event log: one JetStream stream, read by position, written in order by one writer at a time for each session.

An acknowledged event survives any process kill; with `sync_interval: always` also a crash of the operating system.
Owns reading; `voxbridge.shared.log.streams` has the settings of what is read, `voxbridge.shared.log.writer` appends and
`voxbridge.shared.log.feed` follows. A crash here loses nothing that was acknowledged.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Collection, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any, Final, NamedTuple, Protocol

import msgspec
from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.errors import Error as NatsError
from nats.js.api import Header

from voxbridge.shared import events
from voxbridge.shared.bus import subjects as bus_subjects
from voxbridge.shared.config import Recording
from voxbridge.shared.errors import Code, Unavailable, VoxbridgeError
from voxbridge.shared.log import streams
from voxbridge.shared.log.append_stats import Appends
from voxbridge.shared.log.leader import Leader
from voxbridge.shared.log.unreadable import BROKEN

LAST_LIMIT: Final = 1_023
"""Subjects whose last event is read in one request."""

PAGE: Final = 256
"""Events read in one request."""

PAGE_BYTES: Final = 8 * 1024 * 1024
"""Bytes read in one request; a page of larger events ends early."""

READ_TIMEOUT_S: Final = 5.0
BEHIND_S: Final = 5.0
"""How long a read waits for a replica that does not have what their leader has."""

AFTER_CUT_S: Final = 0.1
"""How long an append waits for its acknowledgement after a cut of the connection is over."""

_FIRST_PAUSE_S: Final = 0.001
_LONGEST_PAUSE_S: Final = 0.05
_LONG_S: Final = 0.25
_SEQUENCE: Final = "Nats-Sequence"
_SUBJECT: Final = "Nats-Subject"
_TIME: Final = "Nats-Time-Stamp"
_LAST_SEQUENCE: Final = "Nats-Last-Sequence"
_PENDING: Final = "Nats-Num-Pending"
_UP_TO: Final = "Nats-UpTo-Sequence"
_BEFORE: Final = str(Header.EXPECTED_LAST_SUBJECT_SEQUENCE.value)


class Follower(Protocol):
    """What follows the log and can read again what it may have missed."""

    async def catch_up(self) -> None:
        """Read everything after the last position handled."""


class Page(NamedTuple):
    """Stored messages in log order, and whether there are more after them."""

    messages: list[Msg]
    more: bool
    up_to: int = 0
    """The last position that the replica had that answered, where it says so."""


class _Behind:
    """The wait for a replica that is behind, a few milliseconds at first."""

    def __init__(self) -> None:
        self._clock = asyncio.get_running_loop().time
        self._since = self._clock()
        self._pause_s = _FIRST_PAUSE_S

    async def wait(self) -> bool:
        """Wait before the next look; whether it has taken so long that the leader should be asked again. Raises `UNAVAILABLE`."""
        waited_s = self._clock() - self._since
        if waited_s > BEHIND_S:
            message = f"The replica of the event log that answers has been behind for {BEHIND_S:g} s; it is asked again."
            raise Unavailable(message, retry_after_ms=1_000)
        await asyncio.sleep(self._pause_s)
        self._pause_s = min(2 * self._pause_s, _LONGEST_PAUSE_S)
        return waited_s > _LONG_S


class Log:
    """Reads the event log over one NATS connection. Whoever makes the connection calls `reconnected` after each cut."""

    def __init__(self, nc: Client, *, read_timeout_s: float = READ_TIMEOUT_S) -> None:
        self.nc = nc
        self.appends = Appends()
        """How the appends over this connection go."""
        self.js = nc.jetstream(timeout=read_timeout_s)
        self.leader = Leader(nc, patience_s=read_timeout_s)
        self._read_timeout_s = read_timeout_s
        self._inbox = ""
        self._replies: dict[str, asyncio.Queue[Msg | None]] = {}
        self._requests = 0
        self._followers: set[Follower] = set()
        self._wanted: tuple[int, Recording | None, int] | None = None
        self._appending: set[asyncio.Timeout] = set()

    def follow(self, follower: Follower) -> None:
        """Have `follower` catch up whenever the connection was cut."""
        self._followers.add(follower)

    def unfollow(self, follower: Follower) -> None:
        """Forget a follower."""
        self._followers.discard(follower)

    @contextmanager
    def appending(self, bound: asyncio.Timeout) -> Iterator[None]:
        """While an append waits for its acknowledgement or for its next try: `bound` ends early once a cut is over."""
        self._appending.add(bound)
        try:
            yield
        finally:
            self._appending.discard(bound)

    async def reconnected(self) -> None:
        """The connection was cut and is back: live copies and answers may be missing, so all is read again.

        Appends that went out before the cut get no answer any more: they are tried again after `AFTER_CUT_S`, which is time
        enough for those that the connection kept and sends now.
        """
        soon = asyncio.get_running_loop().time() + AFTER_CUT_S
        for bound in self._appending:
            if (when := bound.when()) is not None and when > soon:
                bound.reschedule(soon)
        for waiting in self._replies.values():
            waiting.put_nowait(None)
        self.leader.forget()
        await asyncio.gather(self._make_again(), *(follower.catch_up() for follower in list(self._followers)))

    async def _make_again(self) -> None:
        if self._wanted is not None:
            retention_days, recording, replicas = self._wanted
            await streams.make_again(self.js, retention_days=retention_days, recording=recording, replicas=replicas)

    async def ensure_streams(self, *, retention_days: int = 0, recording: Recording | None = None, replicas: int = 0) -> None:
        """Create the streams, or bring the ones that exist to these settings; 0 leaves one as it is. Raises `UNAVAILABLE`.

        With `recording` there is a stream for it too; what is in it stays until it is too old.
        """
        self._wanted = (retention_days, recording, replicas)
        self.leader.forget()
        await streams.ensure_streams(self.js, retention_days=retention_days, recording=recording, replicas=replicas)

    async def page(
        self,
        sid: str,
        *,
        writer: str = "*",
        visibility: str = "*",
        topic: str = ">",
        after: int = 0,
        since: int | None = None,
        limit: int = PAGE,
    ) -> Page:
        """Up to `limit` stored messages of a session that follow position `after`, or that were stored from the moment `since` on
        (µs of the Unix clock); at most `PAGE_BYTES` and one message.

        Raises `UNAVAILABLE` when the log does not answer.
        """
        subject = bus_subjects.stored_subject(sid, writer, visibility, topic)
        begin: dict[str, Any] = {"seq": after + 1} if since is None else {"start_time": _moment(since)}
        return await self._get({**begin, "next_by_subj": subject, "batch": limit, "max_bytes": PAGE_BYTES})

    async def barrier(self, sid: str, *, writer: str = "*", visibility: str = "*", topic: str = ">") -> int:
        """The position that a read must reach to be whole: the last that the leader has, where the log has replicas. 0 on one server, which
        is not asked. Raises `UNAVAILABLE`."""
        if not await self.leader.has_followers():
            return 0
        return (await self.leader.last(bus_subjects.stored_subject(sid, writer, visibility, topic)))[0]

    async def pages(
        self, sid: str, *, writer: str = "*", visibility: str = "*", topic: str = ">", after: int = 0, until: int | None = None
    ) -> AsyncIterator[Page]:
        """The stored messages of a session after a position, page by page, as whole as they were when this was asked: where the log has
        replicas, the one that answers is read until it has what their leader had (`until`, if it was asked already).

        Raises `UNAVAILABLE` when it has not caught up within `BEHIND_S`.
        """
        if until is None:
            until = await self.barrier(sid, writer=writer, visibility=visibility, topic=topic)
        behind = _Behind()
        more = True
        while more or after < until:
            found = await self.page(sid, writer=writer, visibility=visibility, topic=topic, after=after)
            more = found.more
            if found.messages:
                after = position(found.messages[-1])
                behind = _Behind()
                yield found
            elif after < until and await behind.wait():
                # What the leader had last may have been erased since.
                until = min(until, (await self.leader.last(bus_subjects.stored_subject(sid, writer, visibility, topic)))[0])

    async def read(self, sid: str, *, writer: str = "*", visibility: str = "*", after: int = 0, limit: int = PAGE) -> list[events.Recorded]:
        """The first events of a session after a position, whole as `pages` are."""
        found: list[events.Recorded] = []
        async for page in self.pages(sid, writer=writer, visibility=visibility, after=after):
            found += [decode(message) for message in page.messages]
            if len(found) >= limit:
                break
        return found[:limit]

    async def read_all(
        self,
        sid: str,
        *,
        writer: str = "*",
        visibility: str = "*",
        topic: str = ">",
        types: Collection[str] = (),
        after: int = 0,
        imported: bool = True,
    ) -> AsyncIterator[events.Recorded]:
        """Every event of a session after a position, read page by page and whole as `pages` are; with `types`, those alone, and without
        `imported`, those that happened here."""
        async for found in self.pages(sid, writer=writer, visibility=visibility, topic=topic, after=after):
            for message in found.messages:
                if (imported or not is_imported(message)) and (not types or type_of(message) in types):
                    yield decode(message)

    async def frames(self, stream: str, subject: str, *, after: int = 0, limit: int = PAGE) -> Page:
        """Up to `limit` stored audio frames of a subject that follow position `after` of a stream of audio; none where there is no such
        stream. Raises `UNAVAILABLE`."""
        return await self._get({"seq": after + 1, "next_by_subj": subject, "batch": limit, "max_bytes": PAGE_BYTES}, stream)

    async def requested_after(self, after: int) -> tuple[list[events.Recorded], bool]:
        """A page of the requests of all sessions after a position, and whether there are more: the index, rebuilt from the log."""
        subject = bus_subjects.event_subject("*", "gateway", visible=False, type="session.requested")
        found = await self._get({"seq": after + 1, "next_by_subj": subject, "batch": PAGE, "max_bytes": PAGE_BYTES})
        return [decode(message) for message in found.messages], found.more

    async def last(self, subjects: Sequence[str]) -> list[events.Recorded]:
        """The last event on each subject that matches one of `subjects`, of which there are `LAST_LIMIT` at most, in log order, whole as
        `pages` are. Raises `UNAVAILABLE`."""
        newest, subject = await self.leader.newest() if await self.leader.has_followers() else (0, "")
        behind = _Behind()
        while True:
            # With the newest of all among them even an answer that is empty otherwise says how far that replica is.
            found = await self._get({"multi_last": [*subjects, *([subject] if newest else [])], "batch": LAST_LIMIT + 1})
            if found.up_to >= newest:
                break
            await behind.wait()
        return [decode(message) for message in found.messages if _is_among(subject_of(message), subject, subjects)]

    async def position(self, sid: str, writer: str) -> tuple[int, str]:
        """`(position, id)` of the last event of a writer in a session; `(0, "")` when there is none.

        Where the log has replicas their leader says it: another one may not have it yet. A filter with a wildcard costs milliseconds
        on a large log: ask once, then count.
        """
        if await self.leader.has_followers():
            return await self.leader.last(bus_subjects.stored_subject(sid, writer))
        found = (await self._get({"last_by_subj": bus_subjects.stored_subject(sid, writer)})).messages
        return (position(found[0]), (found[0].headers or {}).get(Header.MSG_ID, "")) if found else (0, "")

    async def _get(self, request: dict[str, Any], stream: str = bus_subjects.EVENT_STREAM) -> Page:
        """Direct get, one message or a batch; asked again when the connection was cut before the answer was whole."""
        try:
            async with asyncio.timeout(self._read_timeout_s):
                while (answer := await self._ask(request, stream)) is None:
                    pass
                return answer
        except (TimeoutError, NatsError) as error:
            raise Unavailable("The event log does not answer; it is asked again.", retry_after_ms=1_000) from error

    async def _ask(self, request: dict[str, Any], stream: str) -> Page | None:
        """Replies arrive one by one and a batch ends with a status; nothing when the connection was cut in between."""
        if not self._inbox:
            self._inbox = self.nc.new_inbox()
            await self.nc.subscribe(f"{self._inbox}.*", cb=self._dispatch)
        self._requests += 1
        token = str(self._requests)
        replies = self._replies[token] = asyncio.Queue()
        found: list[Msg] = []
        last = 0
        try:
            await self.nc.publish(f"$JS.API.DIRECT.GET.{stream}", json.dumps(request).encode(), reply=f"{self._inbox}.{token}")
            while (reply := await replies.get()) is not None:
                headers = reply.headers or {}
                status = headers.get(Header.STATUS)
                if "batch" in request and status in (None, "204") and int(headers.get(_LAST_SEQUENCE, "0")) != last:
                    return None  # a cut swallowed some of the batch, and the server went on with the rest
                if status in ("204", "404"):
                    return Page(found, int(headers.get(_PENDING, "0")) > 0, int(headers.get(_UP_TO, "0")))
                if status == "503" and stream != bus_subjects.EVENT_STREAM:
                    return Page(found, more=False)
                if status == "503":
                    raise Unavailable("The event log is not there yet; it is asked again.", retry_after_ms=1_000)
                if status is not None:
                    raise VoxbridgeError(Code.INTERNAL, f"The event log refused a read with status {status}.", retryable=False)
                found.append(reply)
                last = position(reply)
                if "batch" not in request:
                    return Page(found, more=False)
            return None
        finally:
            del self._replies[token]

    async def _dispatch(self, message: Msg) -> None:
        waiting = self._replies.get(message.subject.rpartition(".")[2])
        if waiting is not None:
            waiting.put_nowait(message)


def _is_among(stored: str, added: str, subjects: Sequence[str]) -> bool:
    """Whether a subject was asked for, and not only added."""
    return stored != added or any(_matches(stored.split("."), wanted.split(".")) for wanted in subjects)


def _matches(subject: list[str], filter: list[str]) -> bool:
    if filter[-1] == ">":
        filter = filter[:-1]
        subject = subject[: len(filter)] if len(subject) > len(filter) else []
    return len(subject) == len(filter) and all(there in (one, "*") for one, there in zip(subject, filter, strict=True))


def _moment(us: int) -> str:
    return f"{datetime.fromtimestamp(us // 1_000_000, UTC):%Y-%m-%dT%H:%M:%S}.{us % 1_000_000:06d}Z"


def position(message: Msg) -> int:
    """The log position of a stored message or of its live copy."""
    return int((message.headers or {})[_SEQUENCE])


def type_of(message: Msg) -> str:
    """The type of a stored event, without reading the event; empty where its bytes are none and its subject does not say it."""
    return bus_subjects.named_type((message.headers or {})[_SUBJECT]) or events.type_in(message.data)


def position_before(message: Msg) -> int:
    """The position of the event before it on its own subject, as a live copy carries it; 0 when it is the first."""
    return int((message.headers or {}).get(_LAST_SEQUENCE, "0"))


def subject_of(message: Msg) -> str:
    """Where the event of a message or of its live copy is stored."""
    return (message.headers or {})[_SUBJECT]


def writers_position_before(message: Msg) -> int:
    """The position of the event before it of its own writer, as a fenced one says; 0 when it is the first, or says nothing."""
    return int((message.headers or {}).get(_BEFORE, "0"))


def decode(message: Msg) -> events.Recorded:
    """The event in a stored message or in its live copy; `events.Unreadable` where its bytes are none, which is said once."""
    headers = message.headers or {}
    return _read(message.data, headers[_SUBJECT], position(message), headers.get(_TIME, ""))


def is_imported(message: Msg) -> bool:
    """Whether the event of a message was recorded elsewhere, or in another session."""
    return bus_subjects.IMPORTED in (message.headers or {})


def decode_delivered(message: Msg) -> events.Recorded:
    """The event in a message that a consumer delivered; as `decode`."""
    return _read(message.data, message.subject, message.metadata.sequence.stream, message.metadata.timestamp)


def _read(payload: bytes, subject: str, seq: int, stored_at: datetime | str) -> events.Recorded:
    sid, writer, visible = bus_subjects.parse_event_subject(subject)
    recorded = events.read(payload, seq=seq, sid=sid, writer=writer, visible=visible, type=bus_subjects.named_type(subject))
    if isinstance(recorded.event, events.Unreadable):
        recorded = msgspec.structs.replace(recorded, ts=_us(stored_at))  # it has no time of its own that could be trusted
        BROKEN.met(recorded)
    return recorded


def _us(stored_at: datetime | str) -> int:
    """When the server stored a message, in µs; 0 where it does not say."""
    try:
        moment = datetime.fromisoformat(stored_at) if isinstance(stored_at, str) else stored_at
    except ValueError:
        return 0
    return round(moment.timestamp() * 1_000_000)
