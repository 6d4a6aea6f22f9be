"""An MCP server of the newest protocol, on the official SDK; usage: `modern_server.py stdio` or `modern_server.py http PORT`."""

from __future__ import annotations

import asyncio
import os
import sys
from typing import Any

from mcp.server import MCPServer
from mcp.server.mcpserver import Context
from pydantic import BaseModel

server = MCPServer("modern")


class Sum(BaseModel):
    sum: int


@server.tool()
def add(a: int, b: int) -> Sum:
    """Add two whole numbers."""
    return Sum(sum=a + b)


@server.tool()
async def wait(seconds: float) -> str:
    """Wait."""
    await asyncio.sleep(seconds)
    return "waited"


@server.tool()
async def steps(count: int, ctx: Context[Any]) -> str:
    """Do something in steps, and tell of each."""
    for number in range(count):
        await ctx.report_progress(number + 1, count, f"step {number + 1}")
    return "all done"


@server.tool()
def large(size: int) -> str:
    """Answer with much text."""
    return "x" * size


@server.tool()
async def learn(ctx: Context[Any]) -> str:
    """Offer one more tool."""
    server.add_tool(recite, description="Recite what was learned.")
    await ctx.notify_tools_changed()
    return "learned"


def recite() -> str:
    return "A, B, C"


@server.tool()
def die() -> str:
    """End."""
    os._exit(4)


if __name__ == "__main__":
    if sys.argv[1] == "stdio":
        server.run("stdio")
    else:
        server.run("streamable-http", host="127.0.0.1", port=int(sys.argv[2]))
