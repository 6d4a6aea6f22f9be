"""Feed of a session's log: first the stored events, then new ones, each once, in order, without a gap.

Live copies come over core NATS, which may lose some; stored events are read by position. A feed subscribes first, reads what it missed, and
merges by position. It reads again whenever the connection was cut, its buffer was full, or a live copy shows that an earlier event is
missing. One task at a time hands events over, so a slow handler delays events and never reorders them.

Where the log has replicas, a copy may be lost between the leader's server and ours without a cut here, and the next copy, from another
writer, does not show the loss. There a copy only announces its position, and the event itself is read: a replica that has it has all events
before it. So no event arrives late and none is skipped, at the cost of one more read. The last copy of a series may be lost with none after
it, so such a feed also compares itself with the leader every two seconds.

A crash here loses nothing: a follower begins again after the last position it handled.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Collection
from typing import Final

from nats.aio.msg import Msg
from nats.aio.subscription import Subscription
from nats.errors import Error as NatsError

from voxbridge.shared import events
from voxbridge.shared.bus import subjects
from voxbridge.shared.errors import Unavailable, VoxbridgeError
from voxbridge.shared.log.reader import Log, decode, position, position_before, type_of, writers_position_before

Handler = Callable[[events.Recorded], Awaitable[None] | None]

BUFFER_LIMIT: Final = 4096
"""Live copies that may wait for the handler; further ones are dropped and read from the log."""

LOOK_SOON_S: Final = 0.1
LOOK_S: Final = 2.0
"""Seconds between comparisons with the leader of a log that has replicas; the first one follows after `LOOK_SOON_S`."""

_RETRY_S: Final = 0.5

_log = logging.getLogger(__name__)


class Feed:
    """Events of one session from one writer (or from all with `writer="*"`), handed to `handler` in log order; `types`, if not empty, names
    the types that are handed over.

    An exception of the handler is logged, and the feed goes on with the next event, as it does after an unreadable one. To end the feed,
    its owner calls `stop`; a handler may do so too.
    """

    def __init__(
        self,
        log: Log,
        sid: str,
        handler: Handler,
        *,
        writer: str = "*",
        visibility: str = "*",
        types: Collection[str] = (),
        after: int = 0,
    ) -> None:
        self.position = after
        """Position up to which every event was handed over."""

        self._replicated = False
        self._looking: asyncio.TimerHandle | None = None
        self._log = log
        self._sid = sid
        self._handler = handler
        self._writer = writer
        self._visibility = visibility
        self._types = types
        self._subscription: Subscription | None = None
        self._buffer: deque[Msg] = deque()
        self._overflowed = False
        self._stale = False
        self._stopped = False
        self._caught_up = asyncio.Event()
        self._pump: asyncio.Task[None] | None = None
        self._retry: asyncio.TimerHandle | None = None

    async def start(self) -> None:
        """Subscribe, then hand over what is stored after the position. Returns when the feed is live or, while the log does not answer,
        after the first of many tries. Raises `UNAVAILABLE` when the connection is closed."""
        subject = subjects.live_subject(self._sid, self._writer, self._visibility)
        try:
            self._subscription = await self._log.nc.subscribe(subject, cb=self._live)
        except NatsError as error:
            raise Unavailable(f"The bus takes no subscription: {error}.") from error
        self._log.follow(self)
        await self.catch_up()

    async def catch_up(self) -> None:
        """Read what was missed. Called after every cut of the connection; safe to call at any time."""
        self._stale = True
        self._caught_up.clear()
        if self._retry is not None:
            self._retry.cancel()
        self._run()
        if not self._stopped and self._pump is not asyncio.current_task():
            await self._caught_up.wait()

    async def stop(self) -> None:
        """Stop following; no further event is handed over."""
        self._stopped = True
        self._caught_up.set()
        self._log.unfollow(self)
        for timer in (self._retry, self._looking):
            if timer is not None:
                timer.cancel()
        if self._pump is not None and self._pump is not asyncio.current_task():
            self._pump.cancel()
        if self._subscription is not None:
            subscription, self._subscription = self._subscription, None
            if not self._log.nc.is_closed:
                await subscription.unsubscribe()

    async def _live(self, message: Msg) -> None:
        # After the first copy that was dropped, everything must be read from the log: a later copy would leave a gap.
        if self._overflowed or len(self._buffer) >= BUFFER_LIMIT:
            self._overflowed = True
            return
        self._buffer.append(message)
        if self._retry is None:
            self._run()

    def _run(self) -> None:
        self._retry = None
        if self._pump is None and not self._stopped:
            self._pump = asyncio.create_task(self._hand_over_all())

    async def _hand_over_all(self) -> None:
        try:
            while not self._stopped:
                if self._stale:
                    await self._compare()
                elif self._buffer:
                    await self._take(self._buffer[0])
                elif self._overflowed:
                    self._overflowed, self._stale = False, True
                else:
                    return
        except VoxbridgeError as error:
            _log.warning("session %s: %s", self._sid, error.message)
            self._stale = True
            self._caught_up.set()
            self._retry = asyncio.get_running_loop().call_later(_RETRY_S, self._run)
        finally:
            self._pump = None

    async def _compare(self) -> None:
        """Read what is stored; where there are replicas, up to the leader's last position."""
        self._stale = False
        until = await self._log.barrier(self._sid, writer=self._writer, visibility=self._visibility)
        self._replicated = await self._log.leader.has_followers(subjects.stream_of(self._sid))
        if not self._replicated or until > self.position:
            await self._read(until if self._replicated else 0)
        if not self._stale:
            self._caught_up.set()
        if self._replicated and self._looking is None and not self._stopped:
            self._looking = asyncio.get_running_loop().call_later(LOOK_SOON_S, self._look)

    async def _read(self, until: int) -> None:
        pages = self._log.pages(self._sid, writer=self._writer, visibility=self._visibility, after=self.position, until=until)
        async for page in pages:
            for message in page.messages:
                await self._hand_over(message)
            if self._stopped:
                return
        self.position = max(self.position, until)  # events missing up to `until` were erased

    async def _take(self, message: Msg) -> None:
        """Hand over the event of the first live copy, after all events before it."""
        seq = position(message)
        if seq > self.position and not self._follows(message):
            if not self._replicated:
                await self._read(0)
            elif not self._types or type_of(message) in self._types:
                await self._read(max(map(position, self._buffer)))
            else:
                self._buffer.popleft()  # its type is not handed over; the next read skips it
                return
        self._buffer.popleft()
        await self._hand_over(message)

    def _look(self) -> None:
        """Compare with the leader: a copy may be lost between two servers without a cut here, and the next copy may be long in coming."""
        self._looking = asyncio.get_running_loop().call_later(LOOK_S, self._look)
        self._stale = True
        if self._retry is None:
            self._run()

    def _follows(self, message: Msg) -> bool:
        """Return whether no event can be missing before a live copy. On one server, the copy names the previous position on its subject and
        of its writer; cuts and a full buffer are noticed elsewhere. With replicas only a feed of one writer can tell, and only if that
        writer names its previous position."""
        of_writer = writers_position_before(message)
        if self._replicated:
            return self._writer != "*" and 0 < of_writer <= self.position
        return max(position_before(message), of_writer if self._visibility == "*" else 0) <= self.position

    async def _hand_over(self, message: Msg) -> None:
        seq = position(message)
        if seq <= self.position or self._stopped:
            return
        self.position = seq
        if self._types and type_of(message) not in self._types:
            return
        try:
            recorded = decode(message)
            result = None if isinstance(recorded.event, events.Unreadable) else self._handler(recorded)
            if result is not None:
                await result
        except VoxbridgeError as error:
            _log.error("session %s: the event at log position %d was not handled: %s", self._sid, seq, error.message)
        except Exception:  # noqa: BLE001 - whatever a handler raises, the events after it are still handed over
            _log.exception("session %s: the event at log position %d was not handled.", self._sid, seq)
