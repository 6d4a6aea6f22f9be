"""Acts of owners and administrators on keys and approvals: each is an event in the log of the account.

Owns the checks and the appending. Does not own what the log says now (`registry`). An act is done when the log has it and this gateway
knows of it; a crash before that leaves it undone, or done and unanswered, which the list shows.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Callable
from typing import Final

from nats.errors import Error as NatsError
from nats.js.api import Header

from voxbridge.services.gateway.platform.registry import APPROVALS_LIMIT, KnownKey, Registry
from voxbridge.shared import events
from voxbridge.shared.bus import subjects
from voxbridge.shared.errors import Code, Unavailable, VoxbridgeError
from voxbridge.shared.events import keys as ev
from voxbridge.shared.log.reader import Log
from voxbridge.shared.platform import keys
from voxbridge.shared.platform.handlers import Configuration, digest_of
from voxbridge.shared.platform.keys import KEYS_LIMIT, OVERLAP_LIMIT_S, Key, Wishes

ACK_S: Final = 2.0
APPEND_S: Final = 8.0
_PAUSE_S: Final = 0.1


class Accounts:
    """The acts of one gateway. `now_us` is the time on the Unix clock."""

    def __init__(self, log: Log, registry: Registry, now_us: Callable[[], int]) -> None:
        self._log = log
        self._registry = registry
        self._now_us = now_us

    async def make(self, wishes: Wishes) -> tuple[Key, str]:
        """Make a key; return its terms and its text, which stands nowhere else. Raises `INVALID_ARGUMENT`, `RATE_LIMITED` and
        `UNAVAILABLE`."""
        self._registry.find("")
        key = keys.terms(wishes, now_s=self._now_us() // 1_000_000, key_id=secrets.token_hex(6))
        if len(self._registry.of(key.account)) >= KEYS_LIMIT:
            message = f"An account has at most {KEYS_LIMIT} keys. Revoke one that is no longer used."
            raise VoxbridgeError(Code.RATE_LIMITED, message, field="account", limit=KEYS_LIMIT, retryable=False)
        text = keys.text_of(key, secrets.token_urlsafe(24))
        await self._append(key.account, ev.KeyMade(key=key, hash=keys.hash_of(text)))
        return key, text

    async def rotate(self, key_id: str, *, overlap_s: int) -> tuple[Key, str]:
        """Give a key another text; the former ones count for `overlap_s` more. Raises `NOT_FOUND`, `INVALID_ARGUMENT` and `UNAVAILABLE`."""
        if not 0 <= overlap_s <= OVERLAP_LIMIT_S:
            message = f"`overlap` is 0 to {OVERLAP_LIMIT_S} s."
            raise VoxbridgeError(Code.INVALID_ARGUMENT, message, field="overlap", limit=OVERLAP_LIMIT_S)
        key = self.known(key_id).key
        text = keys.text_of(key, secrets.token_urlsafe(24))
        until_s = self._now_us() // 1_000_000 + overlap_s
        await self._append(key.account, ev.KeyRotated(key_id=key_id, hash=keys.hash_of(text), until_s=until_s))
        return key, text

    async def revoke(self, key_id: str) -> None:
        """Make a key count no more. Raises `NOT_FOUND` and `UNAVAILABLE`."""
        await self._append(self.known(key_id).key.account, ev.KeyRevoked(key_id=key_id))

    async def approve(self, account: str, configuration: Configuration, *, by: str) -> str:
        """Approve a configuration for the live keys of an account; return its digest. Raises `RATE_LIMITED` and `UNAVAILABLE`."""
        digest = digest_of(configuration)
        self._registry.find("")
        approved = self._registry.approved(account)
        if digest in approved:
            return digest
        if len(approved) >= APPROVALS_LIMIT:
            message = f"An account has at most {APPROVALS_LIMIT} approved configurations. Withdraw one that no page uses any more."
            raise VoxbridgeError(Code.RATE_LIMITED, message, field="digest", limit=APPROVALS_LIMIT, retryable=False)
        await self._append(account, ev.ConfigurationApproved(digest=digest, configuration=configuration, by=by))
        return digest

    async def withdraw(self, account: str, digest: str) -> None:
        """Let an approval count no more. Raises `NOT_FOUND` and `UNAVAILABLE`."""
        self._registry.find("")
        if digest not in self._registry.approved(account):
            raise VoxbridgeError(Code.NOT_FOUND, f"{account} has approved no configuration {digest[:64]!r}.", field="digest")
        await self._append(account, ev.ConfigurationWithdrawn(digest=digest))

    async def used(self, key: Key, session: str, *, seconds: int, tokens: int) -> None:
        """Record what a call took. Raises `UNAVAILABLE`."""
        await self._publish(key.account, ev.KeyUsed(key_id=key.id, session=session, seconds=seconds, tokens=tokens))

    def known(self, key_id: str) -> KnownKey:
        """Return a key that is not revoked. Raises `NOT_FOUND` and `UNAVAILABLE`."""
        found = self._registry.find(key_id)
        if found is None:
            raise VoxbridgeError(Code.NOT_FOUND, f"There is no key {key_id[:64]!r}; `voxbridge platform ls` lists them.", field="id")
        return found

    async def _append(self, account: str, event: events.Event) -> None:
        await self._registry.reached(await self._publish(account, event))

    async def _publish(self, account: str, event: events.Event) -> int:
        log_id = subjects.account_log(account)
        event_id = f"{log_id}.gateway.{secrets.token_hex(8)}.0"
        kind = events.kind_of(event)
        payload = events.encode(event, event_id=event_id, sid=log_id, ts=self._now_us(), cause=None)
        subject = subjects.event_subject(log_id, kind.writer, kind.visible, kind.name)
        loop = asyncio.get_running_loop()
        end = loop.time() + APPEND_S
        while True:
            try:
                acked = await self._log.js.publish(subject, payload, timeout=ACK_S, headers={Header.MSG_ID.value: event_id})
            except (TimeoutError, NatsError) as error:
                if loop.time() + _PAUSE_S >= end:
                    raise Unavailable(
                        "The event log did not take it, or did not say so. Look at the list.", retry_after_ms=1_000
                    ) from error
                await asyncio.sleep(_PAUSE_S)
            else:
                return acked.seq
