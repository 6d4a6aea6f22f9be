"""What no library sends: a client that asks for pongs and reads none, and one that goes on after its close frame."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Final

from services.gateway.socket import QUEUE_BYTES
from shared.websocket_frames import TEXT, client_frame
from tests.gateway.conftest import Running

_MASK: Final = b"\0\0\0\0"
_PING: Final = b"\x89\xfd" + _MASK + bytes(125)
_CLOSE: Final = b"\x88\x82" + _MASK + (1000).to_bytes(2, "big")
_MANY: Final = 64


def text(payload: bytes) -> bytes:
    """A whole text message."""
    frame = client_frame(TEXT, payload, _MASK)
    assert frame is not None
    return frame


@asynccontextmanager
async def upgraded(running: Running) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    """A socket behind its handshake."""
    port = running.port
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


async def test_a_client_that_asks_for_pongs_and_reads_none_is_cut_off(running: Running) -> None:
    async with upgraded(running) as (_, writer), asyncio.timeout(30):
        with suppress(ConnectionError):
            for _ in range(_MANY):  # far more than all buffers between hold
                writer.write(_PING * (QUEUE_BYTES // len(_PING)))
                await writer.drain()
            raise AssertionError("it was served on")


async def test_what_follows_a_close_frame_is_not_taken(running: Running) -> None:
    async with upgraded(running) as (reader, writer):
        writer.write(_CLOSE + text(b'{"type":"start","mode":"echo"}'))
        assert (await asyncio.wait_for(reader.read(), 10))[:1] == b"\x88"
    assert (await running.get("/api/sessions")).json()["sessions"] == []
