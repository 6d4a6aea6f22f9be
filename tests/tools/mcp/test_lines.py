"""The pipes to an MCP server and to the executor, at the bounds of what they hold."""

from __future__ import annotations

import asyncio
import os
import socket
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import pytest

from tests.eventually import eventually
from voxbridge.services.tools.mcp import host, lines
from voxbridge.services.tools.mcp.messages import Answered, framed
from voxbridge.shared.errors import Code
from voxbridge.shared.events.voice import Failure

BANNER = b'{"jsonrpc": "2.0", "method": "notifications/message", "params": {"n": 1}}'


@asynccontextmanager
async def program(text: str) -> AsyncIterator[tuple[lines.Process, Any]]:
    """Run a Python program as a server, and yield its process and the messages that are read of it."""
    started: list[lines.Process] = []
    command = [sys.executable, "-c", f"import sys\n{text}\nsys.stdout.flush(); sys.stdin.read()"]
    environment = {"PATH": os.environ["PATH"]}
    async with lines.stdio(command, environment, None, memory_mb=512, processes=8, started=started.append) as (read, _write):
        yield started[0], read


@pytest.mark.parametrize("beyond", [0, 1])
async def test_a_server_is_ended_at_a_line_beyond_the_flood_limit(beyond: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lines, "FLOOD_LIMIT", 2 * 1024 * 1024)
    flood = f"sys.stdout.write('x' * {lines.FLOOD_LIMIT + beyond}); sys.stdout.flush()"
    more = "" if beyond else f"; sys.stdout.write({(chr(10) + BANNER.decode() + chr(10))!r})"
    async with program(flood + more) as (process, read):
        if beyond:
            with anyio.fail_after(40):
                await process.ended.wait()
            assert process.why == "it sent a message of more than 2 MiB"
        else:  # the line is thrown away, and the next one is read
            with anyio.fail_after(40):
                assert (await read.receive()).message.method == "notifications/message"
            assert not process.ended.is_set()


@pytest.mark.parametrize("beyond", [0, 1])
async def test_the_last_that_a_server_said_as_an_error_is_kept(beyond: int) -> None:
    size = lines.STDERR_KEPT + beyond
    async with program(f"sys.stderr.write('a' + 'b' * {size - 2} + 'c'); sys.stderr.flush()") as (process, _read):
        await eventually(lambda: process._said.endswith(b"c"))
        assert len(process._said) == lines.STDERR_KEPT
        assert process._said.startswith(b"b" if beyond else b"a")


class Ended(Exception):
    """The process would have ended."""


async def test_a_host_whose_executor_does_not_read_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    def end(status: int) -> None:
        raise Ended(status)

    ours, executor = socket.socketpair()
    with executor:
        reader, writer = await asyncio.open_connection(sock=ours)
        told = Answered(id=1, error=Failure(code=Code.INTERNAL, message="x" * 50_000))
        server = host.Host(reader, writer)
        while not (before := writer.transport.get_write_buffer_size()):  # what the kernel takes is not waiting
            server.say(told)
        monkeypatch.setattr(host, "UNSENT_LIMIT", before + len(framed(told)))
        monkeypatch.setattr(os, "_exit", end)
        server.say(told)
        assert writer.transport.get_write_buffer_size() == host.UNSENT_LIMIT
        with pytest.raises(Ended):
            server.say(told)
        writer.transport.abort()
