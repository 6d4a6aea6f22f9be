"""Taking messages from a durable consumer, many with one request, each handed over as it arrives.

nats-py's `fetch` answers a request for many only once all are there or its time is over; a request for one costs a round trip each, which
behind a log that syncs every append is milliseconds. Owns the requests and their answers. Does not own the messages (`intake`). A crash
here loses nothing: what was delivered and not acknowledged is delivered again.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Final

from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.aio.subscription import Subscription
from nats.js.api import Header, StatusCode
from nats.js.errors import APIError

BATCH: Final = 64
"""Messages that one request asks for at most. Others that ask at the same time are served in turn."""

ANSWER_S: Final = 0.5
"""Seconds beyond the time of a request after which its end counts as lost, with the connection that it was sent on."""

_OVER: Final = (StatusCode.NO_MESSAGES, StatusCode.REQUEST_TIMEOUT, StatusCode.CONFLICT)
"""Statuses that end a request and after which another may be sent."""


class Pull:
    """Requests to one consumer. `receive` gets each message, one after the other."""

    def __init__(self, nc: Client, stream: str, durable: str, receive: Callable[[Msg], Awaitable[None]]) -> None:
        self._nc = nc
        self._subject = f"$JS.API.CONSUMER.MSG.NEXT.{stream}.{durable}"
        self._receive = receive
        self._inbox = ""
        self._subscription: Subscription | None = None
        self._requests = 0
        self._left = 0
        self._over: asyncio.Future[Msg | None] | None = None

    async def start(self) -> None:
        """Subscribe to the answers."""
        self._inbox = self._nc.new_inbox()
        self._subscription = await self._nc.subscribe(f"{self._inbox}.*", cb=self._came)

    async def stop(self) -> None:
        """Receive no more. What is delivered from now on is delivered again elsewhere."""
        if self._subscription is not None:
            await self._subscription.unsubscribe()

    async def take(self, count: int, timeout_s: float) -> None:
        """Ask for `count` messages, `BATCH` at most; return when as many were received, or none came any more for `timeout_s`.

        Raises `APIError` when the consumer is not there, and `NatsError` while the connection is closed.
        """
        self._requests += 1
        self._left = min(count, BATCH)
        over = self._over = asyncio.get_running_loop().create_future()
        request = {"batch": self._left, "expires": round(timeout_s * 1_000_000_000)}
        await self._nc.publish(self._subject, json.dumps(request).encode(), reply=self._reply())
        done, _ = await asyncio.wait({over}, timeout=timeout_s + ANSWER_S)
        self._over = None
        if done and (refusal := over.result()) is not None:
            APIError.from_msg(refusal)

    async def _came(self, message: Msg) -> None:
        status = (message.headers or {}).get(Header.STATUS)
        if status is None or message.reply:
            self._left -= 1
            try:
                await self._receive(message)
            finally:
                if self._left <= 0:
                    self._end(None)
        elif message.subject == self._reply() and status != StatusCode.CONTROL_MESSAGE:
            self._end(None if status in _OVER else message)

    def _reply(self) -> str:
        return f"{self._inbox}.{self._requests}"

    def _end(self, refusal: Msg | None) -> None:
        if self._over is not None and not self._over.done():
            self._over.set_result(refusal)
