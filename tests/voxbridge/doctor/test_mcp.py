"""`voxbridge doctor` has a line for each MCP server, and none without an executor."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import nats

from tests.eventually import eventually
from tests.tools.conftest import Executors
from tests.tools.mcp.conftest import HERE
from voxbridge.doctor import mcp
from voxbridge.doctor.finding import Finding
from voxbridge.shared.config import Config


async def test_each_server_is_told_with_what_to_do(nats_url: str, redis_url: str, tmp_path: Path) -> None:
    program = {"command": sys.executable, "args": [str(HERE / "hostile_server.py"), "twins"]}
    file = tmp_path / "mcp.yaml"
    file.write_text(json.dumps({"servers": {"twins": program, "lost": {"command": "there-is-no-such-program"}}}))
    client = await nats.connect(nats_url)
    try:
        assert await mcp.on_the_bus(client) == []
        config = Config(nats_url=nats_url, redis_url=redis_url, mcp_file=str(file))
        async with Executors(config).running("voxbridge.services.tools.packs.everyday.time"):
            found: dict[str, Finding] = {}

            async def told() -> bool:
                found.update({one.name: one for one in await mcp.on_the_bus(client)})
                return len(found) == 2 and "Not connected" in found["lost"].says and "Connected, with 1 tools" in found["twins"].says

            await eventually(told)
            assert "install it" in found["lost"].says
            assert "docs/mcp.md" in found["lost"].do
            assert "same name" in found["twins"].says
    finally:
        await client.close()
