"""The WebSocket below a VOX connection: uvicorn's protocol, with the frames handed over where they are parsed.

Owns the outbound queue and its limits, and what happens when a client does not read. Does not own what the messages mean. A
connection has no task and no buffer of its own until its client falls behind: what is said is written at once, or queued
until the transport takes more. A crash here loses what was not yet sent, which the log has.

Text arrives as its bytes, so that text that is not UTF-8 gets a typed error and not a closed socket. Audio must not pass
through the ASGI queue, which costs a task switch and two calls of the selector for each frame.
"""

from __future__ import annotations

from collections import deque
from typing import Final, Protocol

from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
from websockets.exceptions import InvalidState
from websockets.http11 import Request
from websockets.protocol import State

from shared.websocket_frames import BINARY, OTHER, TEXT, Cutter, server_frame

EXTENSION: Final = "voxbridge.socket"
"""Where the ASGI scope has the socket."""
QUEUE_MESSAGES: Final = 512
QUEUE_BYTES: Final = 1024 * 1024
GATHER_BYTES: Final = 64 * 1024
"""What is gathered before it is written, whatever more is said."""
CLOSE_WAIT_S: Final = 5.0
"""How long a client may take to read its last messages and the close frame."""
ABNORMAL: Final = 1006
_HANDSHAKE_END: Final = b"\r\n\r\n"


class Sink(Protocol):
    """Who takes what arrives on a socket. Called from the transport: must not block and must not raise."""

    def text(self, payload: bytes) -> None:
        """A text message."""

    def binary(self, payload: bytes) -> None:
        """A binary message."""

    def overflowed(self) -> None:
        """The client reads too slowly: its queue is full and nothing more is taken."""

    def lost(self, code: int) -> None:
        """The socket is gone; `code` is what the client closed with, or 1006."""


class Socket(WebSocketsSansIOProtocol):
    """One socket. Until `attach`, it is uvicorn's own and speaks ASGI."""

    _sink: Sink | None = None
    _queue: deque[tuple[bool, bytes]] | None = None
    _queued = 0
    _gathered: list[bytes] | None = None
    _gathered_bytes = 0
    _cutter: Cutter | None = None

    def attach(self, sink: Sink) -> None:
        """Hand everything that arrives from now on to `sink`."""
        self._sink = sink
        self._read_on()

    def send_text(self, payload: bytes) -> None:
        """Say UTF-8 text."""
        if self._queue is None and self.writable.is_set():
            self._write(True, payload)
        else:
            self._enqueue(True, payload)

    def send_binary(self, payload: bytes) -> None:
        """Say bytes."""
        if self._queue is None and self.writable.is_set():
            self._write(False, payload)
        else:
            self._enqueue(False, payload)

    def gather(self) -> None:
        """Write what is said in this turn of the event loop at once: each write costs both sides more than a message does."""
        if self._gathered is None:
            self._gathered, self._gathered_bytes = [], 0
            self.loop.call_soon(self._write_gathered)

    def finish(self, code: int, reason: str) -> None:
        """Send what is queued and then the close frame; a client that does not read on is cut off after `CLOSE_WAIT_S`."""
        if self.close_sent or self.disconnected or self.transport.is_closing():
            return
        queue, self._queue, self._queued = self._queue, None, 0
        for text, payload in queue or ():
            self._write(text, payload)
        self._write_gathered()
        try:
            self.conn.send_close(code, reason)
        except InvalidState:
            return
        self.transport.write(b"".join(self.conn.data_to_send()))
        self.close_sent = True
        self._read_on()
        self.close_timer = self.loop.call_later(CLOSE_WAIT_S, self.transport.abort)

    @property
    def congested(self) -> bool:
        """Whether the transport takes nothing more for now."""
        return not self.writable.is_set()

    async def drained(self) -> None:
        """Wait until the transport has taken what is queued and takes more, or the socket is gone."""
        while not self.writable.is_set():
            await self.writable.wait()

    def drop_queue(self) -> None:
        """Forget what is queued."""
        self._queue, self._queued = None, 0

    def data_received(self, data: bytes) -> None:
        """Something arrived. Messages that are whole go to the sink at once, everything else through the library."""
        cutter, sink = self._cutter, self._sink
        if cutter is None:
            super().data_received(data)
            # What came with the handshake may be a part of a frame, which the library has then begun to read.
            if EXTENSION in getattr(self, "scope", {}).get("extensions", ()) and data.endswith(_HANDSHAKE_END):
                self._cutter = Cutter(masked=True, limit=self.config.ws_max_size)
            return
        for opcode, payload in cutter.cut(data, simple=sink is not None):
            if opcode == OTHER or sink is None:
                super().data_received(payload)
                if self.conn.state is not State.OPEN:
                    return  # what follows a close frame counts for nothing
            elif self.close_sent:
                continue
            elif opcode == TEXT:
                sink.text(payload)
            else:
                sink.binary(payload)

    def handle_connect(self, event: Request) -> None:
        """Parse the handshake and put this socket into the scope."""
        super().handle_connect(event)
        if not self.close_sent:
            self.scope["extensions"][EXTENSION] = self  # type: ignore[assignment]

    def handle_ping(self) -> None:
        """Answer a ping. A client that asks and asks and reads nothing is cut off."""
        if self.transport.get_write_buffer_size() > QUEUE_BYTES:
            self.transport.abort()
            return
        super().handle_ping()

    def send_receive_event_to_app(self) -> None:
        """A whole message has arrived."""
        sink = self._sink
        if sink is None:
            super().send_receive_event_to_app()
            return
        frames = self.frames
        payload = frames[0] if len(frames) == 1 else b"".join(frames)
        self.frames = []
        if self.close_sent:
            return
        if self.curr_msg_data_type == "text":
            sink.text(payload)
        else:
            sink.binary(payload)

    def resume_writing(self) -> None:
        """The transport takes more: send what is queued until it does not."""
        super().resume_writing()
        queue = self._queue
        if queue is None:
            return
        while queue and self.writable.is_set():
            text, payload = queue.popleft()
            self._queued -= len(payload)
            self._write(text, payload)
        if not queue:
            self._queue = None

    def connection_lost(self, exc: Exception | None) -> None:
        """The transport is gone."""
        super().connection_lost(exc)
        sink, self._sink, self._queue = self._sink, None, None
        if sink is not None:
            received = self.conn.close_rcvd
            sink.lost(received.code if received is not None else ABNORMAL)

    def _write(self, text: bool, payload: bytes) -> None:
        if self.close_sent or self.transport.is_closing():
            return
        if self.conn.state is not State.OPEN:
            return  # the client's close frame has arrived; `lost` follows
        written = server_frame(TEXT if text else BINARY, payload)
        if written is None:
            if text:
                self.conn.send_text(payload)
            else:
                self.conn.send_binary(payload)
            written = b"".join(self.conn.data_to_send())
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

    def _read_on(self) -> None:
        if self.read_paused:
            self.read_paused = False
            self.transport.resume_reading()
