"""An MCP server on standard input and output: JSON-RPC, a message a line.

Owns the protocol of the generations that clients open with `initialize`; a client of a newer one falls back to that. Does not own the
tools. The official SDK takes 1.3 s of processor time to import, twice what the whole server may take to start, so the few methods that a
server with tools has are written here, and the SDK's own client tests them. A crash loses the calls in progress; the client sees the end
of output.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from threading import Lock
from typing import Any, BinaryIO, Final

import msgspec

from voxbridge.shared.errors import VoxbridgeError

VERSIONS: Final = ("2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05")
"""Versions of the protocol, the newest first; a client that names another is offered the newest."""

LINE_LIMIT: Final = 1024 * 1024
"""Bytes of a message; a longer line is refused, and skipped."""

AT_ONCE: Final = 4
WAITING: Final = 64
"""Calls that wait beside those at work; further ones are refused."""

_PARSE, _INVALID, _UNKNOWN, _PARAMS, _BUSY = -32_700, -32_600, -32_601, -32_602, -32_000


class Tool(msgspec.Struct, frozen=True):
    """A tool: its name, what it is for, the JSON Schema of its arguments, and what runs it. `reads`: it changes nothing."""

    name: str
    description: str
    parameters: dict[str, Any]
    run: Callable[[dict[str, Any]], dict[str, Any]]
    reads: bool = True


class _Message(msgspec.Struct, frozen=True):
    method: str = ""
    id: int | str | None = None
    params: dict[str, Any] = {}


class Server:
    """A server with these tools. `instructions` tell the client's model what it is for."""

    def __init__(self, tools: Mapping[str, Tool], *, version: str, instructions: str, output: BinaryIO) -> None:
        self._tools = tools
        self._version = version
        self._instructions = instructions
        self._output = output
        self._writing = Lock()
        self._calls = ThreadPoolExecutor(AT_ONCE, thread_name_prefix="call")
        self._open: set[int | str] = set()

    def serve(self, source: BinaryIO) -> None:
        """Answer until the input ends."""
        while line := source.readline(LINE_LIMIT + 1):
            if len(line) > LINE_LIMIT:
                while line and not line.endswith(b"\n"):
                    line = source.readline(LINE_LIMIT)
                self._fail(None, _INVALID, f"A message has {LINE_LIMIT} bytes at most.")
            elif line.strip():
                self._take(line)
        self._calls.shutdown(wait=True, cancel_futures=True)

    def _take(self, line: bytes) -> None:
        try:
            message = msgspec.json.decode(line, type=_Message)
        except (msgspec.MsgspecError, RecursionError) as error:
            self._fail(None, _PARSE, f"This is not a message of JSON-RPC: {str(error)[:200]}")
            return
        if message.id is None:
            if message.method == "notifications/cancelled":
                self._open.discard(message.params.get("requestId", ""))  # its answer is not sent any more
            return
        match message.method:
            case "initialize":
                wanted = message.params.get("protocolVersion")
                self._say(message.id, self._greeting(wanted if wanted in VERSIONS else VERSIONS[0]))
            case "ping":
                self._say(message.id, {})
            case "tools/list":
                self._say(message.id, {"tools": [_shown(tool) for tool in self._tools.values()]})
            case "tools/call":
                self._call(message.id, message.params)
            case _:
                self._fail(message.id, _UNKNOWN, f"There is no method {message.method[:64]!r} here.")

    def _greeting(self, version: str) -> dict[str, Any]:
        about = {"name": "voxbridge", "title": "Voxbridge", "version": self._version}
        return {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": about, "instructions": self._instructions}

    def _call(self, id: int | str, params: dict[str, Any]) -> None:  # noqa: A002 - as JSON-RPC has it
        tool, arguments = self._tools.get(str(params.get("name"))), params.get("arguments") or {}
        if tool is None or not isinstance(arguments, dict):
            self._fail(id, _PARAMS, f"There is no tool {str(params.get('name'))[:64]!r}, or its arguments are no object.")
        elif len(self._open) >= AT_ONCE + WAITING:
            self._fail(id, _BUSY, f"{len(self._open)} calls are open already; wait for one to end.")
        else:
            self._open.add(id)
            self._calls.submit(self._run, id, tool, arguments)

    def _run(self, id: int | str, tool: Tool, arguments: dict[str, Any]) -> None:  # noqa: A002 - as JSON-RPC has it
        try:
            result, failed = tool.run(arguments), False
        except VoxbridgeError as error:
            result, failed = error.as_dict(), True
        except Exception as error:  # noqa: BLE001 - a fault of one tool ends only its own call
            result, failed = (
                {"code": "INTERNAL", "message": f"{tool.name} failed by a fault of its own ({type(error).__name__}: {error})."},
                True,
            )
        if id in self._open:
            self._open.discard(id)
            text = result["message"] if failed else msgspec.json.encode(result).decode()
            self._say(id, {"content": [{"type": "text", "text": text}], "structuredContent": result, "isError": failed})

    def _say(self, id: int | str | None, result: dict[str, Any]) -> None:  # noqa: A002 - as JSON-RPC has it
        self._write({"jsonrpc": "2.0", "id": id, "result": result})

    def _fail(self, id: int | str | None, code: int, message: str) -> None:  # noqa: A002 - as JSON-RPC has it
        self._write({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": message}})

    def _write(self, message: dict[str, Any]) -> None:
        with self._writing:
            self._output.write(msgspec.json.encode(message) + b"\n")
            self._output.flush()


def _shown(tool: Tool) -> dict[str, Any]:
    schema = {"type": "object", "additionalProperties": False, **tool.parameters}
    return {"name": tool.name, "description": tool.description, "inputSchema": schema, "annotations": {"readOnlyHint": tool.reads}}
