"""The WebSocket to a provider, below its SDK: audio is written in the call that brings it, and messages are handed over where they
are parsed.

The SDKs open the connection and send rare events. They write and read through tasks, queues and locks that cost more than a frame of
audio itself. Owns the limit of bytes that may wait to be written. Knows no provider. A crash loses the connection.
"""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from typing import Any, Final, Literal
from urllib.request import getproxies

from websockets.asyncio.client import ClientConnection
from websockets.exceptions import ConnectionClosed
from websockets.frames import Frame, Opcode
from websockets.protocol import Event, State

from voxbridge.shared.websocket import OTHER, TEXT, Cutter, Masks, client_frame

BEHIND_LIMIT: Final = 1024 * 1024
"""Bytes that may wait to be written: the ten seconds of kept audio that a new connection hears at once, at 24 kHz in base64, and half as
much again. A provider that accepts none of them is gone."""

UNHEARD_MS: Final = 8_000
"""Milliseconds that sent bytes may stay unacknowledged by the other side's kernel; after that the network counts as cut. Audio is sent all
the time, so a cut is found within this time."""

PONG_S: Final = 60.0
"""Seconds that a pong may take: busy providers were reported to take half a minute, in calls that went on meanwhile."""

FRAME_LIMIT: Final = 1024 * 1024
_HANDSHAKE_END: Final = b"\r\n\r\n"
_DATA: Final = (Opcode.TEXT, Opcode.BINARY, Opcode.CONT)


def proxied() -> Literal[True] | None:
    """Return the library's proxy setting: True to look for a proxy at each connection, which takes half a millisecond; None for none."""
    return True if getproxies() else None


_until: ContextVar[Callable[[], Awaitable[None]] | None] = ContextVar("until", default=None)


@contextmanager
def silent_until(until: Callable[[], Awaitable[None]] | None) -> Iterator[None]:
    """Have a socket that is opened in the block connect at once, and wait for `until` before it sends its first message."""
    before = _until.set(until)
    try:
        yield
    finally:
        _until.reset(before)


class Behind(ConnectionError):
    """Error of a provider that accepts nothing: `BEHIND_LIMIT` bytes wait, and the socket was aborted."""


class ProviderSocket(ClientConnection):
    """WebSocket to a provider. Until `listen`, the library reads its messages."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._until = _until.get()
        self._sink: Callable[[bytes], None] | None = None
        self._cutter: Cutter | None = None
        self._masks = Masks()
        self._parts: list[bytes] = []
        self._failed: asyncio.Future[None] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Set the timeout for unacknowledged bytes on the new TCP connection."""
        super().connection_made(transport)
        bound = transport.get_extra_info("socket")
        # The loop's own socket object takes no options, so they are set on a duplicate; with a proxy it may not be a plain socket.
        with suppress(OSError), socket.socket(fileno=os.dup(bound.fileno())) as same:
            same.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, UNHEARD_MS)

    async def send(self, *args: Any, **kwargs: Any) -> None:
        """Send a message, as the library does; the first one waits as `silent_until` says."""
        until, self._until = self._until, None
        if until is not None:
            await until()
        await super().send(*args, **kwargs)

    def send_now(self, text: bytes) -> None:
        """Write a text message within this call. Raises `ConnectionClosed` when the socket is closed, and `Behind`."""
        protocol = self.protocol
        if protocol.state is not State.OPEN:
            raise ConnectionClosed(protocol.close_rcvd, protocol.close_sent, protocol.close_rcvd_then_sent)
        if self.transport.get_write_buffer_size() > BEHIND_LIMIT:
            self.transport.abort()
            raise Behind(f"The provider took nothing of {BEHIND_LIMIT} bytes.")
        frame = client_frame(TEXT, text, self._masks.take())
        if frame is None or protocol.extensions:
            protocol.send_text(text)
            self.send_data()
        else:
            self.transport.write(frame)

    async def listen(self, sink: Callable[[bytes], None]) -> None:
        """Pass every message to `sink` until cancelled. Raises `ConnectionClosed` when the socket is closed, and any error that `sink`
        raises."""
        self._failed = asyncio.get_running_loop().create_future()
        while len(self.recv_messages.frames):  # messages that arrived before
            sink(await self.recv(decode=False))
        self._sink = sink
        try:
            await asyncio.wait((self.connection_lost_waiter, self._failed), return_when=asyncio.FIRST_COMPLETED)
        finally:
            self._sink = None
        if self._failed.done():
            self._failed.result()
        raise self.protocol.close_exc

    def data_received(self, data: bytes) -> None:
        """Parse received bytes: by the library during the handshake, then by the cutter."""
        cutter = self._cutter
        if cutter is None:
            begun = self.response is not None
            super().data_received(data)
            # Bytes behind the handshake may be part of a frame, which the library has then begun to read; it then reads all the rest.
            if not begun and self.response is not None and data.find(_HANDSHAKE_END) == len(data) - len(_HANDSHAKE_END):
                self._cutter = Cutter(limit=self.protocol.max_message_size or FRAME_LIMIT)
            return
        for opcode, payload in cutter.cut(data, simple=self._sink is not None):
            if opcode == OTHER:
                super().data_received(payload)
                if self.protocol.state is not State.OPEN:
                    return  # bytes behind a close frame are ignored
            else:
                self._hand_over(payload)

    def process_event(self, event: Event) -> None:
        """Take a frame that the library parsed; pass data to the sink."""
        sink = self._sink
        if sink is None or not isinstance(event, Frame) or event.opcode not in _DATA:
            super().process_event(event)
            return
        message = event.data
        if not event.fin:
            self._parts.append(bytes(message))
            return
        if self._parts:
            message = b"".join((*self._parts, message))
            self._parts = []
        self._hand_over(bytes(message))

    def _hand_over(self, message: bytes) -> None:
        sink = self._sink
        try:
            if sink is not None:
                sink(message)
        except Exception as error:  # noqa: BLE001 - `listen` raises it
            self._sink = _ignore
            if self._failed is not None and not self._failed.done():
                self._failed.set_exception(error)


def _ignore(_: bytes) -> None:
    """Ignore messages after the sink failed."""
