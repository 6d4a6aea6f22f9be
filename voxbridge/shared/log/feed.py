"""Following a session's log: what is stored and then what is added, each event once, in order, without a gap.

The live copies come over core NATS, which may lose some; the stored ones are read by position. A feed subscribes first,
reads what it missed, and merges by position; it reads again whenever the connection was cut, its buffer was full, or a live copy
shows that one before it is missing. One task at a time hands events over, so a slow handler delays and never reorders.

Where the log has replicas a copy may be lost on its way from the leader's server to ours without a cut here, and the next copy, of
another writer, says nothing of it. There a copy is only news of its position, and the event is read: a replica that has it has all
before it. So nothing comes late, and a position that was handed over leaves nothing behind it, for one read more. Since no copy may follow
one that was lost, such a feed also asks the leader every two seconds whether it is whole.

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
"""Live copies that wait for the handler; beyond it they are dropped and read from the log."""

LOOK_SOON_S: Final = 0.1
LOOK_S: Final = 2.0
"""How often a feed is compared with the leader of the log, where that has replicas; soon after it began for the first time."""

_RETRY_S: Final = 0.5

_log = logging.getLogger(__name__)


class Feed:
    """One writer's events of one session (or all writers' with `writer="*"`), handed to `handler` in log order; `types` may
    name those that are handed over.

    A handler that raises is logged and has had its event: the feed goes on with the next one, as it does behind one that cannot be
    read. What must stop a session is for its owner to say, by `stop`, which a handler may call.
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
        buffer_limit: int = BUFFER_LIMIT,
    ) -> None:
        self.position = after
        """Up to here all was handed over."""

        self._replicated = False
        self._looking: asyncio.TimerHandle | None = None
        self._log = log
        self._sid = sid
        self._handler = handler
        self._writer = writer
        self._visibility = visibility
        self._types = types
        self._limit = buffer_limit
        self._subscription: Subscription | None = None
        self._buffer: deque[Msg] = deque()
        self._overflowed = False
        self._stale = False
        self._stopped = False
        self._caught_up = asyncio.Event()
        self._pump: asyncio.Task[None] | None = None
        self._retry: asyncio.TimerHandle | None = None

    async def start(self) -> None:
        """Subscribe, then hand over what is stored after the position; returns when the feed is live, or, while the log
        does not answer, after the first try of many. Raises `UNAVAILABLE` when the connection is closed."""
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
        """Stop following: nothing is handed over any more."""
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
        # After the first copy that found no room, all must be read from the log: a later one would leave a gap.
        if self._overflowed or len(self._buffer) >= self._limit:
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
        """Read what is stored, up to what the leader has where there are replicas."""
        self._stale = False
        until = await self._log.barrier(self._sid, writer=self._writer, visibility=self._visibility)
        self._replicated = await self._log.leader.has_followers()
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
        self.position = max(self.position, until)  # what is not there any more was erased

    async def _take(self, message: Msg) -> None:
        """Hand over the event of the first live copy, behind all that is before it."""
        seq = position(message)
        if seq > self.position and not self._follows(message):
            if not self._replicated:
                await self._read(0)
            elif not self._types or type_of(message) in self._types:
                await self._read(max(map(position, self._buffer)))
            else:
                self._buffer.popleft()  # nobody wants it: the next read passes it
                return
        self._buffer.popleft()
        await self._hand_over(message)

    def _look(self) -> None:
        """Compare with the leader: a copy may be lost between two servers without a cut here, and nothing come after it for long."""
        self._looking = asyncio.get_running_loop().call_later(LOOK_S, self._look)
        self._stale = True
        if self._retry is None:
            self._run()

    def _follows(self, message: Msg) -> bool:
        """Whether nothing can be missing before a live copy. On one server a cut or a full buffer says so, or the event before it on its
        subject or of its writer. On replicas only one writer's feed can know, of a writer that says it."""
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
