"""A service over WebSockets on a free port of 127.0.0.1: what stand-ins of such services share."""

from __future__ import annotations

from typing import Self

from websockets.asyncio.server import Server, ServerConnection, serve


class SocketServer:
    """A service. `url` is its address while it runs."""

    def __init__(self) -> None:
        self.url = ""
        self._server: Server | None = None

    async def __aenter__(self) -> Self:
        self._server = await serve(self._connection, "127.0.0.1", 0, max_size=None)
        self.url = f"ws://127.0.0.1:{next(iter(self._server.sockets)).getsockname()[1]}"
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._server is not None
        self._server.close()
        await self._server.wait_closed()

    @property
    def open(self) -> list[ServerConnection]:
        """Connections that are open."""
        assert self._server is not None
        return list(self._server.connections)

    async def _connection(self, socket: ServerConnection) -> None:
        """Serve a connection until it ends."""
        raise NotImplementedError
