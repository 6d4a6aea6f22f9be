"""HTTP connections before their client is known: limits of size, number and time around uvicorn's parser.

Owns the head of a request, idle and half-open connections, and clients that do not read their answers. Does not own what a request means. A
crash here loses the connections.
"""

from __future__ import annotations

from asyncio import Transport
from typing import Any, Final

import httptools
import msgspec
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol

from voxbridge.services.gateway.door.byte_budget import Budget
from voxbridge.services.gateway.door.connection_limits import Lobby
from voxbridge.services.gateway.door.transport import Socket
from voxbridge.shared.errors import Code, VoxbridgeError

HEAD_BYTES: Final = 32 * 1024
"""Bytes of a request's head."""
LINE_BYTES: Final = 8_000
"""Bytes of a request's target, and of one header."""
HEADERS: Final = 100
PIPELINE: Final = 8
"""Requests that may be sent before the first is answered."""
HEAD_S: Final = 10.0
"""Seconds for the head of a request, from the connection or from its first byte."""
WRITE_S: Final = 10.0
"""Seconds between two checks of a client with unread bytes."""
WRITE_BYTES: Final = 64 * 1024
"""Bytes that such a client must have read since the last check, unless it has read everything."""
LINGER_S: Final = 2.0
"""Seconds that a refused client has to read the reason."""


class Front(HttpToolsProtocol):
    """An HTTP connection. A WebSocket replaces it when the client asks for one."""

    def __init__(self, lobby: Lobby, unread: Budget, **options: Any) -> None:
        super().__init__(**options)
        self._lobby = lobby
        self._unread = unread
        self._counted: tuple[str, ...] | None = None
        self._in_head = False
        self._fed = 0
        self._size = 0
        self._whole = True
        """True when the body of the last request is complete."""
        self._refused: tuple[int, VoxbridgeError] | None = None
        self._lingers = False
        self._head_timer: Any = None
        self._write_timer: Any = None

    def connection_made(self, transport: Transport) -> None:  # type: ignore[override]
        """Count the connection, and wait for a request."""
        super().connection_made(transport)
        try:
            self._counted = (self._lobby.enter(self.client[0] if self.client else ""),)
        except VoxbridgeError as error:
            self._refuse(503, error)
            return
        self._await_head()

    def connection_lost(self, exc: Exception | None) -> None:
        """Release the connection's counts."""
        self._left()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Feed the parser, and bound the head."""
        if self._refused is not None or self._lingers:
            return
        self._unset_keepalive_if_required()
        begins = self._in_head or self._idle
        try:
            self.parser.feed_data(data)
        except httptools.HttpParserUpgrade as upgrade:
            if self._should_upgrade():
                self._hand_over(data[upgrade.args[0] :])
                return
        except httptools.HttpParserError as error:
            status, why = self._refused or (400, VoxbridgeError(Code.INVALID_MESSAGE, f"This is no HTTP request: {error}."))
            self._refuse(status, why)
            return
        if self._in_head:
            # The parser reports a header when it is complete; until then the parser holds its bytes.
            self._fed = self._fed + len(data) if begins else 0
            if self._fed > HEAD_BYTES:
                self._refuse(*_too_large("head", HEAD_BYTES))
                return
        if self._head_timer is None and (self._in_head or self._idle):
            self._await_head()

    def on_message_begin(self) -> None:
        """Begin the head of a request."""
        self._in_head, self._fed, self._size = True, 0, 0
        super().on_message_begin()

    def on_url(self, url: bytes) -> None:
        """Take a part of the target."""
        super().on_url(url)
        self._bound("target", len(url), len(self.url))

    def on_header(self, name: bytes, value: bytes) -> None:
        """Take a complete header."""
        self._bound("header", len(name) + len(value), len(name) + len(value))
        super().on_header(name, value)
        if len(self.headers) > HEADERS:
            self._stop(431, VoxbridgeError(Code.TOO_LARGE, f"A request has at most {HEADERS} headers.", field="headers", limit=HEADERS))

    def on_headers_complete(self) -> None:
        """End the head."""
        self._in_head, self._whole = False, False
        self._forget_head()
        if len(self.pipeline) >= PIPELINE:
            message = f"At most {PIPELINE} requests may wait for an answer."
            self._stop(429, VoxbridgeError(Code.RATE_LIMITED, message, field="requests", limit=PIPELINE))
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        """End the body."""
        self._whole = True
        super().on_message_complete()

    def on_response_complete(self) -> None:
        """Close if the rest of the body will not be read; watch whether the client reads the answer."""
        super().on_response_complete()
        if not self._whole and not self.pipeline:
            self._linger()  # the rest of an unread body would keep the connection open forever
        self._watch()

    def pause_writing(self) -> None:
        """Stop writing to a slow client, and watch whether it reads."""
        super().pause_writing()
        self._watch()

    def timeout_keep_alive_handler(self) -> None:
        """Close an idle connection."""
        self.give_up()

    def shutdown(self) -> None:
        """Close when the server stops, and watch whether the client reads its answer."""
        super().shutdown()
        self._watch()

    def give_up(self) -> None:
        """Close, and discard unread bytes."""
        self._forget_head()
        if self.transport.get_write_buffer_size():
            self.transport.abort()
        else:
            self.transport.close()

    def shed(self) -> None:
        """Abort: all clients together have too many unread bytes, and this one the most."""
        self.transport.abort()

    @property
    def _idle(self) -> bool:
        """Tell whether no answer is in progress."""
        return self.cycle is None or self.cycle.response_complete

    def _hand_over(self, rest: bytes) -> None:
        """Turn the connection into a WebSocket. A client must wait for the answer to its handshake (RFC 6455, section 4.1)."""
        if rest:
            self._refuse(400, VoxbridgeError(Code.INVALID_MESSAGE, "A client sends nothing before its handshake is answered."))
            return
        try:
            behind = self._lobby.behind(self.client[0] if self.client else "", self.headers)
        except VoxbridgeError as error:
            self._refuse(503, error)
            return
        counted, self._counted = (*(self._counted or ()), behind), None
        transport = self.transport
        super().handle_websocket_upgrade()
        socket = transport.get_protocol()
        if isinstance(socket, Socket):
            socket.on_lost = lambda: self._lobby.leave(*counted)

    def _await_head(self) -> None:
        self._lobby.wait(self)
        self._head_timer = self.loop.call_later(HEAD_S, self._late)

    def _forget_head(self) -> None:
        self._lobby.ready(self)
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None

    def _late(self) -> None:
        self._head_timer = None
        if self._in_head:
            message = f"The head of the request did not come within {HEAD_S:g} s."
            self._refuse(408, VoxbridgeError(Code.TIMED_OUT, message, field="head", limit=HEAD_S))
        else:
            self.give_up()

    def _bound(self, what: str, more: int, size: int) -> None:
        self._size += more
        if size > LINE_BYTES:
            self._stop(*_too_large(what, LINE_BYTES))
        if self._size > HEAD_BYTES:
            self._stop(*_too_large("head", HEAD_BYTES))

    def _stop(self, status: int, error: VoxbridgeError) -> None:
        """Stop the parser by raising the error, from within one of its callbacks."""
        self._refused = status, error
        raise error

    def _refuse(self, status: int, error: VoxbridgeError) -> None:
        """Answer with the error, and take nothing more."""
        self._refused = status, error
        self._forget_head()
        if self.transport.is_closing():
            return
        if not self._idle:
            self.give_up()  # an earlier answer is in progress, and nothing may be mixed into it
            return
        body = msgspec.json.encode(error.as_dict())
        head = b"content-type: application/json\r\ncontent-length: %d\r\nconnection: close\r\n\r\n" % len(body)
        self.transport.write(STATUS_LINE[status] + head + body)
        self._linger()

    def _linger(self) -> None:
        """Half-close, and discard input until the client hangs up: a reset would lose the answer on its way."""
        self._lingers = True
        self._unset_keepalive_if_required()
        if not self.transport.is_closing():
            self.loop.call_later(LINGER_S, self.transport.abort)
            if self.transport.can_write_eof():
                self.transport.write_eof()

    def _left(self) -> None:
        self._forget_head()
        self._unread.hold(self, 0)
        if self._write_timer is not None:
            self._write_timer.cancel()
            self._write_timer = None
        if self._counted is not None:
            self._lobby.leave(*self._counted)
            self._counted = None

    def _watch(self) -> None:
        """Check every `WRITE_S` whether the client reads, until it has read everything."""
        waits = self.transport.get_write_buffer_size()
        self._unread.hold(self, waits)
        if waits and self._write_timer is None:
            self._write_timer = self.loop.call_later(WRITE_S, self._look, waits)

    def _look(self, before: int) -> None:
        self._write_timer = None
        waits = self.transport.get_write_buffer_size()
        if waits and before - waits < WRITE_BYTES:
            self.transport.abort()
        else:
            self._watch()


def _too_large(what: str, limit: int) -> tuple[int, VoxbridgeError]:
    message = f"The {what} of a request has at most {limit} bytes."
    return 414 if what == "target" else 431, VoxbridgeError(Code.TOO_LARGE, message, field=what, limit=limit)
