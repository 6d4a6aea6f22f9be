"""The stdio transport of an MCP server: a program whose lines are messages, none of them longer than a bound.

Owns the process, its limits and its end, and how much is read of it. Does not own the protocol: what is read goes to the official SDK. The
SDK's own transport joins a line anew with each piece and without a limit, so a long line holds up everything beside it.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import resource
import signal
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any, Final

import anyio
from mcp.shared.message import SessionMessage
from mcp_types import ErrorData, JSONRPCError, jsonrpc_message_adapter

from voxbridge.services.tools.mcp.family import MEBIBYTE, Family
from voxbridge.services.tools.mcp.splitter import CHUNK, CutLine, Splitter
from voxbridge.shared.embedded.child import die_with_parent

LINE_LIMIT: Final = 1024 * 1024
"""Bytes of a message."""

FLOOD_LIMIT: Final = 128 * 1024 * 1024
"""Bytes of one line beyond which the server is ended; up to that they are read and thrown away."""

MESSAGES_PER_S: Final = 500
BYTES_PER_S: Final = 16 * 1024 * 1024
GRACE_S: Final = 0.5
"""Seconds that a server may take to end once its input is closed."""

KILLED_S: Final = 5.0
"""Seconds that a killed server may take to be gone, on a machine that does other things."""

WATCH_S: Final = 0.5
CUT_CODE: Final = -32_099
"""Code of the error that stands for a message that was cut."""

STDERR_KEPT: Final = 2_048
_ID: Final = re.compile(rb'"id"\s*:\s*(\d{1,18})\b')


class Process:
    """The program of a server, and what is known of its end."""

    def __init__(self, running: asyncio.subprocess.Process, family: Family) -> None:
        self.pid = running.pid
        self.ended = asyncio.Event()
        self.why = ""
        self._running = running
        self._family = family
        self._said = b""
        self._stopped = False

    def end(self, why: str) -> None:
        """Kill it with all that it started."""
        self.why = self.why or why
        self._family.kill()
        self.ended.set()

    async def watch(self) -> None:
        """Kill it when it has more processes or memory than it may."""
        while not self.ended.is_set():
            if excess := self._family.excess():
                self.end(excess)
            await asyncio.sleep(WATCH_S)

    async def hear_errors(self) -> None:
        """Keep the last it says on its standard error."""
        while self._running.stderr and (piece := await self._running.stderr.read(CHUNK)):
            self._said = (self._said + piece)[-STDERR_KEPT:]

    async def gone(self) -> None:
        """Wait until its output is closed, and remember how it ended."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(GRACE_S):
                await self._running.wait()
        status = self._running.returncode
        last = self._said.decode("utf-8", "replace").strip().splitlines()[-1:]
        told = f"; the last it said: {last[0][:200]}" if last else ""
        if not self._stopped:
            self.why = self.why or (f"it ended with status {status}{told}" if status is not None else f"it closed its output{told}")
        self.ended.set()

    async def stop(self) -> None:
        """Close its input, let it end for a moment, and kill what is left of it."""
        self._stopped = True
        if self._running.stdin is not None:
            self._running.stdin.close()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(GRACE_S):
                await self._running.wait()
        self._family.kill()
        self.ended.set()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(KILLED_S):
                await self._running.wait()


@asynccontextmanager
async def stdio(
    command: list[str], env: dict[str, str], cwd: str | None, *, memory_mb: int, processes: int, started: Callable[[Process], None]
) -> AsyncIterator[tuple[Any, Any]]:
    """Start a program and yield the streams of its messages; `started` gets its process. Raises OSError when it cannot be started."""
    running = await asyncio.create_subprocess_exec(
        *command,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env=env,
        cwd=cwd,
        start_new_session=True,
        preexec_fn=_limited(memory_mb),
    )
    process = Process(running, Family(running.pid, memory_mb=memory_mb, processes=processes))
    started(process)
    into, read = anyio.create_memory_object_stream[SessionMessage | Exception](0)
    write, out = anyio.create_memory_object_stream[SessionMessage](0)
    beside = [
        asyncio.create_task(work)
        for work in (_read(process, running, into), _write(running, out, into), process.hear_errors(), process.watch())
    ]
    try:
        yield read, write
    finally:
        with anyio.CancelScope(shield=True):
            await process.stop()
            for task in beside:
                task.cancel()
            await asyncio.gather(*beside, return_exceptions=True)
            for stream in (into, read, write, out):
                stream.close()


async def _read(process: Process, running: asyncio.subprocess.Process, into: Any) -> None:
    splitter = Splitter(LINE_LIMIT)
    since, messages, size = time.monotonic(), 0, 0
    async with into:
        with contextlib.suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):
            while running.stdout and (piece := await running.stdout.read(CHUNK)):
                lines = splitter.feed(piece)
                size += len(piece)
                if splitter.waiting > FLOOD_LIMIT:
                    process.end(f"it sent a message of more than {FLOOD_LIMIT // MEBIBYTE} MiB")
                for line in lines:
                    messages += 1
                    message = _message(line)
                    if message is not None:
                        await into.send(message)
                    if messages >= MESSAGES_PER_S or size >= BYTES_PER_S:
                        await asyncio.sleep(max(0.0, since + 1 - time.monotonic()))
                        since, messages, size = time.monotonic(), 0, 0
                if time.monotonic() - since > 1:
                    since, messages, size = time.monotonic(), 0, 0
        await process.gone()


async def _write(running: asyncio.subprocess.Process, out: Any, into: Any) -> None:
    try:
        async with out:
            async for message in out:
                if running.stdin:
                    running.stdin.write(message.message.model_dump_json(by_alias=True, exclude_unset=True).encode() + b"\n")
                    await running.stdin.drain()
    except OSError:
        into.close()


def _message(line: bytes | CutLine) -> SessionMessage | None:
    """Return a line as a message; None for one that is none, as servers print banners. A call whose answer was cut gets an error."""
    if isinstance(line, CutLine):
        found = _ID.search(line.end[::1], max(0, len(line.end) - 64)) or _ID.search(line.begin[:256])
        if found is None:
            return None
        error = ErrorData(code=CUT_CODE, message=f"an answer of {line.size} bytes; {LINE_LIMIT} is the most")
        return SessionMessage(JSONRPCError(jsonrpc="2.0", id=int(found.group(1)), error=error))
    try:
        return SessionMessage(jsonrpc_message_adapter.validate_json(line, by_name=False))
    except ValueError:
        return None


def _limited(memory_mb: int) -> Callable[[], None]:
    """Return what a child does before its program: it dies with its parent, leaves no core, and has a limit of memory."""
    die = die_with_parent()

    def limit() -> None:
        if die is not None:
            die()
        os.nice(5)  # a server that spins must not take the processor from audio
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        most = memory_mb * MEBIBYTE
        hard = resource.getrlimit(resource.RLIMIT_DATA)[1]
        resource.setrlimit(resource.RLIMIT_DATA, (most if hard == resource.RLIM_INFINITY else min(most, hard), hard))

    return limit
