"""Resumption handles of realtime models: kept here and in Valkey, and known elsewhere by a reference only.

A handle opens a conversation to anyone who has it, so it is in no event, no journal and no log line. A successor resumes with the copy
in Valkey; if that is lost, the conversation is seeded from the log instead. A crash loses the handles that Valkey does not have yet.
"""

from __future__ import annotations

import logging
from collections import OrderedDict
from hashlib import sha256
from typing import Final

import msgspec

from voxbridge.shared.errors import VoxbridgeError
from voxbridge.shared.store.store import Store

TTL_S: Final = 7_200
"""Seconds that Valkey keeps a handle: providers forget a session two hours after it ended."""

KEPT: Final = 4_096
"""Number of sessions whose handle is kept in this process."""

_log = logging.getLogger(__name__)


class Kept(msgspec.Struct, frozen=True, kw_only=True):
    """A handle, and what it is good for. `position` is that of the session's newest event when it was issued; `at` is in µs."""

    ref: str
    handle: str
    provider: str
    model: str
    config: str
    position: int
    at: int

    def __repr__(self) -> str:
        return f"Kept({self.ref})"


class Handles:
    """The newest handle of each session."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._kept: OrderedDict[str, Kept] = OrderedDict()

    def hold(self, sid: str, kept: Kept) -> None:
        """Keep a handle in this process."""
        self._kept[sid] = kept
        self._kept.move_to_end(sid)
        if len(self._kept) > KEPT:
            self._kept.popitem(last=False)

    async def save(self, sid: str) -> None:
        """Keep the newest handle in Valkey too; if Valkey does not answer, log that and go on."""
        kept = self._kept.get(sid)
        if kept is not None:
            try:
                await self._store.keep_handle(sid, msgspec.json.encode(kept).decode(), TTL_S)
            except VoxbridgeError as error:
                _log.warning("session %s: its resumption handle is not in Valkey: %s", sid, error.message)

    async def find(self, sid: str, ref: str) -> Kept | None:
        """Return the handle of this reference; None when it is kept nowhere any more."""
        kept = self._kept.get(sid)
        if kept is None or kept.ref != ref:
            try:
                found = await self._store.handle(sid)
                kept = msgspec.json.decode(found, type=Kept) if found else None
            except (VoxbridgeError, msgspec.MsgspecError) as error:
                _log.warning("session %s: its resumption handle cannot be read: %s", sid, type(error).__name__)
                kept = None
        return kept if kept is not None and kept.ref == ref else None

    async def forget(self, sid: str) -> None:
        """Forget the handle of a session that is over."""
        if self._kept.pop(sid, None) is None:
            return  # a handle that another worker kept expires by itself
        try:
            await self._store.forget_handle(sid)
        except VoxbridgeError as error:
            _log.warning("session %s: its resumption handle stays in Valkey until it runs out: %s", sid, error.message)


def reference(handle: str) -> str:
    """Return the reference of a handle, which reveals nothing of it."""
    return sha256(handle.encode()).hexdigest()[:16]
