"""An MCP server over stdio, on the official SDK, with one tool that does nothing: what its calls cost is the way to it and back."""

from __future__ import annotations

from mcp.server import MCPServer

server = MCPServer("empty")


@server.tool()
def nothing() -> str:
    """Do nothing."""
    return ""


if __name__ == "__main__":
    server.run("stdio")
