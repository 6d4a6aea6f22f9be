"""The ledgers of the accounts that somebody asked about lately, each kept current by a feed of the account's log.

Owns opening, keeping current and closing them. A ledger is as good as the log: who relies on something not being in it waits until it has
all that the log has (`Followed.current`). A crash loses nothing.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable
from typing import Final

from voxbridge.services.gateway.calls.ledger import KEY_US, TYPES, Ledger
from voxbridge.shared import events
from voxbridge.shared.bus import subjects
from voxbridge.shared.errors import Code, Unavailable, VoxbridgeError
from voxbridge.shared.log.feed import Feed
from voxbridge.shared.log.reader import Log, decode, position

LEDGERS_LIMIT: Final = 64
"""Accounts that are followed at a time. Above it, the one that has been idle longest is closed, and read again when it is asked for."""

WINDOW_US: Final = 2 * KEY_US
"""Part of the log that is read: the time of the keys, and that of tasks that began before."""

CURRENT_S: Final = 5.0
"""Seconds that a feed may be behind the log."""


class Followed:
    """The ledger of one account and its feed."""

    def __init__(self, log: Log, account: str, now: Callable[[], int]) -> None:
        self.ledger = Ledger()
        self.log_id = subjects.account_log(account)
        self._log = log
        self._now = now
        self._feed: Feed | None = None
        self._opening = asyncio.Lock()
        self._moved = asyncio.Event()

    async def open(self) -> None:
        """Read the last days of the log, and follow it. Raises `UNAVAILABLE`."""
        async with self._opening:
            if self._feed is not None:
                return
            end, _ = await self._log.position(self.log_id, "*")
            page = await self._log.page(self.log_id, since=self._now() - WINDOW_US, limit=1)
            after = position(page.messages[0]) - 1 if page.messages else end
            feed = Feed(self._log, self.log_id, self._take, types=TYPES, after=after)
            await feed.start()
            self._feed = feed

    async def close(self) -> None:
        """Follow no longer."""
        if self._feed is not None:
            await self._feed.stop()

    async def current(self, seq: int | None = None) -> None:
        """Wait until the ledger has all requests that the log has now, or that up to position `seq`. Raises `UNAVAILABLE`."""
        if seq is None:
            requests = subjects.event_subject(self.log_id, "gateway", visible=False, event_type="tool.requested")
            last = await self._log.last([requests])
            seq = last[0].seq if last else 0
        try:
            async with asyncio.timeout(CURRENT_S):
                while self._feed is None or self._feed.position < seq:
                    self._moved.clear()
                    await self._moved.wait()
        except TimeoutError:
            raise Unavailable("The log of the account is not followed closely enough now; ask again.", retry_after_ms=1_000) from None

    async def read(self, seq: int) -> events.Recorded:
        """Return the event at a position. Raises `NOT_FOUND` for one that was erased."""
        page = await self._log.page(self.log_id, after=seq - 1, limit=1)
        if not page.messages or position(page.messages[0]) != seq:
            raise VoxbridgeError(Code.NOT_FOUND, "The outcome of this call was erased from the log.", field="Idempotency-Key")
        return decode(page.messages[0])

    def _take(self, recorded: events.Recorded) -> None:
        self.ledger.take(recorded)
        self._moved.set()


class Ledgers:
    """The ledgers of one gateway; `now` is the time in µs."""

    def __init__(self, log: Log, now: Callable[[], int]) -> None:
        self._log = log
        self._now = now
        self._followed: OrderedDict[str, Followed] = OrderedDict()

    async def of(self, account: str) -> Followed:
        """Return the ledger of an account. Raises `UNAVAILABLE`."""
        found = self._followed.get(account)
        if found is None:
            found = self._followed[account] = Followed(self._log, account, self._now)
        self._followed.move_to_end(account)
        await found.open()
        await self._close_idle()
        return found

    async def close(self) -> None:
        """Close all of them."""
        followed, self._followed = self._followed, OrderedDict()
        for one in followed.values():
            await one.close()

    async def _close_idle(self) -> None:
        for account, one in list(self._followed.items())[: max(0, len(self._followed) - LEDGERS_LIMIT)]:
            if one.ledger.idle:
                del self._followed[account]
                await one.close()
