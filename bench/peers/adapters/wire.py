"""What the adapters have in common: the load client's wire, a server for it, and the model that is asked for.

A binary message is a prefix of 16 bytes and PCM16: 16 kHz on the way in, 24 kHz on the way out. The prefix is dropped on the way in;
on the way out it says nothing. Needs the standard library and websockets only, because every peer's environment imports it. A crash
here loses the calls of one measurement.
"""

from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import Awaitable, Callable
from typing import Any, Final

import uvloop
from websockets.asyncio.server import ServerConnection, serve

MODEL: Final = "gemini-3.8-live"
RESUMABLE_MODEL: Final = "gemini-2.5-flash-native-audio-latest"
"""For handoffs: one that takes a new instruction with a handle, which every framework here makes use of that can."""

KEY: Final = "bench"
FIRST: Final = "You are the first agent. You take calls and hand them over."
SECOND: Final = "You are the second agent. You help."
PREFIX_SIZE: Final = 16
INPUT_RATE: Final = 16_000
OUTPUT_RATE: Final = 24_000
_PREFIX: Final = bytes((1, 1)) + bytes(PREFIX_SIZE - 2)
_MESSAGE_LIMIT: Final = 65_536


def framed(pcm: bytes) -> bytes:
    """Audio as the load client takes it."""
    return _PREFIX + pcm


class BareSocket:
    """A `websockets` connection without the prefixes: what a framework that speaks plain PCM is given. Yields the audio that comes,
    and sends the audio it is given; messages of text are the framework's own and stay here."""

    def __init__(self, socket: ServerConnection) -> None:
        self._socket = socket

    def __aiter__(self) -> BareSocket:
        return self

    async def __anext__(self) -> bytes:
        async for message in self._socket:
            if isinstance(message, bytes):
                return message[PREFIX_SIZE:]
        raise StopAsyncIteration

    async def send(self, message: bytes | str) -> None:
        if isinstance(message, bytes):
            await self._socket.send(_PREFIX + message)

    async def close(self, *_: Any) -> None:
        await self._socket.close()


def run(call: Callable[[ServerConnection], Awaitable[None]]) -> None:
    """Serve calls on the port of the command line until SIGTERM; `call` takes one connection and returns when it is over."""
    uvloop.run(_serve(call, int(sys.argv[1])))


async def _serve(call: Callable[[ServerConnection], Awaitable[None]], port: int) -> None:
    over = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, over.set)
    # The same as in front of the other systems: no compression, and no pings beside the load.
    async with serve(call, "127.0.0.1", port, compression=None, ping_interval=None, max_size=_MESSAGE_LIMIT, close_timeout=1):
        await over.wait()
