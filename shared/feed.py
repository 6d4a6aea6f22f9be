"""Following a session's log: what is stored and then what is added, each event once, in order, without a gap.

The live copies come over core NATS, which may lose some; the stored ones are read by position. A feed subscribes first,
reads what it missed, and merges by position; it reads again whenever the connection was cut.

A crash here loses nothing: a follower begins again after the last position it handled.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Final

from nats.aio.msg import Msg
from nats.aio.subscription import Subscription

from shared import bus, events
from shared.errors import Unavailable
from shared.log import Log, decode

Handler = Callable[[events.Recorded], Awaitable[None] | None]

BUFFER_LIMIT: Final = 4096
"""Live events kept while the past is read; beyond it they are dropped and read again."""

_RETRY_S: Final = 0.5

_log = logging.getLogger(__name__)


class Feed:
    """One writer's events of one session (or all writers' with `writer="*"`), handed to `handler` in log order."""

    def __init__(self, log: Log, sid: str, handler: Handler, *, writer: str = "*", visibility: str = "*", after: int = 0) -> None:
        self.position = after
        self._log = log
        self._sid = sid
        self._handler = handler
        self._writer = writer
        self._visibility = visibility
        self._subscription: Subscription | None = None
        self._buffer: list[events.Recorded] | None = []
        self._overflowed = False
        self._reading = asyncio.Lock()
        self._retry: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Subscribe, then hand over what is stored after the position; returns when the feed is live."""
        subject = bus.live_subject(self._sid, self._writer, self._visibility)
        self._subscription = await self._log.nc.subscribe(subject, cb=self._live)
        self._log.follow(self)
        await self.catch_up()

    async def catch_up(self) -> None:
        """Read what was missed. Called after every cut of the connection; safe to call at any time."""
        async with self._reading:
            buffer: list[events.Recorded] = []
            self._buffer = buffer
            self._overflowed = True
            try:
                while self._overflowed:
                    self._overflowed = False
                    async for recorded in self._log.read_all(
                        self._sid, writer=self._writer, visibility=self._visibility, after=self.position
                    ):
                        await self._hand_over(recorded)
                    # Until the buffer is empty, what arrives must queue behind it.
                    while buffer:
                        await self._hand_over(buffer.pop(0))
                self._buffer = None
            except Unavailable as error:
                _log.warning("session %s: %s", self._sid, error.message)
                self._retry = asyncio.create_task(self._catch_up_later())

    async def _catch_up_later(self) -> None:
        await asyncio.sleep(_RETRY_S)
        await self.catch_up()

    async def stop(self) -> None:
        """Stop following."""
        self._log.unfollow(self)
        if self._retry is not None:
            self._retry.cancel()
        if self._subscription is not None:
            subscription, self._subscription = self._subscription, None
            if not self._log.nc.is_closed:
                await subscription.unsubscribe()

    async def _live(self, message: Msg) -> None:
        recorded = decode(message)
        if self._buffer is None:
            await self._hand_over(recorded)
        elif len(self._buffer) < BUFFER_LIMIT:
            self._buffer.append(recorded)
        else:
            self._overflowed = True

    async def _hand_over(self, recorded: events.Recorded) -> None:
        if recorded.seq <= self.position:
            return
        self.position = recorded.seq
        result = self._handler(recorded)
        if result is not None:
            await result
