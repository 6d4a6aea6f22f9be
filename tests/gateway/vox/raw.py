"""WebSocket frames and sockets in raw bytes, for input that no library sends."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

from tests.gateway.conftest import Address
from voxbridge.shared.websocket import CLOSE, TEXT

_MASK: Final = b"\x01\x02\x03\x04"


def head(opcode: int, size: int, *, bits: int, fin: bool = True) -> bytes:
    """Return the head of a client's frame, whose length is written in 16 or 64 bits."""
    return bytes((fin << 7 | opcode, 0x80 | (126 if bits == 16 else 127))) + size.to_bytes(bits // 8) + _MASK


def frame(opcode: int, payload: bytes, *, fin: bool = True, rsv: int = 0, masked: bool = True) -> bytes:
    """Return a frame, valid or not."""
    size = len(payload)
    length = bytes((size,)) if size < 126 else b"\x7e" + size.to_bytes(2) if size < 65_536 else b"\x7f" + size.to_bytes(8)
    first = bytes((fin << 7 | rsv << 4 | opcode,))
    if not masked:
        return first + length + payload
    key = (_MASK * (size // 4 + 1))[:size]
    hidden = (int.from_bytes(payload) ^ int.from_bytes(key)).to_bytes(size)
    return first + bytes((length[0] | 0x80,)) + length[1:] + _MASK + hidden


def text(payload: bytes) -> bytes:
    """Return a whole text message."""
    return frame(TEXT, payload)


def close(code: int | None, reason: bytes = b"") -> bytes:
    """Return a close frame, with or without a code."""
    return frame(CLOSE, b"" if code is None else code.to_bytes(2) + reason)


async def received(reader: asyncio.StreamReader) -> AsyncIterator[tuple[int, bytes]]:
    """Yield opcode and payload of each frame of the server until it closes the connection."""
    while True:
        try:
            first, size = await reader.readexactly(2)
        except (asyncio.IncompleteReadError, ConnectionResetError):
            return
        if size > 125:
            size = int.from_bytes(await reader.readexactly(2 if size == 126 else 8))
        yield first & 0x0F, await reader.readexactly(size)


@asynccontextmanager
async def upgraded(door: Address) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    """Open a socket and complete its handshake."""
    port = door.port
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        writer.write(
            f"GET /ws/vox HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
            "Sec-WebSocket-Protocol: voxbridge.v1\r\n\r\n".encode()
        )
        assert b" 101 " in await reader.readuntil(b"\r\n\r\n")
        yield reader, writer
    finally:
        writer.close()
