"""The guard of the API: it admits requests of programs, for a known host name and with a body of bounded size.

A page in a browser sends its origin, and requests with one are refused: the API has no key, and pages talk to the gateway. The host name is
checked so that a page cannot reach the API under a host name of its own.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from voxbridge.services.models.api import errors
from voxbridge.services.models.engines.audio import MAX_BYTES
from voxbridge.shared.errors import Code, VoxbridgeError

LOOPBACK: Final = ("127.0.0.1", "localhost", "[::1]")
MAX_BODY: Final = MAX_BYTES + (1 << 20)


class HostGuard:
    """ASGI middleware that checks Host, Origin and the size of the body."""

    def __init__(self, app: ASGIApp, hosts: Iterable[str] = ()) -> None:
        self._app, self._hosts = app, frozenset(host.lower() for host in (*LOOPBACK, *hosts))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or refuse it."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        refused = self._refused(headers)
        if refused is not None:
            await errors.answer(refused)(scope, receive, send)
            return
        read = 0

        async def bounded() -> Message:
            nonlocal read
            message = await receive()
            read += len(message.get("body", b""))
            if read > MAX_BODY:
                raise _too_large()
            return message

        await self._app(scope, bounded, send)

    def _refused(self, headers: Headers) -> VoxbridgeError | None:
        host = headers.get("host", "").lower()
        name = host if host.endswith("]") else host.rsplit(":", 1)[0]
        if name not in self._hosts:
            return VoxbridgeError(Code.FORBIDDEN_ORIGIN, f"The host name {name!r} is not one of this service's.", field="Host")
        if "origin" in headers:
            return VoxbridgeError(
                Code.FORBIDDEN_ORIGIN, "Pages in a browser do not talk to the models; they talk to the gateway.", field="Origin"
            )
        length = headers.get("content-length", "0")
        return _too_large() if length.isdigit() and int(length) > MAX_BODY else None


def _too_large() -> VoxbridgeError:
    return VoxbridgeError(Code.TOO_LARGE, f"A request has at most {MAX_BODY:,} bytes.", field="body", limit=MAX_BODY)
