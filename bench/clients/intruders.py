"""Clients that only occupy resources: `python -m bench.clients.intruders PORT` until its standard input ends.

A thousand connections that send nothing or half a request, opened again when they are closed; twenty sockets that send a frame byte by
byte; and a header of 32 MiB, again and again. They run in a separate process, so that the product's event loop does not serve them. Only
loopback addresses are allowed.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any, Final

import uvloop

HALF_OPEN: Final = 1_000
SLOW: Final = 20
SLOW_S: Final = 0.02
HEADER_BYTES: Final = 32 * 1024 * 1024
AGAIN_S: Final = 5.0
_CHUNK: Final = 64 * 1024
_FRAME: Final = b"\x82\xff" + (256 * 1024).to_bytes(8) + b"mask"


async def intrude(port: int) -> None:
    """Run all clients until cancelled."""
    kinds: list[Callable[[int], Coroutine[Any, Any, None]]] = [*[_slow] * SLOW, _header, *[_silent, _half] * (HALF_OPEN // 2)]
    await asyncio.gather(*(_again(kind, port, number) for number, kind in enumerate(kinds)))


async def _again(kind: Callable[[int], Coroutine[Any, Any, None]], port: int, number: int) -> None:
    await asyncio.sleep(number / 1_000)  # spreads the connection attempts
    while True:
        with suppress(OSError, asyncio.IncompleteReadError):
            await kind(port)
        await asyncio.sleep(AGAIN_S)


async def _silent(port: int) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    await _closed(reader, writer)


async def _half(port: int) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Half: ")
    await _closed(reader, writer)


async def _header(port: int) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        writer.write(b"GET /healthz HTTP/1.1\r\nX-Long: ")
        for _ in range(HEADER_BYTES // _CHUNK):
            writer.write(b"x" * _CHUNK)
            await writer.drain()
        await reader.read()
    finally:
        writer.close()


async def _slow(port: int) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        writer.write(
            f"GET /ws/vox HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n".encode()
        )
        await reader.readuntil(b"\r\n\r\n")
        writer.write(_FRAME)
        while not writer.is_closing():
            writer.write(b"x")
            await writer.drain()
            await asyncio.sleep(SLOW_S)
    finally:
        writer.close()


async def _closed(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        await reader.read()
    finally:
        writer.close()


async def main(port: int) -> None:
    """Run the clients until standard input ends."""
    work = asyncio.create_task(intrude(port))
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.buffer.read)
    work.cancel()
    with suppress(asyncio.CancelledError):
        await work


if __name__ == "__main__":
    uvloop.run(main(int(sys.argv[1])))
