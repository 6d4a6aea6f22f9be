"""The outermost ASGI application: the guard, the VOX socket, and the HTTP application behind them.

Owns the handshakes of `/ws/vox` and `/session`, and the security headers of every answer. Sockets are served here and not by FastAPI,
whose WebSocket class costs several microseconds a frame.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sized
from typing import Final, Protocol

import msgspec
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from voxbridge.services.gateway.door.access import Arrival, arrival
from voxbridge.services.gateway.door.origin_guard import Guard
from voxbridge.services.gateway.door.transport import EXTENSION, Socket
from voxbridge.shared.errors import HTTP_STATUS, Code, VoxbridgeError

PATH: Final = "/ws/vox"
SESSION: Final = "/session"
"""Door of pages that are embedded elsewhere: a key's origins count there, and not those of the installation."""

TERMINALS: Final = "/ws/terminals"
"""Door of viewers of terminals, who bring a ticket."""

PROTOCOL_V1: Final = "voxbridge.v1"
SOCKET_LIMIT: Final = 2_000
"""Sockets that one gateway process holds at a time."""

_POLICY: Final = (
    "default-src 'self'; worker-src 'self' blob:; script-src 'self' blob:; style-src 'self' 'unsafe-inline'; "
    "connect-src 'self' ws://{host} wss://{host}; img-src 'self' data:; media-src 'self' blob:; font-src 'self'; object-src 'none'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
"""Policy of a served page. `host` is the requested host, already checked against the allow-list: not every browser lets 'self' cover
WebSockets."""
_HEADERS: Final = (
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-opener-policy", b"same-origin"),
)
_REFUSAL: Final = ((b"content-security-policy", b"default-src 'none'; frame-ancestors 'none'"),)
_NO_STORE: Final = (b"cache-control", b"no-store")
_READ: Final = ("/api/", "/metrics", "/readyz")
"""Paths whose answers describe calls or the installation: no cache may keep them."""


class Sockets(Protocol):
    """The process that serves accepted sockets."""

    @property
    def draining(self) -> bool:
        """True once the process is to stop: it takes no more sockets."""

    @property
    def connections(self) -> Sized:
        """The sockets that are open."""

    async def serve_socket(self, socket: Socket, came: Arrival, *, v1: bool) -> None:
        """Serve one accepted socket until it closes."""

    async def enter(self, scope: Scope, *, v1: bool) -> Callable[[Socket], Awaitable[None]]:
        """Judge a handshake at `SESSION`; return what serves its socket. Raises the error that refuses it."""

    async def enter_terminals(self, scope: Scope) -> Callable[[Socket], Awaitable[None]]:
        """Judge a handshake at `TERMINALS` by its ticket; return what serves its socket. Raises the error that refuses it."""


class Application:
    """The ASGI application that uvicorn serves."""

    def __init__(self, guard: Guard, sockets: Sockets, http: ASGIApp) -> None:
        self._guard = guard
        self._sockets = sockets
        self._http = http

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request or one socket."""
        kind = scope["type"]
        session = kind == "websocket" and scope["path"] == SESSION
        v1 = PROTOCOL_V1 in scope.get("subprotocols", ())
        serve: Callable[[Socket], Awaitable[None]] | None = None
        try:
            self._guard.check(scope, any_origin=session)  # type: ignore[arg-type]
            if kind == "websocket":
                self._admit(scope)
                if scope["path"] == TERMINALS:
                    serve = await self._sockets.enter_terminals(scope)
                else:
                    serve = await self._sockets.enter(scope, v1=v1) if session else self._server(scope, v1=v1)
        except VoxbridgeError as error:
            await _refuse(kind, error, send)
            return
        if serve is not None:
            await receive()  # websocket.connect
            await send({"type": "websocket.accept", "subprotocol": PROTOCOL_V1 if v1 else None})
            await serve(scope["extensions"][EXTENSION])
        else:
            await self._http(scope, receive, _with_headers(scope, send))

    def _admit(self, scope: Scope) -> None:
        if scope["path"] not in (PATH, SESSION, TERMINALS):
            raise VoxbridgeError(Code.NOT_FOUND, f"There is no socket here; there are {PATH}, {SESSION} and {TERMINALS}.")
        if self._sockets.draining:
            raise VoxbridgeError(Code.UNAVAILABLE, "The gateway is restarting. Connect again.", retry_after_ms=1_000)
        if len(self._sockets.connections) >= SOCKET_LIMIT:
            raise VoxbridgeError(Code.OVERLOADED, f"This gateway holds {SOCKET_LIMIT} sockets, its limit.", limit=SOCKET_LIMIT)

    def _server(self, scope: Scope, *, v1: bool) -> Callable[[Socket], Awaitable[None]]:
        came = arrival(scope["headers"])

        async def serve(socket: Socket) -> None:
            await self._sockets.serve_socket(socket, came, v1=v1)

        return serve


async def _refuse(kind: str, error: VoxbridgeError, send: Send) -> None:
    prefix = "websocket.http.response" if kind == "websocket" else "http.response"
    body = msgspec.json.encode(error.as_dict())
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode()), *_REFUSAL, *_HEADERS]
    if error.retry_after_ms is not None:
        headers.append((b"retry-after", str(max(1, error.retry_after_ms // 1_000)).encode()))
    await send({"type": f"{prefix}.start", "status": HTTP_STATUS[error.code], "headers": headers})
    await send({"type": f"{prefix}.body", "body": body})


def _with_headers(scope: Scope, send: Send) -> Send:
    host = next(value.decode("latin-1") for name, value in scope["headers"] if name == b"host")
    added = [(b"content-security-policy", _POLICY.format(host=host).encode("latin-1")), *_HEADERS]
    if scope["path"].startswith(_READ):
        added.append(_NO_STORE)

    async def sending(message: Message) -> None:
        if message["type"] == "http.response.start":
            message["headers"] = [*message["headers"], *added]
        await send(message)

    return sending
