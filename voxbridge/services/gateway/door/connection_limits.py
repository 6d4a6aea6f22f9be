"""Limits on a gateway's connections from the first byte on: in all, per sender, and without a complete request.

Owns the counts and the choice of the connection to close. Does not own what a connection carries (`http_front`, `transport`). A crash here
loses the connections.
"""

from __future__ import annotations

import resource
from collections import Counter
from typing import Final, Protocol

from voxbridge.services.gateway.door.forwarded import Headers, IPv4, IPv6, Proxies, address, subscriber
from voxbridge.shared.config import Config
from voxbridge.shared.errors import Code, VoxbridgeError

HALF_OPEN: Final = 256
"""Connections that may be without a complete request; one more closes the oldest of them."""
DESCRIPTORS: Final = 65_536
"""File descriptors that the process asks for."""
RESERVE: Final = 96
"""Descriptors kept free for everything else: the bus, Valkey, files."""


class Waiting(Protocol):
    """A connection without a complete request."""

    def give_up(self) -> None:
        """Close, because there is no room to wait."""


class Lobby:
    """The connections of one gateway. `room`: how many it may have."""

    def __init__(self, config: Config, *, room: int) -> None:
        self.proxies = Proxies(config)
        self.here = 0
        self.room = room
        self._each = config.sockets_per_address
        self._by: Counter[str] = Counter()
        self._waiting: dict[Waiting, None] = {}

    def enter(self, peer: str) -> str:
        """Count a new connection, and return the value to pass to `leave`. Raises `OVERLOADED` when there is no room."""
        if self.here >= self.room:
            oldest = next(iter(self._waiting), None)
            if oldest is None:
                raise VoxbridgeError(Code.OVERLOADED, f"This gateway holds {self.room} connections, its limit.", limit=self.room)
            self.ready(oldest)
            oldest.give_up()
        found = address(peer)
        # Proxy connections carry many senders; loopback connections belong to the machine's owner.
        own = found is None or found.is_loopback or self.proxies.trusts(found)
        counted = "" if own or found is None else self._count(found)
        self.here += 1
        return counted

    def behind(self, peer: str, headers: Headers) -> str:
        """Count the sender of a socket opened through a trusted proxy, as in `enter`. Return an empty string for any other socket."""
        found = address(peer)
        if found is None or not self.proxies.trusts(found):
            return ""
        origin = self.proxies.origin(found, headers)
        return "" if self.proxies.trusts(origin) else self._count(origin)

    def leave(self, *counted: str) -> None:
        """Stop counting a connection that is gone."""
        self.here -= 1
        for one in counted:
            if one:
                self._by[one] -= 1
                if not self._by[one]:
                    del self._by[one]

    def wait(self, connection: Waiting) -> None:
        """Note that a connection waits for its request."""
        self._waiting[connection] = None
        if len(self._waiting) > HALF_OPEN:
            oldest = next(iter(self._waiting))
            self.ready(oldest)
            oldest.give_up()

    def ready(self, connection: Waiting) -> None:
        """Note that a connection no longer waits."""
        self._waiting.pop(connection, None)

    def _count(self, found: IPv4 | IPv6) -> str:
        sender = subscriber(found)
        if self._by[sender] >= self._each:
            message = f"{sender} holds {self._each} connections, as many as one address may have."
            raise VoxbridgeError(Code.OVERLOADED, message, field="address", limit=self._each, retry_after_ms=5_000)
        self._by[sender] += 1
        return sender


def raise_descriptors() -> int:
    """Raise the descriptor limit of this process as far as allowed, to `DESCRIPTORS` at most; return how many connections then fit."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = DESCRIPTORS if hard == resource.RLIM_INFINITY else min(hard, DESCRIPTORS)
    if soft != resource.RLIM_INFINITY and soft < most:
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
        soft = most
    room = DESCRIPTORS if soft == resource.RLIM_INFINITY else soft
    return max(RESERVE, room - RESERVE)
