"""Following a session's log: what is stored and then what is added, each event once, in order, without a gap.

The live copies come over core NATS, which may lose some; the stored ones are read by position. A feed subscribes first,
reads what it missed, and merges by position; it reads again whenever the connection was cut, its buffer was full, or a live copy
shows that one before it is missing. Where the log has replicas any of them may answer a read, and a copy may be lost on its way from
the leader's server to ours without a cut here: there a feed reads behind the leader, and asks it every two seconds whether it is whole.
What it finds missing then comes late, after what was there. One task at a time hands events over, so a slow handler delays and never
reorders.

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

from shared import bus, events
from shared.errors import Unavailable, VoxbridgeError
from shared.log import Log, decode, position, position_before, subject_of, type_of, writers_position_before

Handler = Callable[[events.Recorded], Awaitable[None] | None]

BUFFER_LIMIT: Final = 4096
"""Live copies that wait for the handler; beyond it they are dropped and read from the log."""

LOOK_SOON_S: Final = 0.1
LOOK_S: Final = 2.0
"""How often a feed is compared with the leader of the log, where that has replicas; soon after it began for the first time."""

SETTLE_S: Final = 1.0
"""How long after it subscribed a feed reads what a live copy announces, where the log has replicas: until all servers know that it wants
copies, one of another writer may be missing before it."""

AHEAD_LIMIT: Final = 4_096
"""Live copies that are handed over before they are compared with the leader."""

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
        """The newest event that was handed over."""
        self._whole_to = after
        """Up to here all was handed over. On one server that is `position`; replicas have to be read behind their leader to know it."""

        self._ahead: set[int] = set()
        """What was handed over beyond."""

        self._known: dict[str, int] = {}
        """The newest event that was handed over, by subject and by writer."""

        self._replicated = False
        self._missing = 0
        """An event that a live copy names and that never came."""

        self._settled_at = 0.0
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
        subject = bus.live_subject(self._sid, self._writer, self._visibility)
        try:
            self._subscription = await self._log.nc.subscribe(subject, cb=self._live)
        except NatsError as error:
            raise Unavailable(f"The bus takes no subscription: {error}.") from error
        self._log.follow(self)
        await self.catch_up()

    async def catch_up(self) -> None:
        """Read what was missed. Called after every cut of the connection; safe to call at any time."""
        self._stale = True
        self._settled_at = asyncio.get_running_loop().time() + SETTLE_S
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
                    await self._read()
                elif self._buffer:
                    message = self._buffer[0]
                    self._stale = self._misses_before(message)
                    if not self._stale:
                        self._buffer.popleft()
                        await self._hand_over(message)
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

    async def _read(self) -> None:
        self._stale = False
        until = await self._log.barrier(self._sid, writer=self._writer, visibility=self._visibility)
        self._replicated = await self._log.leader.has_followers()
        until = max(until, self._missing) if self._replicated else 0
        if not self._replicated or until > self._whole_to or self._ahead:
            pages = self._log.pages(self._sid, writer=self._writer, visibility=self._visibility, after=self._whole_to, until=until)
            async for page in pages:
                for message in page.messages:
                    await self._hand_over(message)
                    self._whole_to = max(self._whole_to, position(message))
                if self._stopped:
                    return
        self._whole_to = max(self._whole_to, until, self._missing)
        self._ahead = {seq for seq in self._ahead if seq > self._whole_to}
        if not self._stale:
            self._caught_up.set()
        if self._replicated and self._looking is None and not self._stopped:
            self._looking = asyncio.get_running_loop().call_later(LOOK_SOON_S, self._look)

    def _look(self) -> None:
        """Compare with the leader: a copy may be lost between two servers without a cut here, and nothing come after it for long."""
        self._looking = asyncio.get_running_loop().call_later(LOOK_S, self._look)
        self._stale = True
        if self._retry is None:
            self._run()

    def _misses_before(self, message: Msg) -> bool:
        """Whether a live copy names an event that never came here: the one before it on its subject or, where all of a writer's are
        followed, the one before it of its writer. That one is to be read first."""
        seq = position(message)
        if self._replicated and seq > self._whole_to and asyncio.get_running_loop().time() < self._settled_at:
            self._missing = max(self._missing, seq)
            return True
        subject = subject_of(message)
        before = [(position_before(message), subject)]
        if self._visibility == "*":
            before.append((writers_position_before(message), bus.parse_event_subject(subject)[1]))
        missing = max(seq if seq > self._known.get(name, 0) else 0 for seq, name in before)
        if missing <= self._whole_to:
            return len(self._ahead) >= AHEAD_LIMIT
        self._missing = max(self._missing, missing)
        return True

    async def _hand_over(self, message: Msg) -> None:
        seq = position(message)
        if seq <= self._whole_to or seq in self._ahead or self._stopped:
            return
        subject = subject_of(message)
        self._known[subject] = self._known[bus.parse_event_subject(subject)[1]] = seq
        self.position = max(self.position, seq)
        if self._replicated:
            self._ahead.add(seq)
        else:
            self._whole_to = seq
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
