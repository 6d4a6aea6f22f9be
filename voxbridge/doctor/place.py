"""Location of the examined product: on this machine, started by `voxbridge up`, or elsewhere, as from one container among others.

Owns the words that differ. A product elsewhere shows nothing on this machine: no folder, no port, no weights.
"""

from __future__ import annotations

from typing import Final

import msgspec

_SERVERS: Final = {"nats": "nats/nats.log", "valkey": "valkey/server.log"}


class Place(msgspec.Struct, frozen=True):
    """Location of the product. `here` is true if it runs on this machine."""

    here: bool

    @property
    def starter(self) -> str:
        """Program that restarts a process that ended."""
        return "`voxbridge up`" if self.here else "its container's engine"

    def log(self, name: str) -> str:
        """Return where to read the log of a process or a server; a sentence without its full stop."""
        if not self.here:
            return f"See its log (`docker compose logs {name}`)"
        return f"See {_SERVERS[name]}" if name in _SERVERS else f"See logs/{name}.log"
