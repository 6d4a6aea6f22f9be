"""Note of which connections may create streams and consumers: all but those of a service that is a NATS user of its own.

Such a connection does not try: a refusal would cost its timeout, and count against its health. Owns a note per connection, gone with it.
"""

from __future__ import annotations

from typing import Final
from weakref import WeakSet

from nats.aio.client import Client

_limited: Final[WeakSet[Client]] = WeakSet()


def limit(client: Client) -> None:
    """Mark `client` as one that may not create streams and consumers."""
    _limited.add(client)


def may_make(client: Client) -> bool:
    """Return whether this connection may create streams and consumers."""
    return client not in _limited
