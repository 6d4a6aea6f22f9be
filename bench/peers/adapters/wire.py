"""Common parts of the adapters: the load client's protocol, a server for it, and the name of the model.

A binary message is a prefix of 16 bytes and PCM16: 16 kHz from the caller, 24 kHz to the caller. The prefix is ignored on input and has
fixed content on output. Needs the standard library and websockets only, because every peer's environment imports it. A crash here loses the
calls of one measurement.
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
"""Model for handoffs: it accepts a new instruction with a resumption handle, which every framework here that can uses."""

KEY: Final = "bench"
FIRST: Final = "You are the first agent. You take calls and hand them over."
SECOND: Final = "You are the second agent. You help."
PREFIX_SIZE: Final = 16
INPUT_RATE: Final = 16_000
OUTPUT_RATE: Final = 24_000
_PREFIX: Final = bytes((1, 1)) + bytes(PREFIX_SIZE - 2)
_MESSAGE_LIMIT: Final = 65_536


def framed(pcm: bytes) -> bytes:
    """Return audio in the load client's format."""
    return _PREFIX + pcm


class BareSocket:
    """A `websockets` connection without the prefixes, for a framework that speaks plain PCM.

    Yields the audio that arrives, and sends the audio that it is given; text messages of the framework are dropped."""

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
        """Send audio with the prefix of a frame; text is left out."""
        if isinstance(message, bytes):
            await self._socket.send(_PREFIX + message)

    async def close(self, *_: Any) -> None:
        """Close the socket."""
        await self._socket.close()


def run(call: Callable[[ServerConnection], Awaitable[None]]) -> None:
    """Serve calls on the port of the command line until SIGTERM; `call` takes one connection and returns when it is over."""
    uvloop.run(_serve(call, int(sys.argv[1])))


async def _serve(call: Callable[[ServerConnection], Awaitable[None]], port: int) -> None:
    over = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, over.set)
    # The same settings as for the other systems: no compression, and no pings beside the load.
    async with serve(call, "127.0.0.1", port, compression=None, ping_interval=None, max_size=_MESSAGE_LIMIT, close_timeout=1):
        await over.wait()
