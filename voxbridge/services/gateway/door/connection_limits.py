"""Connections of a gateway, from the first byte on: how many there may be, in all, of one sender, and without a whole request.

Owns the counts and who has to go. Does not own what a connection says (`front`, `socket`). A crash here loses the connections.
"""

from __future__ import annotations

import resource
from collections import Counter
from typing import Final, Protocol

from voxbridge.services.gateway.door.forwarded import Headers, IPv4, IPv6, Proxies, address, subscriber
from voxbridge.shared.config import Config
from voxbridge.shared.errors import Code, VoxbridgeError

HALF_OPEN: Final = 256
"""Connections that may be without a whole request; when one more comes, the oldest of them goes."""
DESCRIPTORS: Final = 65_536
"""As many as the process asks for."""
RESERVE: Final = 96
"""Descriptors that connections leave to everything else: the bus, Valkey, files."""


class Waiting(Protocol):
    """A connection whose request is not there yet."""

    def give_up(self) -> None:
        """Close: there is no room to wait."""


class Lobby:
    """The connections of one gateway. `room`: how many there may be."""

    def __init__(self, config: Config, *, room: int) -> None:
        self.proxies = Proxies(config)
        self.here = 0
        self.room = room
        self._each = config.sockets_per_address
        self._by: Counter[str] = Counter()
        self._waiting: dict[Waiting, None] = {}

    def enter(self, peer: str) -> str:
        """A connection has come; returns what `leave` wants back. Raises `OVERLOADED` when there is no room for it."""
        if self.here >= self.room:
            oldest = next(iter(self._waiting), None)
            if oldest is None:
                raise VoxbridgeError(Code.OVERLOADED, f"This gateway holds {self.room} connections, its limit.", limit=self.room)
            self.ready(oldest)
            oldest.give_up()
        found = address(peer)
        # A proxy's connections carry many senders; this machine's own are its owner's.
        own = found is None or found.is_loopback or self.proxies.trusts(found)
        counted = "" if own or found is None else self._count(found)
        self.here += 1
        return counted

    def behind(self, peer: str, headers: Headers) -> str:
        """A socket is opened through a trusted proxy: its sender is counted, as in `enter`. Nothing for any other one."""
        found = address(peer)
        if found is None or not self.proxies.trusts(found):
            return ""
        origin = self.proxies.origin(found, headers)
        return "" if self.proxies.trusts(origin) else self._count(origin)

    def leave(self, *counted: str) -> None:
        """A connection is gone."""
        self.here -= 1
        for one in counted:
            if one:
                self._by[one] -= 1
                if not self._by[one]:
                    del self._by[one]

    def wait(self, connection: Waiting) -> None:
        """A connection waits for its request."""
        self._waiting[connection] = None
        if len(self._waiting) > HALF_OPEN:
            oldest = next(iter(self._waiting))
            self.ready(oldest)
            oldest.give_up()

    def ready(self, connection: Waiting) -> None:
        """A connection waits no more."""
        self._waiting.pop(connection, None)

    def _count(self, found: IPv4 | IPv6) -> str:
        sender = subscriber(found)
        if self._by[sender] >= self._each:
            message = f"{sender} holds {self._each} connections, as many as one address may have."
            raise VoxbridgeError(Code.OVERLOADED, message, field="address", limit=self._each, retry_after_ms=5_000)
        self._by[sender] += 1
        return sender


def raise_descriptors() -> int:
    """Let this process have as many descriptors as it may, `DESCRIPTORS` at most; returns how many connections that leaves room for."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = DESCRIPTORS if hard == resource.RLIM_INFINITY else min(hard, DESCRIPTORS)
    if soft != resource.RLIM_INFINITY and soft < most:
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
        soft = most
    room = DESCRIPTORS if soft == resource.RLIM_INFINITY else soft
    return max(RESERVE, room - RESERVE)
