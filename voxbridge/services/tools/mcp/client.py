"""The executor's side of its MCP servers: one process that holds all clients, the calls in it, and their tools in the catalogue.

Owns that process and the open calls. When it dies, its calls are interrupted, what is left of its servers is killed, and another is
started; the tools stay in the catalogue meanwhile, and a call of one says that its server is away. Nothing else waits for a server.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
import socket
import sys
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final
from zlib import crc32

import msgspec
from nats.micro.request import Request

from voxbridge.services.tools.catalogue import Catalogue
from voxbridge.services.tools.isolation.children import child_environment
from voxbridge.services.tools.mcp.config import Server, read, with_variables
from voxbridge.services.tools.mcp.messages import (
    FRAME_LIMIT,
    Answered,
    Ask,
    Cancel,
    Condition,
    Offered,
    Progress,
    Settings,
    State,
    ToExecutor,
    ToHost,
    framed,
    framed_from,
)
from voxbridge.services.tools.mcp.remote import Report, tools_of
from voxbridge.shared.agents.functions import MCP_FIGURE
from voxbridge.shared.embedded.child import end_group
from voxbridge.shared.errors import Code, VoxbridgeError
from voxbridge.shared.events.voice import Failure
from voxbridge.shared.step.effects import Tasks

CALLS_LIMIT: Final = 32
"""Open calls of one server."""

BACK_OFF_S: Final = (0.2, 30.0)
"""Seconds before the process of the clients is started again: at first, and at most."""

STEADY_S: Final = 60.0
STOP_S: Final = 1.5
"""Seconds that the process may take to end its servers."""

_log = logging.getLogger(__name__)


class ServerView(msgspec.Struct, frozen=True, kw_only=True):
    """State of a server, for people."""

    server: str
    state: State
    why: str = ""
    protocol: str = ""
    tools: int = 0
    refused: tuple[str, ...] = ()


class _Open:
    """An open call."""

    def __init__(self, server: str, report: Report | None) -> None:
        self.server = server
        self.report = report
        self.answer: asyncio.Future[Answered] = asyncio.get_running_loop().create_future()
        self.latest: Progress | None = None


class McpServers:
    """The servers of the configuration."""

    @classmethod
    def from_file(cls, catalogue: Catalogue, file: str) -> McpServers:
        """Return the servers that a file names, with variables of this process; none for an empty name. Raises `INVALID_ARGUMENT`."""
        return cls(catalogue, read(Path(file)) if file else {}, os.environ)

    def __init__(self, catalogue: Catalogue, servers: Mapping[str, Server], environment: Mapping[str, str]) -> None:
        self._catalogue = catalogue
        self._servers: dict[str, Server] = {}
        self._views = {name: ServerView(server=name, state="starting") for name in servers}
        for name, server in servers.items():
            try:
                self._servers[name] = with_variables(name, server, environment)
            except VoxbridgeError as error:
                self._views[name] = ServerView(server=name, state="down", why=error.message)
                self._explain(name, error.message)
                _log.warning("%s", error.message)
        usable = [(name, name in self._servers, _without_secrets(servers[name])) for name in sorted(servers)]
        self._checksum = crc32(msgspec.json.encode(usable, order="deterministic"))
        self._groups: dict[str, int] = {}
        self._told: dict[str, str] = {}
        self._calls: dict[int, _Open] = {}
        self._count = 0
        self._writer: asyncio.StreamWriter | None = None
        self._doing = Tasks[None]("MCP")
        self.pid = 0
        """Process that holds the clients; 0: none."""

    def views(self) -> list[ServerView]:
        """Return how each server is."""
        return list(self._views.values())

    def figures(self) -> Mapping[str, float]:
        """Return how many servers there are, and a check sum of what was given of them: executors of one installation have the same."""
        return {"mcp_servers": len(self._views), MCP_FIGURE: self._checksum}

    async def answer(self, request: Request) -> None:
        """Answer `vx.svc.tools.mcp`: the state of each server as JSON."""
        await request.respond(msgspec.json.encode(self.views()))

    async def run(self) -> None:
        """Keep the process of the clients running, until cancelled; then it is ended with all servers."""
        delay = BACK_OFF_S[0]
        while self._servers:
            begun = asyncio.get_running_loop().time()
            try:
                await self._host()
            except OSError as error:
                _log.warning("the process of the MCP clients could not be started: %s", error)
            except Exception:  # noqa: BLE001 - no fault here may leave the servers without a process
                _log.exception("the MCP servers are connected anew")
            if asyncio.get_running_loop().time() - begun > STEADY_S:
                delay = BACK_OFF_S[0]
            await asyncio.sleep(delay)
            delay = min(2 * delay, BACK_OFF_S[1])

    async def call(self, server: str, tool: str, arguments: dict[str, Any], report: Report | None = None) -> dict[str, Any]:
        """Call a tool. Cancelling this cancels the call, and the connection stays.

        Raises the tool's error, `UNAVAILABLE` while the server is away, `OVERLOADED`, and `INTERRUPTED` when its process or the clients'
        died.
        """
        writer = self._writer
        if writer is None:
            raise VoxbridgeError(Code.UNAVAILABLE, "The MCP servers are being started; try again in a moment.")
        if Counter(call.server for call in self._calls.values())[server] >= CALLS_LIMIT:
            message = f"{CALLS_LIMIT} calls of the MCP server {server} are open already; try again in a moment."
            raise VoxbridgeError(Code.OVERLOADED, message, limit=CALLS_LIMIT)
        self._count += 1
        number, call = self._count, _Open(server, report)
        self._calls[number] = call
        try:
            ask = Ask(id=number, server=server, tool=tool, arguments=arguments, progress=report is not None)
            writer.write(framed(ask))
            answer = await call.answer
        except asyncio.CancelledError:
            if writer is self._writer:
                writer.write(framed(Cancel(number)))
            raise
        finally:
            del self._calls[number]
        if answer.error is not None:
            raise VoxbridgeError(Code(answer.error.code), answer.error.message, retryable=answer.error.retryable)
        return answer.result or {}

    # --- the process ---

    async def _host(self) -> None:
        """Start the process, and serve its messages until it is gone."""
        ours, theirs = socket.socketpair()
        command = [sys.executable, "-m", "voxbridge.services.tools.mcp.host", str(theirs.fileno()), str(os.getpid())]
        with theirs:
            process = await asyncio.create_subprocess_exec(
                *command, stdin=asyncio.subprocess.DEVNULL, pass_fds=(theirs.fileno(),), env=child_environment(), start_new_session=True
            )
        reader, writer = await asyncio.open_connection(sock=ours, limit=FRAME_LIMIT)
        self._writer, self.pid = writer, process.pid
        try:
            self._send(Settings(self._servers))
            while True:
                self._take(msgspec.msgpack.decode(await framed_from(reader), type=ToExecutor))
        except (asyncio.IncompleteReadError, ConnectionError, msgspec.MsgspecError) as error:
            _log.warning("the process of the MCP clients ended: %s", error)
        finally:
            self._writer, self.pid = None, 0
            self._lose_all()
            writer.close()
            await self._end(process)

    async def _end(self, process: asyncio.subprocess.Process) -> None:
        """Let the process end its servers, and kill what is left of them and of it."""
        try:
            async with asyncio.timeout(STOP_S):
                await process.wait()
        except TimeoutError:
            pass
        finally:
            for group in (process.pid, *self._groups.values()):
                end_group(group, signal.SIGKILL)
            self._groups.clear()
            await process.wait()

    def _lose_all(self) -> None:
        for name in self._servers:
            self._views[name] = msgspec.structs.replace(self._views[name], state="starting", why="")
        for number, call in self._calls.items():
            if not call.answer.done():
                message = f"The process that held the connection to {call.server} ended; how far the call came is not known."
                call.answer.set_result(Answered(id=number, error=Failure(code=Code.INTERRUPTED, message=message)))

    def _send(self, message: ToHost) -> None:
        if self._writer is not None:
            self._writer.write(framed(message))

    # --- messages ---

    def _take(self, message: ToExecutor) -> None:
        if isinstance(message, Answered):
            call = self._calls.get(message.id)
            if call is not None and not call.answer.done():
                call.answer.set_result(message)
        elif isinstance(message, Progress):
            self._report(message)
        elif isinstance(message, Condition):
            self._note(message)
        elif message.server in self._servers:
            self._offer(message)

    def _note(self, told: Condition) -> None:
        if told.server not in self._servers:
            return
        self._groups.pop(told.server, None)
        if told.group:
            self._groups[told.server] = told.group
        before = self._views[told.server]
        self._views[told.server] = msgspec.structs.replace(before, state=told.state, why=told.why, protocol=told.protocol)
        if told.state != "starting":  # a server that is tried again is still lost for the reason that was told last
            self._explain(told.server, told.why if told.state == "down" else "")
        elif not self._told.get(told.server):
            self._explain(told.server, "it is being started; try again in a moment")
        if told.state == "down" and told.why != self._told.get(told.server):
            self._told[told.server] = told.why
            _log.warning("the MCP server %s is not connected: %s", told.server, told.why)

    def _explain(self, server: str, why: str) -> None:
        """Have a call of a tool that a lost server would offer answered by why it is not there."""
        self._catalogue.explain(f"{server}__", f"The MCP server {server} is not connected: {why}." if why else "")

    def _offer(self, offered: Offered) -> None:
        name = offered.server
        tools, refused = tools_of(name, self._servers[name], offered.tools, self.call)
        try:
            self._catalogue.replace(f"the MCP server {name}", tools)
        except VoxbridgeError as error:
            refused, tools = [error.message], []
        refused += offered.refused
        for why in refused:
            _log.warning("the MCP server %s: %s", name, why)
        view = self._views[name]
        self._views[name] = msgspec.structs.replace(view, tools=len(tools), refused=tuple(refused))

    def _report(self, progress: Progress) -> None:
        """Pass progress on, of which only the latest counts while one is being recorded."""
        call = self._calls.get(progress.id)
        if call is None or call.report is None:
            return
        busy, call.latest = call.latest is not None, progress
        if not busy:
            self._doing.background(self._reported(call, call.report))

    async def _reported(self, call: _Open, report: Report) -> None:
        while (latest := call.latest) is not None:
            with contextlib.suppress(VoxbridgeError):  # the call is over, or the log is away: progress may be lost
                await report(latest.done, latest.message)
            if call.latest is latest:
                call.latest = None


def _without_secrets(server: Server) -> dict[str, Any]:
    """Return what a file says of a server, without the values that may be secret: a check sum is told to whoever reads the figures."""
    told: dict[str, Any] = msgspec.to_builtins(server)
    return told | {"env": sorted(server.env), "headers": sorted(server.headers)}
