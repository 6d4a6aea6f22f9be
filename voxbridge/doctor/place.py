"""Where the product is that is examined: on this machine, started by `voxbridge up`, or elsewhere, as from one container among others.

Owns the words that differ. What is elsewhere shows nothing on this machine: no folder, no port, no weights.
"""

from __future__ import annotations

from typing import Final

import msgspec

_SERVERS: Final = {"nats": "nats/nats.log", "valkey": "valkey/server.log"}


class Place(msgspec.Struct, frozen=True):
    """`here`: whether this machine is the product's own."""

    here: bool

    @property
    def starter(self) -> str:
        """What starts a process again that ended."""
        return "`voxbridge up`" if self.here else "its container's engine"

    def log(self, name: str) -> str:
        """Where to read what a process or a server said; a sentence without its full stop."""
        if not self.here:
            return f"See its log (`docker compose logs {name}`)"
        return f"See {_SERVERS[name]}" if name in _SERVERS else f"See logs/{name}.log"
