"""A socket to terminals: cards, screens and keys (docs/terminals.md).

Owns the rights of its ticket and its order of frames: a terminal's snapshot comes first, and then what its program wrote after it. What the
socket is sent is bounded by `QUEUE_BYTES` of the transport; a client that reads more slowly than a terminal writes is left out until it has
read, and then given the screen anew. Text messages are JSON, those of the client in `orders`:

| from the gateway | |
|---|---|
| `cards` | all terminals, first |
| `card` | one that changed |
| `gone` | `id` |
| `attached` | `id`, `channel`, `columns`, `rows` |
| `error` | `code`, `message`, `about`: the terminal, where there is one |

Binary messages are a channel's number (one byte) and, from the client, keys; from the gateway, a frame of `live.encode_output`.
"""

from __future__ import annotations

import asyncio
import secrets
from collections import deque
from typing import Any, Final

import msgspec

from voxbridge.services.gateway.door.transport import Socket
from voxbridge.services.gateway.terminals import orders
from voxbridge.services.gateway.terminals.hub import Hub
from voxbridge.services.gateway.terminals.tickets import Role, Ticket
from voxbridge.shared.errors import Code, VoxbridgeError
from voxbridge.shared.service.process import Resources
from voxbridge.shared.step.effects import Tasks
from voxbridge.shared.terminals import live
from voxbridge.shared.terminals import questions as asked
from voxbridge.shared.terminals.client import ask
from voxbridge.shared.terminals.model import LOCAL_HOST, Card

CHANNELS: Final = 64
"""Terminals that one socket is attached to."""

HELD: Final = 256
"""Frames that are kept back until a snapshot was sent; after more of them another snapshot is asked for."""

ORDERS: Final = 64
"""Messages of a client that wait to be carried out."""

_RESTARTING: Final = 1012
_TRY_LATER: Final = 1013
_encoder: Final = msgspec.json.Encoder()


class TerminalSocket:
    """One socket. `closed` is set once it is gone."""

    def __init__(self, socket: Socket, ticket: Ticket, resources: Resources, hub: Hub) -> None:
        self.closed = asyncio.Event()
        self._socket, self._ticket, self._hub = socket, ticket, hub
        self._nc = resources.events_nc
        self._name = secrets.token_hex(8)
        self._channels: dict[str, int] = {}
        self._terminals: dict[int, str] = {}
        self._late: set[str] = set()
        """Terminals whose frames are left out: a snapshot is on its way, or the client did not read."""

        self._held: dict[str, list[bytes]] = {}
        self._from: dict[str, tuple[int, int]] = {}
        """Starts and offsets of the snapshots that were sent, by their terminals."""

        self._known: dict[str, Card] = {}
        self._orders: deque[orders.Order] = deque()
        self._news = asyncio.Event()
        self._doing = Tasks[None]("a socket to terminals")

    def shut_down(self) -> None:
        """Tell the client to connect again: the gateway stops."""
        self._socket.finish(_RESTARTING, "")

    async def serve(self) -> None:
        """Serve until the socket is closed."""
        await self._hub.enter(self)
        working = asyncio.create_task(self._work())
        try:
            await self.closed.wait()
        finally:
            working.cancel()
            await asyncio.wait({working})
            self._doing.cancel_background()
            await self._hub.leave(self)
            for terminal in [name for name, card in self._known.items() if card.held_by and name in self._channels]:
                await self._answered(self._let_go(terminal))

    # What the transport calls.

    def text(self, payload: bytes) -> None:
        """Take an order."""
        try:
            order = orders.decode(payload)
        except msgspec.MsgspecError as error:
            self._refuse(VoxbridgeError(Code.INVALID_MESSAGE, f"The message cannot be read: {error}."), "")
            return
        if len(self._orders) >= ORDERS:
            self._refuse(VoxbridgeError(Code.RATE_LIMITED, f"{ORDERS} messages wait already.", limit=ORDERS), order.about)
            return
        self._orders.append(order)
        self._news.set()

    def binary(self, payload: bytes) -> None:
        """Take keys: they go to the terminal at once, beside the orders."""
        terminal = self._terminals.get(payload[0]) if payload else None
        try:
            if terminal is None:
                raise VoxbridgeError(Code.INVALID_MESSAGE, "These keys are for no terminal that the socket is attached to.")  # noqa: TRY301 - answered as any
            self._check("type")
            if not 1 < len(payload) <= live.TYPED_LIMIT:
                message = f"A message types 1 to {live.TYPED_LIMIT - 1} bytes."
                raise VoxbridgeError(Code.TOO_LARGE, message, limit=live.TYPED_LIMIT - 1)  # noqa: TRY301 - as above
        except VoxbridgeError as error:
            self._refuse(error, terminal or "")
            return
        typed = live.Typed(by=self._ticket.by, connection=self._name, data=payload[1:])
        self._doing.background(self._nc.publish(live.typed_subject(LOCAL_HOST, terminal), msgspec.msgpack.encode(typed)))

    def overflowed(self) -> None:
        """End: the client reads nothing."""
        self._socket.drop_queue()
        self._socket.finish(_TRY_LATER, "too slow")

    def lost(self, code: int) -> None:  # noqa: ARG002 - the transport tells everyone
        """Take that the socket is gone."""
        self.closed.set()

    # What the hub calls.

    def output(self, terminal: str, frame: bytes) -> None:
        """Send a frame, or keep it back until the snapshot before it was sent."""
        held = self._held.get(terminal)
        if held is not None:
            if len(held) < HELD:
                held.append(frame)
            else:
                self._late.add(terminal)
            return
        channel = self._channels.get(terminal)
        if channel is None or terminal in self._late or terminal not in self._from:
            return
        if self._socket.congested:
            self._late.add(terminal)
            self._doing.background(self._catch_up(terminal))
            return
        self._forward(terminal, channel, frame)

    def card(self, terminal: str, card: Card | None) -> None:
        """Send a card."""
        if card is None:
            if self._known.pop(terminal, None) is not None:
                self._send({"type": "gone", "id": terminal})
        elif self._sees(card):
            self._known[terminal] = card
            self._send({"type": "card", "card": card})

    # Orders, one after the other.

    async def _work(self) -> None:
        await self._answered(self._list())
        while True:
            while self._orders:
                await self._answered(self._do(self._orders.popleft()))
            self._news.clear()
            await self._news.wait()

    async def _answered(self, work: Any, about: str = "") -> None:
        try:
            await work
        except VoxbridgeError as error:
            self._refuse(error, about)

    async def _list(self) -> None:
        found = await ask(self._nc, LOCAL_HOST, asked.ListTerminals(by=self._ticket.by))
        seen = [card for card in found.terminals if self._sees(card)]
        self._known = {card.id: card for card in seen}
        self._send({"type": "cards", "cards": seen, "isolation": found.isolation, "role": self._ticket.role, "connection": self._name})

    async def _do(self, order: orders.Order) -> None:
        try:
            self._check(order.role)
            if order.about and order.about not in self._known:
                message = f"There is no terminal {order.about} that you may see."
                raise VoxbridgeError(Code.NOT_FOUND, message, field="id")  # noqa: TRY301 - answered as any
            if isinstance(order, orders.Attach):
                await self._attach(order.id)
            elif isinstance(order, orders.Detach):
                await self._detach(order.id)
            elif order.asks is not None:
                fields = order.fields(self._ticket, self._name)
                await ask(self._nc, LOCAL_HOST, order.asks(by=self._ticket.by, **fields))
        except VoxbridgeError as error:
            self._refuse(error, order.about)

    async def _attach(self, terminal: str) -> None:
        if terminal not in self._channels:
            free = next((number for number in range(CHANNELS) if number not in self._terminals), None)
            if free is None:
                raise VoxbridgeError(Code.TOO_LARGE, f"A socket is attached to {CHANNELS} terminals at most.", limit=CHANNELS)
            self._channels[terminal], self._terminals[free] = free, terminal
        await self._snapshot(terminal)

    async def _snapshot(self, terminal: str) -> None:
        """Send the screen, and then what was written after it."""
        held = self._held[terminal] = []
        self._late.discard(terminal)
        try:
            await self._hub.attach(self, terminal)
            found = await ask(self._nc, LOCAL_HOST, asked.Attach(by=self._ticket.by, terminal=terminal))
        except VoxbridgeError:
            await self._detach(terminal)
            raise
        finally:
            self._held.pop(terminal, None)
        channel = self._channels.get(terminal)
        if channel is None:
            return
        self._send({"type": "attached", "id": terminal, "channel": channel, "columns": found.columns, "rows": found.rows})
        first = live.Output(run=found.run, offset=found.offset, data=found.snapshot, keyframe=True)
        self._socket.send_binary(bytes((channel,)) + live.encode_output(first))
        self._from[terminal] = found.run, found.offset
        for frame in held:
            self._forward(terminal, channel, frame)
        if terminal in self._late:
            self._doing.background(self._catch_up(terminal))

    def _forward(self, terminal: str, channel: int, frame: bytes) -> None:
        output = live.decode_output(frame)
        # Answers and output have no order among each other: what the snapshot shows may come after it.
        if (output.run, output.offset) >= self._from[terminal]:
            self._socket.send_binary(bytes((channel,)) + frame)

    async def _catch_up(self, terminal: str) -> None:
        await self._socket.drained()
        if not self.closed.is_set() and terminal in self._channels:
            await self._answered(self._snapshot(terminal), terminal)

    async def _detach(self, terminal: str) -> None:
        channel = self._channels.pop(terminal, None)
        if channel is not None:
            del self._terminals[channel]
        self._from.pop(terminal, None)
        self._late.discard(terminal)
        await self._hub.detach(self, terminal)

    async def _let_go(self, terminal: str) -> None:
        await ask(self._nc, LOCAL_HOST, asked.Hold(by=self._ticket.by, terminal=terminal, connection=self._name, take=False))

    def _sees(self, card: Card) -> bool:
        return not self._ticket.workspace or card.workspace == self._ticket.workspace

    def _check(self, role: Role) -> None:
        if not self._ticket.may(role):
            message = f"This ticket is for the role {self._ticket.role}; this needs {role}."
            raise VoxbridgeError(Code.PERMISSION_DENIED, message, field="role", limit=role)

    def _refuse(self, error: VoxbridgeError, about: str) -> None:
        self._send({"type": "error", **error.as_dict(), "about": about})

    def _send(self, message: dict[str, Any]) -> None:
        self._socket.send_text(_encoder.encode(message))
