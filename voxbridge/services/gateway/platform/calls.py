"""Calls that were opened with keys at this gateway, from their beginning to the end that their log has.

Owns their counting: seconds and tokens are added to the counts in Valkey every two seconds, and a call holds its place among those of its
key until its session has ended, whoever holds the socket. So a client that leaves before its turn is over has still used it. A crash here
loses what was not counted yet, two seconds; the gateway at which such a call is resumed goes on counting.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine
from typing import Any, Final

from voxbridge.services.gateway.platform.accounts import Accounts
from voxbridge.shared import events
from voxbridge.shared.errors import VoxbridgeError
from voxbridge.shared.log.feed import Feed
from voxbridge.shared.log.reader import Log
from voxbridge.shared.platform.keys import Key
from voxbridge.shared.store.usage import Took, UsageStore

COUNT_S: Final = 2.0
"""Seconds between two counts, a third of the time for which a place is held."""

OVERDUE_S: Final = 600
"""Seconds after the longest time of a call at which it is given up, if its log has no end."""

_TYPES: Final = ("turn.completed", "session.ended")
_log = logging.getLogger(__name__)


class _Call:
    """A call and what of it was counted."""

    def __init__(self, key: Key, sid: str, began: float) -> None:
        self.key = key
        self.sid = sid
        self.began = began
        self.tokens = 0
        self.feed: Feed | None = None
        self.over_at: float | None = None
        self._counted = (0, 0)

    def total(self, now: float) -> tuple[int, int]:
        """Return the seconds and tokens so far."""
        return round((self.over_at or now) - self.began), self.tokens

    def took(self, now: float) -> Took:
        """Return what was not counted yet."""
        seconds, tokens = self.total(now)
        return Took(self.key.id, self.sid, seconds - self._counted[0], tokens - self._counted[1], leaves=self.over_at is not None)

    def counted(self, took: Took) -> None:
        """Take as counted what Valkey has."""
        self._counted = (self._counted[0] + took.seconds, self._counted[1] + took.tokens)


class KeyCalls:
    """The calls of one gateway. `background` runs what outlives its caller."""

    def __init__(self, log: Log, usage: UsageStore, accounts: Accounts, background: Callable[[Coroutine[Any, Any, Any]], None]) -> None:
        self._log = log
        self._usage = usage
        self._accounts = accounts
        self._background = background
        self._calls: dict[str, _Call] = {}
        self._counting = asyncio.Lock()
        self._places: dict[str, Key] = {}
        """Sockets that have no session yet, by the name of their place."""

    def __len__(self) -> int:
        return len(self._calls)

    def entered(self, place: str, key: Key) -> None:
        """Hold the place of a socket that has no session yet."""
        self._places[place] = key

    def left(self, place: str) -> None:
        """Leave the place of a socket: it is gone, or its call has a place of its own."""
        key = self._places.pop(place, None)
        if key is not None:
            self._background(self._usage.keep([Took(key.id, place, 0, 0, leaves=True)]))

    def opened(self, key: Key, sid: str, position: int) -> None:
        """Count a call from the position of its request on."""
        if sid not in self._calls:
            self._calls[sid] = call = _Call(key, sid, asyncio.get_running_loop().time())
            self._background(self._count_from(call, position))

    async def resumed(self, key: Key, sid: str, position: int) -> None:
        """Go on counting a call whose gateway died; one that still counts it goes on itself."""
        if sid not in self._calls and not await self._usage.holds(key.id, sid):
            self.opened(key, sid, position)

    async def count(self) -> None:
        """Count, until cancelled."""
        while True:
            await asyncio.sleep(COUNT_S)
            await self.count_now()

    async def count_now(self) -> None:
        """Add what was not counted yet to the counts, and end the calls that are over. What Valkey does not take is counted the next time,
        unless the call is over by then."""
        async with (
            self._counting
        ):  # two at a time would count the same seconds twice, and end a call whose last ones are still on their way
            await self._count(asyncio.get_running_loop().time())

    async def _count(self, now: float) -> None:
        for call in list(self._calls.values()):
            if call.over_at is None and now - call.began > call.key.limits.seconds_a_call + OVERDUE_S:
                call.over_at = now
        places = [Took(key.id, place, 0, 0) for place, key in self._places.items()]
        took = [(call, call.took(now)) for call in self._calls.values()]
        try:
            await self._usage.keep([*places, *(one for _, one in took)])
        except VoxbridgeError as error:
            _log.warning("%s Calls go on.", error.message)
        else:
            for call, one in took:
                call.counted(one)
        for call, one in took:
            if one.leaves:
                await self._end(call, now)

    async def _count_from(self, call: _Call, position: int) -> None:
        def take(recorded: events.Recorded) -> None:
            match recorded.event:
                case events.voice.TurnCompleted(usage=usage):
                    call.tokens += usage.input_tokens + usage.output_tokens
                case events.voice.SessionEnded(usage=usage):
                    if isinstance(usage, events.voice.Usage):
                        call.tokens += usage.input_tokens + usage.output_tokens
                    call.over_at = asyncio.get_running_loop().time()

        call.feed = Feed(self._log, call.sid, take, writer="voice", types=_TYPES, after=position)
        await call.feed.start()

    async def _end(self, call: _Call, now: float) -> None:
        self._calls.pop(call.sid, None)
        if call.feed is not None:
            await call.feed.stop()
        seconds, tokens = call.total(now)
        self._background(self._accounts.used(call.key, call.sid, seconds=seconds, tokens=tokens))

    async def close(self) -> None:
        """Count once more, and count no longer."""
        await self.count_now()
        for call in self._calls.values():
            if call.feed is not None:
                await call.feed.stop()
