"""Limits on starting calls and on writing to the log through this gateway.

Owns the gateway's rate of starts, the rate limits of accounts, and the watch over the log's free space with its alarm. Does not own the
rules (`voxbridge.shared.log.quotas`) nor who may call at all. Nothing is lost in a crash here.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import OrderedDict
from collections.abc import Callable
from typing import Final

from nats.errors import Error as NatsError

from voxbridge.shared.bus import subjects
from voxbridge.shared.condition import Condition
from voxbridge.shared.config import Config
from voxbridge.shared.errors import Code, VoxbridgeError
from voxbridge.shared.log.quotas import RESERVE, Quota, Rated, Rates, Starts, filling_up, full
from voxbridge.shared.log.reader import Log

LOOK_S: Final = 5.0
"""Seconds between two checks of the log's size."""

ANSWER_S: Final = 2.0
ACCOUNTS_LIMIT: Final = 4_096
"""Accounts whose rates are kept at a time. Above this, the account that has been idle longest is forgotten."""

_RETRY_MS: Final = 60_000
_log = logging.getLogger(__name__)


class Admission:
    """The limits of one gateway process."""

    def __init__(self, config: Config, clock: Callable[[], float] = time.monotonic) -> None:
        self.used = 0
        """Bytes of the log at the last check."""
        self.room: Final = config.log_mb * 1_000_000
        self._config = config
        self._clock = clock
        self._starts = Starts(config.starts_per_s, clock)
        self._accounts: OrderedDict[str, Rated] = OrderedDict()
        self._said = ""

    def start(self) -> None:
        """Raise `OVERLOADED` unless another call may begin now."""
        self.room_left()
        self._starts.take()

    def room_left(self) -> None:
        """Raise `OVERLOADED` when the log is so full that nothing new may begin."""
        if full(self.used, self.room) >= RESERVE:
            message = "The event log is almost full. New calls are refused until there is space; calls in progress are not affected."
            raise VoxbridgeError(Code.OVERLOADED, message, field="log_mb", limit=self._config.log_mb, retry_after_ms=_RETRY_MS)

    def quota(self, account: str) -> Quota:
        """Return the quota that a client of this account has in its session."""
        config = self._config
        session = Rates("session", config.session_events_per_s, config.session_kb_per_s * 1_000)
        return Quota(Rated(session, self._clock), self.account(account), max_bytes=config.session_mb * 1_000_000)

    def condition(self) -> Condition:
        """Return the condition of the log: `degraded` while it fills up."""
        said = filling_up(self.used, self.room)
        return Condition("degraded" if said else "ok", said)

    async def watch(self, log: Log) -> None:
        """Check the log's size, forever. A warning is logged once each time it changes."""
        while True:
            try:
                async with asyncio.timeout(ANSWER_S):
                    self.look(sum([(await log.js.stream_info(name)).state.bytes for name in subjects.LOG_STREAMS]))
            except (NatsError, TimeoutError):
                pass  # the readiness check reports the state of NATS
            await asyncio.sleep(LOOK_S)

    def look(self, used: int) -> None:
        """Take the current size of the log, in bytes."""
        self.used = used
        said = filling_up(used, self.room)
        kind = said.partition(":")[0]
        if kind != self._said:
            self._said = kind
            if said:
                _log.error("%s", said)
            else:
                _log.info("The event log has room again.")

    def account(self, name: str) -> Rated:
        """Return the rate limits of an account at this gateway."""
        found = self._accounts.get(name)
        if found is None:
            rates = Rates("account", self._config.account_events_per_s, self._config.account_kb_per_s * 1_000)
            found = self._accounts[name] = Rated(rates, self._clock)
            if len(self._accounts) > ACCOUNTS_LIMIT:
                self._accounts.popitem(last=False)
        self._accounts.move_to_end(name)
        return found
