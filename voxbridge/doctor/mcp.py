"""Checks of the MCP servers, by what a tool executor says of each. Without an executor there is nothing to say here.

Owns the request and its findings. Changes nothing.
"""

from __future__ import annotations

from typing import Final

import msgspec
from nats.aio.client import Client
from nats.errors import Error as NatsError

from voxbridge.doctor.finding import Finding, ok, warn

AREA: Final = "mcp"
ANSWER_S: Final = 2.0
_FILE: Final = "See docs/mcp.md, and the file that VOXBRIDGE_MCP_FILE names."


class _Server(msgspec.Struct, frozen=True):
    server: str
    state: str
    why: str = ""
    protocol: str = ""
    tools: int = 0
    refused: tuple[str, ...] = ()


async def on_the_bus(nc: Client) -> list[Finding]:
    """Return a finding for each server of the configuration; none when no executor answers."""
    try:
        answer = await nc.request("vx.svc.tools.mcp", b"", timeout=ANSWER_S)
        servers = msgspec.json.decode(answer.data, type=list[_Server])
    except (NatsError, TimeoutError, msgspec.MsgspecError):  # the services' own findings report a lost executor
        return []
    return [_finding(server) for server in servers]


def _finding(server: _Server) -> Finding:
    if server.state == "down":
        return warn(AREA, server.server, f"Not connected: {server.why}.", f"It is tried again by itself. {_FILE}")
    if server.state == "starting":
        return warn(AREA, server.server, "It is being started, or does not answer yet.", "Wait a moment, and ask again.")
    if server.refused:
        says = f"Connected, with {server.tools} tools; {len(server.refused)} refusals, the first: {server.refused[0]}"
        return warn(AREA, server.server, says, _FILE)
    return ok(AREA, server.server, f"connected by MCP {server.protocol}, with {server.tools} tools.")
