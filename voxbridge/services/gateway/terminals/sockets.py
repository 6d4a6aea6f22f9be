"""The sockets to terminals of one gateway: who may open one, and how many there are.

Owns the set of sockets. A crash here costs viewers their sockets and nothing else: they ask for another ticket, and see the exact screens.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final
from urllib.parse import parse_qs

from starlette.types import Scope

from voxbridge.services.gateway.door.byte_budget import Budget
from voxbridge.services.gateway.door.transport import Socket
from voxbridge.services.gateway.terminals import tickets
from voxbridge.services.gateway.terminals.hub import Hub
from voxbridge.services.gateway.terminals.socket import TerminalSocket
from voxbridge.shared.errors import Code, VoxbridgeError
from voxbridge.shared.service.process import Resources

SOCKETS: Final = 200
"""Sockets to terminals that one gateway holds at a time."""

TICKET_LIMIT: Final = 64
"""Characters of a ticket."""


class Terminals:
    """The sockets to terminals."""

    def __init__(self, resources: Resources, budget: Budget) -> None:
        self._resources, self._budget = resources, budget
        self._hub = Hub(resources.events_nc)
        self._sockets: set[TerminalSocket] = set()

    def __len__(self) -> int:
        return len(self._sockets)

    async def enter(self, scope: Scope) -> Callable[[Socket], Awaitable[None]]:
        """Take the ticket of a handshake; return what serves its socket. Raises `UNAUTHENTICATED` and `OVERLOADED`."""
        if len(self._sockets) >= SOCKETS:
            raise VoxbridgeError(Code.OVERLOADED, f"This gateway holds {SOCKETS} sockets to terminals, its limit.", limit=SOCKETS)
        given = parse_qs(scope["query_string"].decode("latin-1")).get("ticket", [])
        if len(given) != 1 or len(given[0]) > TICKET_LIMIT:
            message = "A socket to terminals needs one ticket: `/ws/terminals?ticket=…`. Make it with `POST /api/terminals/tickets`."
            raise VoxbridgeError(Code.UNAUTHENTICATED, message, field="ticket")
        ticket = await tickets.take(self._resources.redis, given[0])

        async def serve(socket: Socket) -> None:
            connection = TerminalSocket(socket, ticket, self._resources, self._hub)
            socket.attach(connection, self._budget)
            self._sockets.add(connection)
            try:
                await connection.serve()
            finally:
                self._sockets.discard(connection)

        return serve

    def shut_down(self) -> None:
        """Tell every client to connect again."""
        for connection in self._sockets:
            connection.shut_down()
