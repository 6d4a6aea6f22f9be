"""A minimal WebSocket client, cheap enough that the measured system is the bottleneck of a load.

Owns the handshake and the framing that the benchmarks need: whole messages, no extensions, pings answered. Messages are not interpreted.
The masking key is zero: the server unmasks all the same, and the client saves a pass over every frame.
"""

from __future__ import annotations

import asyncio
import base64
import os
import struct
from collections.abc import Callable
from typing import Any, Final
from urllib.parse import urlsplit

CONNECT_S: Final = 20.0
_TEXT, _BINARY, _CLOSE, _PING = 1, 2, 8, 9
_LENGTH16: Final = struct.Struct(">BBH4x")
_LENGTH64: Final = struct.Struct(">BBQ4x")


class Socket(asyncio.Protocol):
    """A connection. `on_text` and `on_binary` get whole messages, `on_closed` the close code (1006 without one)."""

    def __init__(self, host: str, path: str, protocol: str) -> None:
        self.on_text: Callable[[bytes], None] = _ignore
        self.on_binary: Callable[[bytes], None] = _ignore
        self.on_closed: Callable[[int], None] = _ignore
        self.opened: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.code = 0
        self._request = _handshake(host, path, protocol)
        self._buffer = b""
        self._transport: Any = None
        self._open = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Send the handshake."""
        self._transport = transport
        self._transport.write(self._request)

    def data_received(self, data: bytes) -> None:
        """Buffer received bytes and deliver whole messages at once."""
        data = self._buffer + data if self._buffer else data
        if not self._open:
            head, found, data = data.partition(b"\r\n\r\n")
            if not found:
                self._buffer = head
                return
            self._buffer = b""
            if not head.startswith(b"HTTP/1.1 101"):
                self._refuse(head)
                return
            self._open = True
            if not self.opened.done():
                self.opened.set_result(None)
        self._buffer = data[self._messages(data) :]

    def connection_lost(self, exc: Exception | None) -> None:
        """Report the closed connection."""
        if not self.opened.done():
            self.opened.set_exception(exc or ConnectionError("the server closed the connection during the handshake"))
        self.code = self.code or 1006
        self.on_closed(self.code)

    def send_text(self, text: bytes) -> None:
        """Send UTF-8 text."""
        self._transport.write(frame(_TEXT, text))

    def send_binary(self, payload: bytes) -> None:
        """Send bytes."""
        self._transport.write(frame(_BINARY, payload))

    def close(self) -> None:
        """Send a close frame and close the transport."""
        if self._transport is not None and not self._transport.is_closing():
            self._transport.write(frame(_CLOSE, struct.pack(">H", 1000)))
            self._transport.close()

    def _messages(self, data: bytes) -> int:
        """Deliver every whole message. Return the number of bytes they took."""
        at, end = 0, len(data)
        while end - at >= 2:
            length, head = data[at + 1], at + 2
            if length == 126:
                head += 2
                if end < head:
                    break
                length = int.from_bytes(data[at + 2 : head], "big")
            elif length == 127:
                head += 8
                if end < head:
                    break
                length = int.from_bytes(data[at + 2 : head], "big")
            if end < head + length:
                break
            self._message(data[at] & 15, data[head : head + length])
            at = head + length
        return at

    def _message(self, kind: int, payload: bytes) -> None:
        if kind == _BINARY:
            self.on_binary(payload)
        elif kind == _TEXT:
            self.on_text(payload)
        elif kind == _PING:
            self._transport.write(frame(10, payload))
        elif kind == _CLOSE:
            self.code = int.from_bytes(payload[:2], "big")
            self.close()

    def _refuse(self, head: bytes) -> None:
        if not self.opened.done():
            self.opened.set_exception(ConnectionError(head.split(b"\r\n", 1)[0].decode(errors="replace")))
        self._transport.close()


async def connect(url: str, protocol: str = "") -> Socket:
    """Open a WebSocket; raises `OSError` when it is refused and `TimeoutError` after `CONNECT_S`."""
    parts = urlsplit(url)
    host, port = parts.hostname or "127.0.0.1", parts.port or 80
    async with asyncio.timeout(CONNECT_S):
        loop = asyncio.get_running_loop()
        _, socket = await loop.create_connection(lambda: Socket(f"{host}:{port}", parts.path, protocol), host, port)
        await socket.opened
    return socket


def frame(kind: int, payload: bytes) -> bytes:
    """Return a whole client frame with a zero mask."""
    size = len(payload)
    if size < 126:
        return bytes((0x80 | kind, 0x80 | size, 0, 0, 0, 0)) + payload
    if size < 65_536:
        return _LENGTH16.pack(0x80 | kind, 0x80 | 126, size) + payload
    return _LENGTH64.pack(0x80 | kind, 0x80 | 127, size) + payload


def _handshake(host: str, path: str, protocol: str) -> bytes:
    key = base64.b64encode(os.urandom(16)).decode()
    lines = [
        f"GET {path} HTTP/1.1",
        f"Host: {host}",
        "Upgrade: websocket",
        "Connection: Upgrade",
        f"Sec-WebSocket-Key: {key}",
        "Sec-WebSocket-Version: 13",
        *([f"Sec-WebSocket-Protocol: {protocol}"] if protocol else []),
    ]
    return ("\r\n".join(lines) + "\r\n\r\n").encode()


def _ignore(_: Any) -> None:
    pass
