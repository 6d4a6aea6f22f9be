"""The WebSocket below a VOX connection: uvicorn's protocol until the handshake is done, and our own frames from then on.

Owns the outbound queue and its limits, the rules of closing (RFC 6455, section 7), and the handling of a client that does not read. Does
not own what the messages mean. A connection has no task and no buffer of its own until its client falls behind: a message is written at
once, or queued until the transport takes more. A crash here loses what was not yet sent, which the log has.

Audio must not pass through the ASGI queue, which costs a task switch and two calls of the selector for each frame.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Final, Protocol

from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
from websockets.exceptions import ProtocolError
from websockets.frames import Close
from websockets.http11 import Request

from voxbridge.services.gateway.door.byte_budget import Budget
from voxbridge.shared.websocket import BINARY, CLOSE, NOT_UTF8, PING, PONG, PROTOCOL_ERROR, TEXT, Receiver, server_frame

EXTENSION: Final = "voxbridge.socket"
"""Key of the socket in the extensions of the ASGI scope."""
QUEUE_MESSAGES: Final = 512
QUEUE_BYTES: Final = 1024 * 1024
GATHER_BYTES: Final = 64 * 1024
"""Bytes after which gathered messages are written."""
CLOSE_WAIT_S: Final = 5.0
"""Seconds that a client has to read its last messages and the close frame, and to answer it."""
FIRST_LIMIT: Final = 256 * 1024
"""Bytes of a message until the socket has a session: a `start` with the longest prompt, every character of it escaped."""
MESSAGE_LIMIT: Final = 4 * 1024 * 1024
"""Bytes of a message from then on. It is above the limit of the protocol, so that a larger message gets a typed error."""
COUNTED: Final = 4_096
"""Bytes of unfinished messages that a socket may hold uncounted. Above it, the count is updated in steps of this size."""
ABNORMAL: Final = 1006
CROWDED: Final = 1013
_NO_HANDSHAKE: Final = b"HTTP/1.1 400 Bad Request\r\nconnection: close\r\ncontent-length: 0\r\n\r\n"
_LOST_PONG: Final = 1011
_RESTARTING: Final = 1012
_REASON_BYTES: Final = 123


class Sink(Protocol):
    """The receiver of a socket's messages. Called from the transport: must not block and must not raise."""

    def text(self, payload: bytes) -> None:
        """Take a text message, in UTF-8."""

    def binary(self, payload: bytes) -> None:
        """Take a binary message."""

    def overflowed(self) -> None:
        """Handle a full queue: the client reads too slowly, and no message is taken any more."""

    def lost(self, code: int) -> None:
        """Handle the loss of the socket. `code` is the client's close code: 1005 where it gave none, 1006 where it did not close."""


class Outlet(Protocol):
    """The side of a socket that a connection writes to."""

    @property
    def congested(self) -> bool:
        """True while it takes no more bytes."""

    def attach(self, sink: Sink, budget: Budget) -> None:
        """Hand everything that arrives from now on to `sink`."""

    def widen(self) -> None:
        """Take messages of full length from now on."""

    def send_text(self, payload: bytes) -> None:
        """Send UTF-8 text."""

    def send_binary(self, payload: bytes) -> None:
        """Send bytes."""

    def gather(self) -> None:
        """Write what this event-loop iteration sends together."""

    def drop_queue(self) -> None:
        """Discard what was not sent."""

    def finish(self, code: int, reason: str) -> None:
        """Send the rest, and close."""

    async def drained(self) -> None:
        """Wait until it takes more, or is gone."""


class Socket(WebSocketsSansIOProtocol):
    """A socket. Until `attach`, it behaves as uvicorn's protocol and speaks ASGI."""

    _sink: Sink | None = None
    _queue: deque[tuple[bool, bytes]] | None = None
    _queued = 0
    _gathered: list[bytes] | None = None
    _gathered_bytes = 0
    _receiver: Receiver | None = None
    """None before `attach`, and once input is ignored: the client has closed, or broke the protocol."""
    _budget: Budget | None = None
    _counted = 0
    _closed_with = ABNORMAL
    on_lost: Callable[[], None] | None = None
    """Called when the transport is gone."""
    _asked = False
    """True when the handshake has arrived."""

    def attach(self, sink: Sink, budget: Budget) -> None:
        """Hand everything that arrives from now on to `sink`. Bytes of incomplete messages count in `budget`."""
        self._sink, self._budget = sink, budget
        self._receiver = Receiver(limit=FIRST_LIMIT)

    def widen(self) -> None:
        """Take messages up to `MESSAGE_LIMIT` from now on."""
        if self._receiver is not None:
            self._receiver.limit = MESSAGE_LIMIT

    def send_text(self, payload: bytes) -> None:
        """Send UTF-8 text."""
        if self._queue is None and self.writable.is_set():
            self._write(TEXT, payload)
        else:
            self._enqueue(True, payload)

    def send_binary(self, payload: bytes) -> None:
        """Send bytes."""
        if self._queue is None and self.writable.is_set():
            self._write(BINARY, payload)
        else:
            self._enqueue(False, payload)

    def gather(self) -> None:
        """Write all messages of this event-loop iteration together: each write costs both sides more than a message does."""
        if self._gathered is None:
            self._gathered, self._gathered_bytes = [], 0
            self.loop.call_soon(self._write_gathered)

    def finish(self, code: int, reason: str) -> None:
        """Send the queue and then the close frame. A client that does not read, or does not answer, is aborted after `CLOSE_WAIT_S`."""
        if self.close_sent or self.disconnected or self.transport.is_closing():
            return
        queue, self._queue, self._queued = self._queue, None, 0
        for text, payload in queue or ():
            self._write(TEXT if text else BINARY, payload)
        self._close(code, reason)

    def shed(self) -> None:
        """Close: the buffers that all sockets share are full, and this socket holds the most."""
        self._fail(CROWDED, "the gateway's buffers are full")

    @property
    def congested(self) -> bool:
        """True while the transport takes no more bytes."""
        return not self.writable.is_set()

    async def drained(self) -> None:
        """Wait until the transport has taken the queue and takes more, or the socket is gone."""
        while not self.writable.is_set():
            await self.writable.wait()

    def drop_queue(self) -> None:
        """Discard the queue."""
        self._queue, self._queued = None, 0

    def data_received(self, data: bytes) -> None:
        """Parse received bytes. Complete messages go to the sink at once."""
        receiver, sink = self._receiver, self._sink
        if sink is None:
            self._before(data)
            return
        if receiver is None:
            return
        for opcode, payload in receiver.receive(data):
            if opcode == BINARY:
                if not self.close_sent:
                    sink.binary(payload)
            elif opcode == TEXT:
                if not self.close_sent:
                    sink.text(payload)
            elif opcode == PING:
                self._answer(payload)
            elif opcode == PONG:
                self._heard(payload)
            else:
                self._closed(payload)
            if self._receiver is None:
                return
        if receiver.fault is not None:
            self._fail(*receiver.fault)
        held = receiver.held
        if held - self._counted >= COUNTED or held < self._counted:
            self._count(held)

    def handle_connect(self, event: Request) -> None:
        """Parse the handshake and put this socket into the scope."""
        super().handle_connect(event)
        if not self.close_sent:
            self.scope["extensions"][EXTENSION] = self  # type: ignore[assignment]

    def shutdown(self) -> None:
        """Close without waiting for clients, because the server stops."""
        self.stop_keepalive()
        if self._sink is not None and not self.close_sent:
            self._close(_RESTARTING, "")
        elif not self.handshake_complete:
            self.send_500_response()
        self._hang_up()

    def keepalive_timeout(self) -> None:
        """Close, because a ping was not answered."""
        self.pong_timer = None
        if not self.close_sent and not self.transport.is_closing():
            self._fail(_LOST_PONG, "keepalive ping timeout")

    def eof_received(self) -> None:
        """Close within `CLOSE_WAIT_S`: the client sends nothing more, but may still read."""
        self._cut_off_later()

    def resume_writing(self) -> None:
        """Send the queue until the transport takes no more."""
        super().resume_writing()
        queue = self._queue
        if queue is None:
            return
        while queue and self.writable.is_set():
            text, payload = queue.popleft()
            self._queued -= len(payload)
            self._write(TEXT if text else BINARY, payload)
        if not queue:
            self._queue = None

    def connection_lost(self, exc: Exception | None) -> None:
        """Release the socket's bytes and tell the sink."""
        super().connection_lost(exc)
        self._count(0)
        if self.on_lost is not None:
            self.on_lost()
        sink, self._sink, self._queue = self._sink, None, None
        if sink is not None:
            sink.lost(self._closed_with)

    def _before(self, data: bytes) -> None:
        """Take the handshake, which comes whole. The client must send nothing more before it is answered."""
        if self._asked:
            self.transport.abort()
            return
        self._asked = True
        super().data_received(data)
        if not self.handshake_initiated:  # the library rejected a handshake that the HTTP parser accepted
            self.handshake_complete = self.close_sent = True
            self.transport.write(_NO_HANDSHAKE)
            self._hang_up()

    def _answer(self, payload: bytes) -> None:
        """Answer a ping. A client that pings and does not read is aborted."""
        if self.transport.get_write_buffer_size() > QUEUE_BYTES:
            self._receiver = None
            self.transport.abort()
        elif not self.transport.is_closing():
            self._write_gathered()
            self.transport.write(server_frame(PONG, payload))

    def _heard(self, payload: bytes) -> None:
        """Take a pong. If it answers the ping in flight, it keeps the connection alive; any other is ignored."""
        if payload != self.pending_ping_payload:
            return
        self.last_ping_rtt = self.loop.time() - self.ping_sent_at
        self.pending_ping_payload = None
        if self.pong_timer is not None:
            self.pong_timer.cancel()
            self.pong_timer = None
            self.schedule_ping()

    def _closed(self, payload: bytes) -> None:
        """Take the client's close frame. It is echoed, unless it answers ours or is invalid."""
        try:
            code = Close.parse(payload).code
        except ProtocolError as error:
            self._fail(PROTOCOL_ERROR, str(error))
            return
        except UnicodeDecodeError:
            self._fail(NOT_UTF8, "text is UTF-8")
            return
        self._closed_with = int(code)
        self._receiver = None
        if not self.close_sent and not self.transport.is_closing():
            self._write_gathered()
            self.transport.write(server_frame(CLOSE, payload))
            self.close_sent = True
        self._hang_up()

    def _close(self, code: int, reason: str) -> None:
        """Send our close frame; the client has `CLOSE_WAIT_S` to answer."""
        self._write_gathered()
        self.stop_keepalive()
        said = reason.encode()[:_REASON_BYTES].decode(errors="ignore").encode()
        self.transport.write(server_frame(CLOSE, code.to_bytes(2) + said))
        self.close_sent = True
        self._cut_off_later()

    def _fail(self, code: int, reason: str) -> None:
        """Close with a reason, and ignore further input: the client's frame boundaries may be wrong. Its bytes are taken until it hangs up,
        because a reset would discard our close frame."""
        self._receiver = None
        self._count(0)
        if self.close_sent or self.disconnected or self.transport.is_closing():
            self._hang_up()
            return
        self.drop_queue()
        self._close(code, reason)
        if self.transport.can_write_eof():
            self.transport.write_eof()

    def _hang_up(self) -> None:
        self._cut_off_later()
        self.transport.close()

    def _cut_off_later(self) -> None:
        """Abort after `CLOSE_WAIT_S`: closing would otherwise wait forever for a client that does not read."""
        if self.close_timer is None:
            self.close_timer = self.loop.call_later(CLOSE_WAIT_S, self.transport.abort)

    def _count(self, held: int) -> None:
        if self._budget is not None and held != self._counted:
            self._counted = held if held >= COUNTED else 0
            self._budget.hold(self, self._counted)

    def _write(self, opcode: int, payload: bytes) -> None:
        if self.close_sent or self.transport.is_closing():
            return
        written = server_frame(opcode, payload)
        if self._gathered is None:
            self.transport.write(written)
            return
        self._gathered.append(written)
        self._gathered_bytes += len(written)
        if self._gathered_bytes >= GATHER_BYTES:
            self._write_gathered()

    def _write_gathered(self) -> None:
        gathered, self._gathered = self._gathered, None
        if gathered and not self.transport.is_closing():
            self.transport.write(b"".join(gathered))

    def _enqueue(self, text: bool, payload: bytes) -> None:
        if self.close_sent or self.disconnected:
            return
        if self._queue is None:
            self._queue = deque()
        if len(self._queue) >= QUEUE_MESSAGES or self._queued + len(payload) > QUEUE_BYTES:
            if self._sink is not None:
                self._sink.overflowed()
            return
        self._queue.append((text, payload))
        self._queued += len(payload)
