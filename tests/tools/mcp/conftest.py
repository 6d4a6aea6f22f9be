"""MCP servers of a test: real programs, in the process that holds the clients."""

from __future__ import annotations

import asyncio
import os
import shutil
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

import msgspec

from tests.eventually import eventually
from voxbridge.services.tools.catalogue import Catalogue
from voxbridge.services.tools.mcp.client import McpServers, ServerView
from voxbridge.services.tools.mcp.config import Server
from voxbridge.shared.cancellation import ended

HERE: Final = Path(__file__).parent
NPM: Final = Path(__file__).parents[3] / "node_modules" / "@modelcontextprotocol"
NODE: Final = shutil.which("node") or str(Path(sys.executable).with_name("node"))
"""Node.js that a user has, else that of the set-up."""

EVERYTHING: Final[dict[str, Any]] = {"command": NODE, "args": [str(NPM / "server-everything/dist/index.js"), "stdio"]}


def files(folder: Path) -> dict[str, Any]:
    return {"command": NODE, "args": [str(NPM / "server-filesystem/dist/index.js"), str(folder)]}


def hostile(how: str, *more: object, **rules: Any) -> dict[str, Any]:
    return {"command": sys.executable, "args": [str(HERE / "hostile_server.py"), how, *map(str, more)], **rules}


def modern(*how: str) -> dict[str, Any]:
    return {"command": sys.executable, "args": [str(HERE / "modern_server.py"), *how]}


class Running:
    """Servers that run, and their catalogue."""

    def __init__(self, servers: McpServers, catalogue: Catalogue) -> None:
        self.servers = servers
        self.catalogue = catalogue

    def view(self, name: str) -> ServerView:
        return next(view for view in self.servers.views() if view.server == name)

    async def ready(self, *names: str) -> None:
        await eventually(lambda: all(self.view(name).state == "ready" for name in names))

    async def call(self, server: str, tool: str, **arguments: Any) -> dict[str, Any]:
        return await self.servers.call(server, tool, arguments)


@asynccontextmanager
async def serving(servers: Mapping[str, dict[str, Any]], environment: Mapping[str, str] = os.environ) -> AsyncIterator[Running]:
    catalogue = Catalogue({})
    found = McpServers(catalogue, msgspec.convert(servers, dict[str, Server]), environment)
    running = asyncio.create_task(found.run())
    try:
        yield Running(found, catalogue)
    finally:
        await ended(running)
