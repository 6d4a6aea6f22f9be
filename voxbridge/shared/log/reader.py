"""The event log: two JetStream streams, one of sessions and one of accounts, read by position, written in order by one writer at a time for
each session and each account. Below, a session is either: its id says which stream holds it (`voxbridge.shared.bus.subjects.stream_of`).

An acknowledged event survives any process kill; with `sync_interval: always` also a crash of the operating system. Owns reading;
`voxbridge.shared.log.streams` has the settings of the streams, `voxbridge.shared.log.writer` appends and `voxbridge.shared.log.feed`
follows. A crash here loses nothing that was acknowledged.
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
"""Seconds that a read waits for a replica that lags behind the leader."""

AFTER_CUT_S: Final = 0.1
"""Seconds that an append still waits for its acknowledgement once the connection is back after a cut."""

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
    """Follower of the log that can read again what it may have missed."""

    async def catch_up(self) -> None:
        """Read everything after the last position handled."""


class Page(NamedTuple):
    """Stored messages in log order, and whether there are more after them."""

    messages: list[Msg]
    more: bool
    up_to: int = 0
    """Last position of the replica that answered, where it says so; otherwise 0."""


class _Behind:
    """Wait for a replica that is behind; the pauses begin at a millisecond and double."""

    def __init__(self) -> None:
        self._clock = asyncio.get_running_loop().time
        self._since = self._clock()
        self._pause_s = _FIRST_PAUSE_S

    async def wait(self) -> bool:
        """Wait before the next read; return whether the wait is so long that the leader should be asked again. Raises `UNAVAILABLE`."""
        waited_s = self._clock() - self._since
        if waited_s > BEHIND_S:
            message = f"The replica of the event log that answers has been behind for {BEHIND_S:g} s; it is asked again."
            raise Unavailable(message, retry_after_ms=1_000)
        await asyncio.sleep(self._pause_s)
        self._pause_s = min(2 * self._pause_s, _LONGEST_PAUSE_S)
        return waited_s > _LONG_S


class Log:
    """Reader of the event log over one NATS connection. The owner of the connection calls `reconnected` after each cut."""

    def __init__(self, nc: Client, *, read_timeout_s: float = READ_TIMEOUT_S) -> None:
        self.nc = nc
        self.appends = Appends()
        """Figures of the appends over this connection."""
        self.js = nc.jetstream(timeout=read_timeout_s)
        self.leader = Leader(nc, patience_s=read_timeout_s)
        self._read_timeout_s = read_timeout_s
        self._inbox = ""
        self._replies: dict[str, asyncio.Queue[Msg | None]] = {}
        self._requests = 0
        self._followers: set[Follower] = set()
        self._wanted: tuple[int, Recording | None, int, Collection[str]] | None = None
        self._appending: set[asyncio.Timeout] = set()

    def follow(self, follower: Follower) -> None:
        """Let `follower` catch up after each cut of the connection."""
        self._followers.add(follower)

    def unfollow(self, follower: Follower) -> None:
        """Remove a follower."""
        self._followers.discard(follower)

    @contextmanager
    def appending(self, bound: asyncio.Timeout) -> Iterator[None]:
        """Register the timeout `bound` of an append that waits for its acknowledgement or its next try: a reconnect ends it early."""
        self._appending.add(bound)
        try:
            yield
        finally:
            self._appending.discard(bound)

    async def reconnected(self) -> None:
        """Handle a reconnect: live copies and answers may be lost, so everything is read again.

        Appends sent before the cut get no answer any more. They are retried after `AFTER_CUT_S`, which leaves enough time for those that
        the client buffered and sends now.
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
            retention_days, recording, replicas, only = self._wanted
            await streams.make_again(self.js, retention_days=retention_days, recording=recording, replicas=replicas, only=only)

    async def ensure_streams(
        self, *, retention_days: int = 0, recording: Recording | None = None, replicas: int = 0, only: Collection[str] = ()
    ) -> None:
        """Create the streams, or those that are named in `only`, or bring the ones that exist to these settings; 0 leaves a setting as it
        is. Raises `UNAVAILABLE`.

        With `recording` there is a stream for recordings too; its content stays until it expires.
        """
        self._wanted = (retention_days, recording, replicas, only)
        self.leader.forget()
        await streams.ensure_streams(self.js, retention_days=retention_days, recording=recording, replicas=replicas, only=only)

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
        """Return up to `limit` stored messages of a session that follow position `after`, or that were stored from `since` on (µs of the
        Unix clock). A page holds at most `PAGE_BYTES` and one message.

        Raises `UNAVAILABLE` when the log does not answer.
        """
        subject = bus_subjects.stored_subject(sid, writer, visibility, topic)
        begin: dict[str, Any] = {"seq": after + 1} if since is None else {"start_time": _moment(since)}
        return await self._get({**begin, "next_by_subj": subject, "batch": limit, "max_bytes": PAGE_BYTES}, bus_subjects.stream_of(sid))

    async def barrier(self, sid: str, *, writer: str = "*", visibility: str = "*", topic: str = ">") -> int:
        """Return the position that a complete read must reach: the leader's last one, where the log has replicas. 0 on one server, which is
        not asked. Raises `UNAVAILABLE`."""
        if not await self.leader.has_followers(bus_subjects.stream_of(sid)):
            return 0
        return (await self.leader.last(bus_subjects.stored_subject(sid, writer, visibility, topic)))[0]

    async def pages(
        self, sid: str, *, writer: str = "*", visibility: str = "*", topic: str = ">", after: int = 0, until: int | None = None
    ) -> AsyncIterator[Page]:
        """Yield the stored messages of a session after a position, page by page, complete as of this call. Where the log has replicas, the
        replica that answers is read until it has what the leader had (`until`, if the leader was asked already).

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
                # The leader's last event may have been erased since.
                until = min(until, (await self.leader.last(bus_subjects.stored_subject(sid, writer, visibility, topic)))[0])

    async def read(self, sid: str, *, writer: str = "*", visibility: str = "*", after: int = 0, limit: int = PAGE) -> list[events.Recorded]:
        """Return the first events of a session after a position, complete as in `pages`."""
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
        """Yield every event of a session after a position, read page by page and complete as in `pages`. `types` keeps only these types;
        without `imported` only events that happened here."""
        async for found in self.pages(sid, writer=writer, visibility=visibility, topic=topic, after=after):
            for message in found.messages:
                if (imported or not is_imported(message)) and (not types or type_of(message) in types):
                    yield decode(message)

    async def frames(self, stream: str, subject: str, *, after: int = 0, limit: int = PAGE) -> Page:
        """Return up to `limit` stored audio frames of a subject that follow position `after` of an audio stream; none if the stream does
        not exist. Raises `UNAVAILABLE`."""
        return await self._get({"seq": after + 1, "next_by_subj": subject, "batch": limit, "max_bytes": PAGE_BYTES}, stream)

    async def requested_after(self, after: int) -> tuple[list[events.Recorded], bool]:
        """Return a page of the requests of all sessions after a position, and whether there are more. Used to rebuild the index from the
        log."""
        subject = bus_subjects.event_subject("*", "gateway", visible=False, event_type="session.requested")
        found = await self._get({"seq": after + 1, "next_by_subj": subject, "batch": PAGE, "max_bytes": PAGE_BYTES})
        return [decode(message) for message in found.messages], found.more

    async def last(self, subjects: Sequence[str]) -> list[events.Recorded]:
        """Return the last event on each subject that matches one of `subjects` (at most `LAST_LIMIT` subjects match), in log order,
        complete as in `pages`. All are of sessions, or all of accounts. Raises `UNAVAILABLE`."""
        stream = bus_subjects.stream_holding(subjects[0]) if subjects else bus_subjects.EVENT_STREAM
        newest, subject = await self.leader.newest(stream) if await self.leader.has_followers(stream) else (0, "")
        behind = _Behind()
        while True:
            # The newest event of the log is requested too, so that even an otherwise empty answer shows how far the replica is.
            found = await self._get({"multi_last": [*subjects, *([subject] if newest else [])], "batch": LAST_LIMIT + 1}, stream)
            if found.up_to >= newest:
                break
            await behind.wait()
        return [decode(message) for message in found.messages if _is_among(subject_of(message), subject, subjects)]

    async def position(self, sid: str, writer: str) -> tuple[int, str]:
        """Return `(position, id)` of the last event of a writer in a session; `(0, "")` when there is none.

        Where the log has replicas the leader is asked: another replica may not have the event yet. A filter with a wildcard costs
        milliseconds on a large log: ask once, then count.
        """
        stream = bus_subjects.stream_of(sid)
        if await self.leader.has_followers(stream):
            return await self.leader.last(bus_subjects.stored_subject(sid, writer))
        found = (await self._get({"last_by_subj": bus_subjects.stored_subject(sid, writer)}, stream)).messages
        return (position(found[0]), (found[0].headers or {}).get(Header.MSG_ID, "")) if found else (0, "")

    async def subject_at(self, sid: str, seq: int) -> str:
        """Return the subject of the event at a position of the stream that holds a session's events; empty if there is none any more."""
        stream = bus_subjects.stream_of(sid)
        if await self.leader.has_followers(stream):
            return await self.leader.subject_at(stream, seq)
        found = (await self._get({"seq": seq}, stream)).messages
        return subject_of(found[0]) if found else ""

    async def _get(self, request: dict[str, Any], stream: str = bus_subjects.EVENT_STREAM) -> Page:
        """Run a direct get, one message or a batch; repeat it when the connection was cut before the answer was complete."""
        try:
            async with asyncio.timeout(self._read_timeout_s):
                while (answer := await self._ask(request, stream)) is None:
                    pass
                return answer
        except (TimeoutError, NatsError) as error:
            raise Unavailable("The event log does not answer; it is asked again.", retry_after_ms=1_000) from error

    async def _ask(self, request: dict[str, Any], stream: str) -> Page | None:
        """Send one request and collect its replies, which arrive one by one; a status ends a batch. None when the connection was cut before
        the end."""
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
                    return None  # a cut lost part of the batch, and the server went on with the rest
                if status in ("204", "404"):
                    return Page(found, int(headers.get(_PENDING, "0")) > 0, int(headers.get(_UP_TO, "0")))
                if status == "503" and stream not in bus_subjects.LOG_STREAMS:
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
    """Return whether a subject was asked for, and not only added to the request."""
    return stored != added or any(_matches(stored.split("."), wanted.split(".")) for wanted in subjects)


def _matches(subject: list[str], wanted: list[str]) -> bool:
    if wanted[-1] == ">":
        wanted = wanted[:-1]
        subject = subject[: len(wanted)] if len(subject) > len(wanted) else []
    return len(subject) == len(wanted) and all(there in (one, "*") for one, there in zip(subject, wanted, strict=True))


def _moment(us: int) -> str:
    return f"{datetime.fromtimestamp(us // 1_000_000, UTC):%Y-%m-%dT%H:%M:%S}.{us % 1_000_000:06d}Z"


def position(message: Msg) -> int:
    """Return the log position of a stored message or of its live copy."""
    return int((message.headers or {})[_SEQUENCE])


def type_of(message: Msg) -> str:
    """Return the type of a stored event without decoding the event; empty when the bytes are no event and the subject does not name it."""
    return bus_subjects.named_type((message.headers or {})[_SUBJECT]) or events.type_in(message.data)


def position_before(message: Msg) -> int:
    """Return the position of the previous event on the same subject, as a live copy carries it; 0 when it is the first."""
    return int((message.headers or {}).get(_LAST_SEQUENCE, "0"))


def subject_of(message: Msg) -> str:
    """Return the subject under which the event of a message or of its live copy is stored."""
    return (message.headers or {})[_SUBJECT]


def writers_position_before(message: Msg) -> int:
    """Return the position of the writer's previous event, as a fenced writer names it; 0 when it is the first, or none is named."""
    return int((message.headers or {}).get(_BEFORE, "0"))


def decode(message: Msg) -> events.Recorded:
    """Return the event in a stored message or in its live copy; `events.Unreadable` when the bytes are no event, which is logged once."""
    headers = message.headers or {}
    return _read(message.data, headers[_SUBJECT], position(message), headers.get(_TIME, ""))


def is_imported(message: Msg) -> bool:
    """Return whether the event of a message was recorded elsewhere, or in another session."""
    return bus_subjects.IMPORTED in (message.headers or {})


def decode_delivered(message: Msg) -> events.Recorded:
    """Return the event in a message that a consumer delivered; otherwise as `decode`."""
    return _read(message.data, message.subject, message.metadata.sequence.stream, message.metadata.timestamp)


def _read(payload: bytes, subject: str, seq: int, stored_at: datetime | str) -> events.Recorded:
    sid, writer, visible = bus_subjects.parse_event_subject(subject)
    recorded = events.read(payload, seq=seq, sid=sid, writer=writer, visible=visible, event_type=bus_subjects.named_type(subject))
    if isinstance(recorded.event, events.Unreadable):
        recorded = msgspec.structs.replace(recorded, ts=_us(stored_at))  # it has no time of its own that could be trusted
        BROKEN.met(recorded)
    return recorded


def _us(stored_at: datetime | str) -> int:
    """Return when the server stored a message, in µs; 0 when the text is not a time."""
    try:
        moment = datetime.fromisoformat(stored_at) if isinstance(stored_at, str) else stored_at
    except ValueError:
        return 0
    return round(moment.timestamp() * 1_000_000)
