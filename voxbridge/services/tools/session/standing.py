"""Standing approvals of accounts: what a person approved for later calls, too.

Owns the reading of these facts from an account's own log, where they have no age. Keeps nothing in memory between two calls: a call that
needs approval is rare, and reads them anew, so a revocation counts at once in every process.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

from voxbridge.shared.bus import subjects
from voxbridge.shared.events.tools import ApprovalStanding
from voxbridge.shared.log.reader import Log

_TYPE: Final = "approval.standing"
_Key = tuple[str, bytes]
_encoder = msgspec.msgpack.Encoder(order="deterministic")


class Standing:
    """The standing approvals of one account."""

    def __init__(self, events: Sequence[ApprovalStanding] = ()) -> None:
        self._granted: dict[_Key, ApprovalStanding] = {}
        for event in events:
            key = _key(event.name, event.arguments)
            self._granted.pop(key, None)
            if event.granted:
                self._granted[key] = event

    def __iter__(self) -> Any:
        return iter(self._granted.values())

    def approves(self, name: str, arguments: Mapping[str, Any], definition: str) -> bool:
        """Tell whether a call is approved: the function itself, or with these arguments, and as it is defined now."""
        found = [self._granted.get(_key(name, None)), self._granted.get(_key(name, arguments))]
        return any(event is not None and event.definition == definition for event in found)


async def read(log: Log, account: str) -> Standing:
    """Read the standing approvals of an account. Raises `UNAVAILABLE`."""
    log_id = subjects.account_log(account)
    found = [recorded.event async for recorded in log.read_all(log_id, writer="tools", visibility="i", topic=_TYPE)]
    return Standing([event for event in found if isinstance(event, ApprovalStanding)])


def _key(name: str, arguments: Mapping[str, Any] | None) -> _Key:
    return name, b"" if arguments is None else _encoder.encode(arguments)
