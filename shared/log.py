"""The event log: one JetStream stream, read by position, written in order by one writer at a time for each session.

An acknowledged event survives any process kill; with `sync_interval: always` also a crash of the operating system.
Owns reading and the streams' settings; `shared.writer` appends and `shared.feed` follows. A crash here loses nothing that
was acknowledged.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from typing import Any, Final, NamedTuple, Protocol

from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.errors import Error as NatsError
from nats.js.api import Header, RePublish, StorageType, StreamConfig
from nats.js.errors import BadRequestError

from shared import bus, events
from shared.errors import Code, Unavailable, VoxbridgeError

PAGE: Final = 256
"""Events read in one request."""

PAGE_BYTES: Final = 8 * 1024 * 1024
"""Bytes read in one request; a page of larger events ends early."""

READ_TIMEOUT_S: Final = 5.0
_SEQUENCE: Final = "Nats-Sequence"
_SUBJECT: Final = "Nats-Subject"
_LAST_SEQUENCE: Final = "Nats-Last-Sequence"
_PENDING: Final = "Nats-Num-Pending"
_DUPLICATE_WINDOW_S: Final = 120
_AUDIO_SECONDS: Final = 10
_AUDIO_BYTES: Final = 256 * 1024 * 1024
_NAME_IN_USE: Final = 10058
_MESSAGE_LIMIT: Final = 1024 * 1024


class Follower(Protocol):
    """What follows the log and can read again what it may have missed."""

    async def catch_up(self) -> None:
        """Read everything after the last position handled."""


class Page(NamedTuple):
    """Stored messages in log order, and whether there are more after them."""

    messages: list[Msg]
    more: bool


class Log:
    """Reads the event log over one NATS connection. Whoever makes the connection calls `reconnected` after each cut."""

    def __init__(self, nc: Client, *, read_timeout_s: float = READ_TIMEOUT_S) -> None:
        self.nc = nc
        self.js = nc.jetstream(timeout=read_timeout_s)
        self._read_timeout_s = read_timeout_s
        self._inbox = ""
        self._replies: dict[str, asyncio.Queue[Msg | None]] = {}
        self._requests = 0
        self._followers: set[Follower] = set()

    def follow(self, follower: Follower) -> None:
        """Have `follower` catch up whenever the connection was cut."""
        self._followers.add(follower)

    def unfollow(self, follower: Follower) -> None:
        """Forget a follower."""
        self._followers.discard(follower)

    async def reconnected(self) -> None:
        """The connection was cut and is back: live copies and answers may be missing, so all is read again."""
        for waiting in self._replies.values():
            waiting.put_nowait(None)
        await asyncio.gather(*(follower.catch_up() for follower in list(self._followers)))

    async def ensure_streams(self, *, retention_days: int) -> None:
        """Create the streams, or bring the ones that exist to these settings. Raises `UNAVAILABLE`."""
        events_config = StreamConfig(
            name=bus.EVENT_STREAM,
            subjects=[bus.EVENT_SUBJECTS],
            storage=StorageType.FILE,
            allow_direct=True,
            max_age=retention_days * 86_400,
            max_msg_size=_MESSAGE_LIMIT,
            duplicate_window=_DUPLICATE_WINDOW_S,
            republish=RePublish(src="vx.s.*.ev.*.*.>", dest="vxc.{{wildcard(1)}}.{{wildcard(2)}}.{{wildcard(3)}}.>"),
        )
        audio_config = StreamConfig(
            name=bus.AUDIO_STREAM,
            subjects=[bus.AUDIO_SUBJECTS],
            storage=StorageType.MEMORY,
            allow_direct=True,
            no_ack=True,
            max_age=_AUDIO_SECONDS,
            max_bytes=_AUDIO_BYTES,
            duplicate_window=_AUDIO_SECONDS,
        )
        try:
            for config in (events_config, audio_config):
                try:
                    await self.js.add_stream(config)
                except BadRequestError as error:
                    if error.err_code != _NAME_IN_USE:
                        raise
                    await self.js.update_stream(config)
        except BadRequestError as error:
            raise VoxbridgeError(Code.INTERNAL, f"NATS refused a stream: {error.description}.", retryable=False) from error
        except (TimeoutError, NatsError) as error:
            raise Unavailable(f"JetStream does not answer: {error}.", retry_after_ms=1_000) from error

    async def page(self, sid: str, *, writer: str = "*", visibility: str = "*", type: str = ">", after: int = 0, limit: int = PAGE) -> Page:
        """Up to `limit` stored messages of a session that follow position `after`; at most `PAGE_BYTES` and one message.

        Raises `UNAVAILABLE` when the log does not answer.
        """
        subject = bus.stored_subject(sid, writer, visibility, type)
        return await self._get({"seq": after + 1, "next_by_subj": subject, "batch": limit, "max_bytes": PAGE_BYTES})

    async def read(self, sid: str, *, writer: str = "*", visibility: str = "*", after: int = 0, limit: int = PAGE) -> list[events.Recorded]:
        """The events of one `page`."""
        found = await self.page(sid, writer=writer, visibility=visibility, after=after, limit=limit)
        return [decode(message) for message in found.messages]

    async def read_all(
        self, sid: str, *, writer: str = "*", visibility: str = "*", type: str = ">", after: int = 0
    ) -> AsyncIterator[events.Recorded]:
        """Every event of a session after a position, read page by page."""
        more = True
        while more:
            found = await self.page(sid, writer=writer, visibility=visibility, type=type, after=after)
            for message in found.messages:
                yield decode(message)
                after = position(message)
            more = found.more

    async def requested_after(self, after: int) -> tuple[list[events.Recorded], bool]:
        """A page of the requests of all sessions after a position, and whether there are more: the index, rebuilt from the log."""
        subject = bus.event_subject("*", "gateway", visible=False, type="session.requested")
        found = await self._get({"seq": after + 1, "next_by_subj": subject, "batch": PAGE, "max_bytes": PAGE_BYTES})
        return [decode(message) for message in found.messages], found.more

    async def last(self, subjects: Sequence[str], *, limit: int = 1024) -> list[events.Recorded]:
        """The last event on each subject that matches one of `subjects`, in log order."""
        return [decode(message) for message in (await self._get({"multi_last": list(subjects), "batch": limit})).messages]

    async def position(self, sid: str, writer: str) -> tuple[int, str]:
        """`(position, id)` of the last event of a writer in a session; `(0, "")` when there is none.

        A filter with a wildcard costs milliseconds on a large log: ask once, then count.
        """
        found = (await self._get({"last_by_subj": bus.stored_subject(sid, writer)})).messages
        return (position(found[0]), (found[0].headers or {}).get(Header.MSG_ID, "")) if found else (0, "")

    async def _get(self, request: dict[str, Any]) -> Page:
        """Direct get, one message or a batch; asked again when the connection was cut before the answer was whole."""
        try:
            async with asyncio.timeout(self._read_timeout_s):
                while (answer := await self._ask(request)) is None:
                    pass
                return answer
        except (TimeoutError, NatsError) as error:
            raise Unavailable("The event log does not answer; it is asked again.", retry_after_ms=1_000) from error

    async def _ask(self, request: dict[str, Any]) -> Page | None:
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
            subject = f"$JS.API.DIRECT.GET.{bus.EVENT_STREAM}"
            await self.nc.publish(subject, json.dumps(request).encode(), reply=f"{self._inbox}.{token}")
            while (reply := await replies.get()) is not None:
                headers = reply.headers or {}
                status = headers.get(Header.STATUS)
                if "batch" in request and status in (None, "204") and int(headers.get(_LAST_SEQUENCE, "0")) != last:
                    return None  # a cut swallowed some of the batch, and the server went on with the rest
                if status in ("204", "404"):
                    return Page(found, int(headers.get(_PENDING, "0")) > 0)
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


def position(message: Msg) -> int:
    """The log position of a stored message or of its live copy."""
    return int((message.headers or {})[_SEQUENCE])


def position_before(message: Msg) -> int:
    """The position of the event before it on its own subject, as a live copy carries it; 0 when it is the first."""
    return int((message.headers or {}).get(_LAST_SEQUENCE, "0"))


def decode(message: Msg) -> events.Recorded:
    """The event in a stored message or in its live copy."""
    headers = message.headers or {}
    _, writer, visible = bus.parse_event_subject(headers[_SUBJECT])
    return events.decode(message.data, seq=position(message), writer=writer, visible=visible)


def decode_delivered(message: Msg) -> events.Recorded:
    """The event in a message that a consumer delivered."""
    _, writer, visible = bus.parse_event_subject(message.subject)
    return events.decode(message.data, seq=message.metadata.sequence.stream, writer=writer, visible=visible)
