"""Which connections may make streams and consumers: all but those of a service that is a NATS user of its own.

Such a connection does not try: a refusal would take its time-out, and be held against its health. Owns a note per connection, gone
with it.
"""

from __future__ import annotations

from typing import Final
from weakref import WeakSet

from nats.aio.client import Client

_limited: Final[WeakSet[Client]] = WeakSet()


def limit(client: Client) -> None:
    """From now on `client` makes nothing."""
    _limited.add(client)


def may_make(client: Client) -> bool:
    """Whether streams and consumers are this connection's to make."""
    return client not in _limited
