"""The program of the process that holds all MCP clients. Usage: `python -m voxbridge.services.tools.mcp.host DESCRIPTOR PARENT`

Reads the servers and the calls from the socket with this descriptor, and answers there. The official SDK is imported by this program and
nowhere else: it is large, and what a server sends may keep it busy. Owns nothing that lasts; the executor starts another when it dies.
"""

from __future__ import annotations

import asyncio
import os
import resource
import socket
import sys
from typing import Final

import msgspec

from voxbridge.services.tools.mcp.connection import Connection
from voxbridge.services.tools.mcp.messages import FRAME_LIMIT, Answered, Ask, Settings, ToExecutor, ToHost, framed, framed_from
from voxbridge.shared.embedded.child import die_with
from voxbridge.shared.errors import Code, VoxbridgeError
from voxbridge.shared.events.voice import Failure

MEMORY_MB: Final = 1_024
"""MiB of data that the process may have; beyond it, it dies and is started again."""

UNSENT_LIMIT: Final = 64 * 1024 * 1024
"""Bytes for an executor that does not read; beyond it the process ends, as its executor is stuck."""


class Host:
    """The servers, and the calls that run."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self._servers: dict[str, Connection] = {}
        self._running: set[asyncio.Task[None]] = set()
        self._calls: dict[int, asyncio.Task[None]] = {}

    async def serve(self) -> None:
        """Serve until the executor closes the socket; then all servers are ended."""
        try:
            while True:
                message = await self._next()
                if isinstance(message, Settings):
                    for name, server in message.servers.items():
                        self._servers[name] = Connection(name, server, self.say)
                        self._do(self._servers[name].run())
                elif isinstance(message, Ask):
                    self._calls[message.id] = self._do(self._call(message))
                elif message.id in self._calls:
                    self._calls[message.id].cancel()
        except (asyncio.IncompleteReadError, OSError):
            pass
        finally:
            for task in self._running:
                task.cancel()
            await asyncio.gather(*self._running, return_exceptions=True)

    def say(self, message: ToExecutor) -> None:
        """Tell the executor."""
        self._writer.write(framed(message))
        if self._writer.transport.get_write_buffer_size() > UNSENT_LIMIT:
            os._exit(1)

    async def _next(self) -> ToHost:
        found: ToHost = msgspec.msgpack.decode(await framed_from(self._reader), type=ToHost)
        return found

    async def _call(self, ask: Ask) -> None:
        try:
            result = await self._servers[ask.server].call(ask)
            self.say(Answered(id=ask.id, result=result))
        except VoxbridgeError as error:
            failure = Failure(code=error.code, message=error.message, retryable=error.retryable)
            self.say(Answered(id=ask.id, error=failure))
        except asyncio.CancelledError:  # nobody waits for the answer
            raise
        except Exception as error:  # noqa: BLE001 - a fault in one call fails only that call
            sys.stderr.write(f"{ask.server} {ask.tool} failed: {error!r}\n"[:2_000])
            message = f"{ask.tool} of {ask.server} failed in the MCP client ({type(error).__name__})."
            self.say(Answered(id=ask.id, error=Failure(code=Code.INTERNAL, message=message)))
        finally:
            self._calls.pop(ask.id, None)

    def _do(self, work: object) -> asyncio.Task[None]:
        task = asyncio.ensure_future(work)  # type: ignore[call-overload]
        self._running.add(task)
        task.add_done_callback(self._running.discard)
        return task  # type: ignore[no-any-return]


async def main(descriptor: int) -> None:
    """Serve the executor at the other end of this socket."""
    reader, writer = await asyncio.open_connection(sock=socket.socket(fileno=descriptor), limit=FRAME_LIMIT)
    await Host(reader, writer).serve()


if __name__ == "__main__":
    die_with(int(sys.argv[2]))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_DATA, (MEMORY_MB * 1024 * 1024, resource.getrlimit(resource.RLIMIT_DATA)[1]))
    asyncio.run(main(int(sys.argv[1])))
