"""The live subjects of terminals, subscribed once for all sockets of this gateway.

Owns the subscriptions and who is told. A terminal's output is subscribed while a socket is attached to it; cards are subscribed while there
is any socket. Without NATS nothing comes; a viewer sees the gap in the next frame's offset and attaches again.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from typing import Any, Protocol

import msgspec
from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.aio.subscription import Subscription
from nats.errors import Error as NatsError

from voxbridge.shared.terminals import live
from voxbridge.shared.terminals.model import LOCAL_HOST, Card

_log = logging.getLogger(__name__)


class Listener(Protocol):
    """A socket that is told."""

    def output(self, terminal: str, frame: bytes) -> None:
        """Take a frame of a terminal that it is attached to."""

    def card(self, terminal: str, card: Card | None) -> None:
        """Take a card; None for a terminal that was closed."""


class Hub:
    """The subscriptions of one gateway."""

    def __init__(self, nc: Client) -> None:
        self._nc = nc
        self._all: set[Listener] = set()
        self._cards: Subscription | None = None
        self._attached: dict[str, set[Listener]] = {}
        self._outputs: dict[str, Subscription] = {}
        self._decoder = msgspec.json.Decoder(Card)

    async def enter(self, listener: Listener) -> None:
        """Tell a socket of cards."""
        self._all.add(listener)
        if self._cards is None:
            self._cards = await self._nc.subscribe(live.card_subject(LOCAL_HOST), cb=self._card)

    async def leave(self, listener: Listener) -> None:
        """Tell a socket of nothing more."""
        self._all.discard(listener)
        for terminal in [name for name, attached in self._attached.items() if listener in attached]:
            await self.detach(listener, terminal)
        if not self._all and self._cards is not None:
            cards, self._cards = self._cards, None
            await self._unsubscribed(cards)

    async def attach(self, listener: Listener, terminal: str) -> None:
        """Tell a socket of a terminal's output, from before the screen that it then asks for."""
        self._attached.setdefault(terminal, set()).add(listener)
        if terminal not in self._outputs:
            self._outputs[terminal] = await self._nc.subscribe(live.output_subject(LOCAL_HOST, terminal), cb=self._reader(terminal))

    async def detach(self, listener: Listener, terminal: str) -> None:
        """Tell a socket of a terminal's output no more."""
        attached = self._attached.get(terminal, set())
        attached.discard(listener)
        if not attached:
            self._attached.pop(terminal, None)
            output = self._outputs.pop(terminal, None)
            if output is not None:
                await self._unsubscribed(output)

    def _reader(self, terminal: str) -> Callable[[Msg], Awaitable[None]]:
        async def output(message: Msg) -> None:
            for listener in tuple(self._attached.get(terminal, ())):
                listener.output(terminal, message.data)

        return output

    async def _card(self, message: Msg) -> None:
        try:
            card = self._decoder.decode(message.data) if message.data else None
        except msgspec.MsgspecError as error:
            _log.warning("a card on %s cannot be read: %s", message.subject, error)
            return
        terminal = message.subject.split(".")[3]
        for listener in tuple(self._all):
            listener.card(terminal, card)

    async def _unsubscribed(self, subscription: Any) -> None:
        try:
            await subscription.unsubscribe()
        except NatsError as error:  # the connection is gone, and the subscription with it
            _log.info("a subscription was not ended: %s", error)
