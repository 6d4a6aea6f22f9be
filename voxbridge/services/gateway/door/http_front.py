"""HTTP connections before anything is known of their client: bounds of bytes, of numbers and of time around uvicorn's parser.

Owns the head of a request, idle and half-open connections, and clients that do not read their answers. Does not own what a request
means. A crash here loses the connections.
"""

from __future__ import annotations

from asyncio import Transport
from typing import Any, Final

import httptools
import msgspec
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol

from voxbridge.services.gateway.door.byte_budget import Budget
from voxbridge.services.gateway.door.connection_limits import Lobby
from voxbridge.services.gateway.vox.transport import Socket
from voxbridge.shared.errors import Code, VoxbridgeError

HEAD_BYTES: Final = 32 * 1024
"""Bytes of the head of a request."""
LINE_BYTES: Final = 8_000
"""Bytes of its target, and of one header."""
HEADERS: Final = 100
PIPELINE: Final = 8
"""Requests that may be sent ahead of the answer to the first."""
HEAD_S: Final = 10.0
"""How long the head of a request may take to come, from the connection or from its first byte."""
WRITE_S: Final = 10.0
"""How often a client is looked at that does not read."""
WRITE_BYTES: Final = 64 * 1024
"""What it has to take meanwhile, or all there is."""
LINGER_S: Final = 2.0
"""How long a refused client may take to read why."""


class Front(HttpToolsProtocol):
    """One HTTP connection; a WebSocket takes its place once it is asked for."""

    def __init__(self, lobby: Lobby, unread: Budget, **options: Any) -> None:
        super().__init__(**options)
        self._lobby = lobby
        self._unread = unread
        self._counted: tuple[str, ...] | None = None
        self._in_head = False
        self._fed = 0
        self._size = 0
        self._whole = True
        """Whether the body of the last request has come."""
        self._refused: tuple[int, VoxbridgeError] | None = None
        self._lingers = False
        self._head_timer: Any = None
        self._write_timer: Any = None

    def connection_made(self, transport: Transport) -> None:  # type: ignore[override]
        """The TCP connection is there."""
        super().connection_made(transport)
        try:
            self._counted = (self._lobby.enter(self.client[0] if self.client else ""),)
        except VoxbridgeError as error:
            self._refuse(503, error)
            return
        self._await_head()

    def connection_lost(self, exc: Exception | None) -> None:
        """The TCP connection is gone."""
        self._left()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Something arrived."""
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
            # A header is told when it is whole; until then its bytes are in the parser.
            self._fed = self._fed + len(data) if begins else 0
            if self._fed > HEAD_BYTES:
                self._refuse(*_too_large("head", HEAD_BYTES))
                return
        if self._head_timer is None and (self._in_head or self._idle):
            self._await_head()

    def on_message_begin(self) -> None:
        """The first byte of a request."""
        self._in_head, self._fed, self._size = True, 0, 0
        super().on_message_begin()

    def on_url(self, url: bytes) -> None:
        """A part of the target."""
        super().on_url(url)
        self._bound("target", len(url), len(self.url))

    def on_header(self, name: bytes, value: bytes) -> None:
        """A whole header."""
        self._bound("header", len(name) + len(value), len(name) + len(value))
        super().on_header(name, value)
        if len(self.headers) > HEADERS:
            self._stop(431, VoxbridgeError(Code.TOO_LARGE, f"A request has at most {HEADERS} headers.", field="headers", limit=HEADERS))

    def on_headers_complete(self) -> None:
        """The head is whole."""
        self._in_head, self._whole = False, False
        self._forget_head()
        if len(self.pipeline) >= PIPELINE:
            message = f"At most {PIPELINE} requests may wait for an answer."
            self._stop(429, VoxbridgeError(Code.RATE_LIMITED, message, field="requests", limit=PIPELINE))
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        """The body is whole."""
        self._whole = True
        super().on_message_complete()

    def on_response_complete(self) -> None:
        """An answer was written."""
        super().on_response_complete()
        if not self._whole and not self.pipeline:
            self._linger()  # the rest of a body that nobody reads would keep the connection for ever
        self._watch()

    def pause_writing(self) -> None:
        """The client reads slower than it is told."""
        super().pause_writing()
        self._watch()

    def timeout_keep_alive_handler(self) -> None:
        """Nothing more was asked."""
        self.give_up()

    def shutdown(self) -> None:
        """The server stops."""
        super().shutdown()
        self._watch()

    def give_up(self) -> None:
        """Close; nobody waits for what is not read."""
        self._forget_head()
        if self.transport.get_write_buffer_size():
            self.transport.abort()
        else:
            self.transport.close()

    def shed(self) -> None:
        """Cut off: what clients have not read is too much in all, and this one has most of it."""
        self.transport.abort()

    @property
    def _idle(self) -> bool:
        """Whether nothing is being answered."""
        return self.cycle is None or self.cycle.response_complete

    def _hand_over(self, rest: bytes) -> None:
        """Make a WebSocket of it; a client waits for the answer to its handshake (RFC 6455, section 4.1)."""
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
        """Within a call of the parser: it stops at what is raised here."""
        self._refused = status, error
        raise error

    def _refuse(self, status: int, error: VoxbridgeError) -> None:
        """Say why, and take nothing more."""
        self._refused = status, error
        self._forget_head()
        if self.transport.is_closing():
            return
        if not self._idle:
            self.give_up()  # an answer to an earlier request is on its way: nothing may be mixed into it
            return
        body = msgspec.json.encode(error.as_dict())
        head = b"content-type: application/json\r\ncontent-length: %d\r\nconnection: close\r\n\r\n" % len(body)
        self.transport.write(STATUS_LINE[status] + head + body)
        self._linger()

    def _linger(self) -> None:
        """Say nothing more, and take what comes without reading it until the client hangs up: a reset would take our words from it."""
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
        """Look now and again whether the client takes what it was told, until it has."""
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
