"""Keys and approvals of all accounts, as every gateway holds them in memory: a fold of what the accounts' logs say.

Owns following the logs and what they say now. Does not own the events (`voxbridge.shared.events.keys`) nor what a key may do
(`voxbridge.shared.platform.keys`). The log is the truth: a crash, and losing Valkey, lose no key. A handshake is judged without a request
to anything, and a revoked key counts no more at any gateway some milliseconds later.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

import msgspec
from nats.aio.msg import Msg
from nats.aio.subscription import Subscription

from voxbridge.shared import events
from voxbridge.shared.bus import subjects
from voxbridge.shared.errors import Unavailable, VoxbridgeError
from voxbridge.shared.events import keys as ev
from voxbridge.shared.log.reader import Log
from voxbridge.shared.platform.handlers import Configuration
from voxbridge.shared.platform.keys import Key

LOOK_S: Final = 5.0
"""Seconds between two reads of the log, in case a live copy was lost between servers."""

RETRY_S: Final = 0.5
APPROVALS_LIMIT: Final = 256
"""Configurations of an account that are approved at a time."""

_log = logging.getLogger(__name__)


class KnownKey(msgspec.Struct, frozen=True):
    """A key that is not revoked, and the hashes of its texts with the time (s) until which each counts, 0 for ever; the newest first."""

    key: Key
    hashes: tuple[tuple[str, int], ...]

    def counting(self, now_s: int) -> tuple[str, ...]:
        """Return the hashes that count now."""
        return tuple(one for one, until_s in self.hashes if not until_s or now_s < until_s)


class Registry:
    """The registry of one gateway."""

    def __init__(self, log: Log) -> None:
        self.keys: dict[str, KnownKey] = {}
        """Keys that are not revoked, by id."""

        self._approved: dict[str, dict[str, ev.ConfigurationApproved]] = {}
        self._log = log
        self._position = 0
        self._whole = False
        self._wake = asyncio.Event()
        self._moved = asyncio.Condition()
        self._subscription: Subscription | None = None

    @property
    def whole(self) -> bool:
        """True once everything was read that the log had when this gateway began."""
        return self._whole

    def find(self, key_id: str) -> KnownKey | None:
        """Return a key. Raises `UNAVAILABLE` before the log was read."""
        if not self._whole:
            raise Unavailable("The keys of this installation are being read. Try again.", retry_after_ms=1_000)
        return self.keys.get(key_id)

    def approved(self, account: str) -> Mapping[str, ev.ConfigurationApproved]:
        """Return what the owner of an account approved, by digest, oldest first."""
        return MappingProxyType(self._approved.get(account, {}))

    def of(self, account: str) -> list[KnownKey]:
        """Return the keys of an account, oldest first; of all accounts for an empty name."""
        return [one for one in self.keys.values() if account in ("", one.key.account)]

    def newest(self, account: str) -> Configuration | None:
        """Return the configuration that was approved last."""
        found = list(self._approved.get(account, {}).values())
        return found[-1].configuration if found else None

    async def follow(self) -> None:
        """Follow the logs of all accounts, until cancelled."""
        live = subjects.live_subject(subjects.ACCOUNTS, "gateway", "i", subjects.KEYS)
        self._subscription = await self._log.nc.subscribe(live, cb=self._live)
        self._log.follow(self)
        try:
            while True:
                self._wake.clear()
                await self._read()
                try:
                    async with asyncio.timeout(LOOK_S if self._whole else RETRY_S):
                        await self._wake.wait()
                except TimeoutError:
                    pass
        finally:
            self._log.unfollow(self)

    async def catch_up(self) -> None:
        """Read what may have been missed while the connection was cut."""
        self._wake.set()

    async def reached(self, position: int) -> None:
        """Wait until the registry has the event at a position, which this gateway has written. Raises `UNAVAILABLE`."""
        self._wake.set()
        try:
            async with asyncio.timeout(LOOK_S), self._moved:
                await self._moved.wait_for(lambda: self._position >= position)
        except TimeoutError:
            raise Unavailable("The log has it, and this gateway does not know of it yet.", retry_after_ms=1_000) from None

    async def _live(self, _: Msg) -> None:
        self._wake.set()

    async def _read(self) -> None:
        try:
            reading = self._log.read_all(
                subjects.ACCOUNTS, writer="gateway", visibility="i", topic=subjects.KEYS, after=self._position, imported=False
            )
            async for recorded in reading:
                self._take(recorded)
            self._whole = True
        except VoxbridgeError as error:
            _log.warning("keys and approvals cannot be read now: %s", error.message)
        async with self._moved:
            self._moved.notify_all()

    def _take(self, recorded: events.Recorded) -> None:
        self._position = recorded.seq
        account = subjects.account_of(recorded.sid)
        match recorded.event:
            case ev.KeyMade(key=key, hash=made) if key.account == account:
                self.keys[key.id] = KnownKey(key, ((made, 0),))
            case ev.KeyRotated(key_id=key_id, hash=made, until_s=until_s) if self._is_of(key_id, account):
                known = self.keys[key_id]
                before = tuple((one, min(until, until_s) if until else until_s) for one, until in known.hashes[:7])
                self.keys[key_id] = KnownKey(known.key, ((made, 0), *before))
            case ev.KeyRevoked(key_id=key_id) if self._is_of(key_id, account):
                del self.keys[key_id]
            case ev.ConfigurationApproved(digest=digest):
                approved = self._approved.setdefault(account, {})
                approved.pop(digest, None)
                approved[digest] = recorded.event
                while len(approved) > APPROVALS_LIMIT:
                    del approved[next(iter(approved))]
            case ev.ConfigurationWithdrawn(digest=digest):
                self._approved.get(account, {}).pop(digest, None)
            case _:
                pass

    def _is_of(self, key_id: str, account: str) -> bool:
        return key_id in self.keys and self.keys[key_id].key.account == account
