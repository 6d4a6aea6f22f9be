"""The WebSocket to a provider, below its SDK: audio is written in the call that brings it, and messages are handed over where they
are parsed.

The SDKs open the connection and send what is rare; they write and read through tasks, queues and locks that cost more than a frame of
audio does. Owns the bound of what may wait to be written. Knows no provider. A crash loses the connection.
"""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from typing import Any, Final
from urllib.request import getproxies

from websockets.asyncio.client import ClientConnection
from websockets.exceptions import ConnectionClosed
from websockets.frames import Frame, Opcode
from websockets.protocol import Event, State

from voxbridge.shared.websocket import OTHER, TEXT, Cutter, Masks, client_frame

BEHIND_LIMIT: Final = 1024 * 1024
"""Bytes that may wait to be written: the ten seconds of kept audio that a new connection hears at once, at 24 kHz in base64, and half as
much again. A provider that takes nothing of them is gone."""

UNHEARD_MS: Final = 8_000
"""For so long sent bytes may go without the kernel of the other side having taken them: then the network is cut. Audio is sent all the
time, so a cut is found so soon."""

PONG_S: Final = 60.0
"""How late a pong may be: providers that are busy were reported to take half a minute, in calls that went on all the while."""

FRAME_LIMIT: Final = 1024 * 1024
_HANDSHAKE_END: Final = b"\r\n\r\n"
_DATA: Final = (Opcode.TEXT, Opcode.BINARY, Opcode.CONT)


def proxied() -> bool | None:
    """What the library is to be told of proxies: to look for one at each connection, which takes half a millisecond, or none."""
    return True if getproxies() else None


_until: ContextVar[Callable[[], Awaitable[None]] | None] = ContextVar("until", default=None)


@contextmanager
def silent_until(until: Callable[[], Awaitable[None]] | None) -> Iterator[None]:
    """Have a socket that is opened in the block connect at once, and wait for `until` before it says its first word."""
    before = _until.set(until)
    try:
        yield
    finally:
        _until.reset(before)


class Behind(ConnectionError):
    """The provider takes nothing: `BEHIND_LIMIT` wait. The socket was cut off."""


class ProviderSocket(ClientConnection):
    """One socket. Until `listen`, it is the library's own."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._until = _until.get()
        self._sink: Callable[[bytes], None] | None = None
        self._cutter: Cutter | None = None
        self._masks = Masks()
        self._parts: list[bytes] = []
        self._failed: asyncio.Future[None] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """The TCP connection is there."""
        super().connection_made(transport)
        bound = transport.get_extra_info("socket")
        # The loop's own object of it takes no options; a proxy may have put something else there.
        with suppress(OSError), socket.socket(fileno=os.dup(bound.fileno())) as same:
            same.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, UNHEARD_MS)

    async def send(self, *args: Any, **kwargs: Any) -> None:
        """Send a message, as the library does."""
        until, self._until = self._until, None
        if until is not None:
            await until()
        await super().send(*args, **kwargs)

    def send_now(self, text: bytes) -> None:
        """Write a text message in this call. Raises `ConnectionClosed` when the socket is closed, and `Behind`."""
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
        """Hand every message to `sink`, until cancelled or the socket is closed, which raises `ConnectionClosed`. What `sink` raises is
        raised here."""
        self._failed = asyncio.get_running_loop().create_future()
        while len(self.recv_messages.frames):  # what came before
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
        """Something arrived."""
        cutter = self._cutter
        if cutter is None:
            begun = self.response is not None
            super().data_received(data)
            # What came with the handshake may be a part of a frame, which the library has then begun to read.
            if not begun and self.response is not None and data.find(_HANDSHAKE_END) == len(data) - len(_HANDSHAKE_END):
                self._cutter = Cutter(limit=self.protocol.max_message_size or FRAME_LIMIT)
            return
        for opcode, payload in cutter.cut(data, simple=self._sink is not None):
            if opcode == OTHER:
                super().data_received(payload)
                if self.protocol.state is not State.OPEN:
                    return  # what follows a close frame counts for nothing
            else:
                self._hand_over(payload)

    def process_event(self, event: Event) -> None:
        """One frame has arrived."""
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
        except Exception as error:  # noqa: BLE001 - raised where it is waited for
            self._sink = _ignore
            if self._failed is not None and not self._failed.done():
                self._failed.set_exception(error)


def _ignore(_: bytes) -> None:
    """After a sink that failed nothing is read any more."""
