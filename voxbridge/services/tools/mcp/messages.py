"""Messages between the tool executor and the process that holds the MCP clients: length-prefixed MessagePack, both ways.

Pure data, with few imports. Each message has a bound, since what stands in it comes from servers of strangers.
"""

from __future__ import annotations

import asyncio
import struct
from typing import Any, Final, Literal

import msgspec

from voxbridge.services.tools.mcp.config import Hints, Server
from voxbridge.shared.events.voice import Failure

FRAME: Final = struct.Struct(">I")
"""Header of a message: the length of its payload in bytes."""

FRAME_LIMIT: Final = 4 * 1024 * 1024
"""Bytes of a message."""

State = Literal["starting", "ready", "down"]


class Settings(msgspec.Struct, frozen=True, tag="settings"):
    """The first message: the servers, with the values of their variables."""

    servers: dict[str, Server]


class Ask(msgspec.Struct, frozen=True, kw_only=True, tag="ask"):
    """Call a tool; `progress`: its progress is wanted."""

    id: int
    server: str
    tool: str
    arguments: dict[str, Any]
    progress: bool = False


class Cancel(msgspec.Struct, frozen=True, tag="cancel"):
    """Nobody waits for the answer of a call any more."""

    id: int


class Offer(msgspec.Struct, frozen=True, kw_only=True):
    """A tool as its server describes it, bounded and cleaned."""

    name: str
    description: str
    parameters: dict[str, Any]
    output: dict[str, Any] | None = None
    hints: Hints = Hints()


class Offered(msgspec.Struct, frozen=True, kw_only=True, tag="offered"):
    """All tools of a server, in place of those before; `refused` says of others why they are not among them."""

    server: str
    tools: tuple[Offer, ...]
    refused: tuple[str, ...] = ()


class Condition(msgspec.Struct, frozen=True, kw_only=True, tag="condition"):
    """State of a server: `why` it is down, the process group that runs it (0: none), and the version of the protocol that was agreed on."""

    server: str
    state: State
    why: str = ""
    group: int = 0
    protocol: str = ""


class Progress(msgspec.Struct, frozen=True, kw_only=True, tag="progress"):
    """A call reports its progress, from 0 to 1."""

    id: int
    done: float
    message: str


class Answered(msgspec.Struct, frozen=True, kw_only=True, tag="answered"):
    """The outcome of a call."""

    id: int
    result: dict[str, Any] | None = None
    error: Failure | None = None


ToHost = Settings | Ask | Cancel
ToExecutor = Offered | Condition | Progress | Answered


def framed(message: ToHost | ToExecutor) -> bytes:
    """Return a message as it is sent. Raises ValueError, TypeError and OverflowError for what MessagePack does not take."""
    payload = msgspec.msgpack.encode(message)
    if len(payload) > FRAME_LIMIT:
        raise ValueError(f"a message of {len(payload)} bytes")
    return FRAME.pack(len(payload)) + payload


async def framed_from(reader: asyncio.StreamReader) -> bytes:
    """Return the next message's payload. Raises ConnectionError for one that is too long, `IncompleteReadError` at the end."""
    (size,) = FRAME.unpack(await reader.readexactly(FRAME.size))
    if size > FRAME_LIMIT:
        raise ConnectionError(f"a message of {size} bytes")
    return await reader.readexactly(size)
