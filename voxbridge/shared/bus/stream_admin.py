"""Administration of streams: which connections may create them, and requests that nats-py has no method for.

All connections may but those of a service that is a NATS user of its own. Such a connection does not try: a refusal would cost its timeout,
and count against its health. Owns a note per connection, gone with it, and the use of what nats-py keeps private in a JetStream context.
"""

from __future__ import annotations

from typing import Any, Final
from weakref import WeakSet

from nats.aio.client import Client
from nats.js.client import JetStreamContext

_limited: Final[WeakSet[Client]] = WeakSet()


def limit(client: Client) -> None:
    """Mark `client` as one that may not create streams and consumers."""
    _limited.add(client)


def may_make(js: JetStreamContext) -> bool:
    """Return whether this context's connection may create streams and consumers."""
    return js._nc not in _limited


async def ask(js: JetStreamContext, request: str, payload: bytes = b"", *, timeout_s: float) -> dict[str, Any]:
    """Return the server's answer to a request of the JetStream API, with fields that nats-py does not know. Raises as nats-py does."""
    answer: dict[str, Any] = await js._api_request(f"$JS.API.{request}", payload, timeout=timeout_s)
    return answer
