"""`voxbridge doctor` tells of executors that were not given the same."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import nats

from tests.eventually import eventually
from tests.tools.conftest import Executors
from voxbridge.doctor import parts, tools
from voxbridge.doctor.finding import Finding
from voxbridge.doctor.place import Place
from voxbridge.services.tools.catalogue import Catalogue
from voxbridge.services.tools.mcp.client import McpServers
from voxbridge.services.tools.mcp.config import parse
from voxbridge.shared.agents.functions import MCP_FIGURE
from voxbridge.shared.config import Config

PACKS = "voxbridge.services.tools.packs.everyday.time"


def servers(file: Path, *names: str, **rules: Any) -> str:
    file.write_text(json.dumps({"servers": {name: {"command": "there-is-no-such-program", **rules} for name in names}}))
    return str(file)


async def test_executors_that_were_given_other_packs_or_mcp_servers_are_told(nats_url: str, redis_url: str, tmp_path: Path) -> None:
    one, other = servers(tmp_path / "one.yaml", "files", "mail"), servers(tmp_path / "other.yaml", "files")
    executors = Executors(Config(nats_url=nats_url, redis_url=redis_url))
    client = await nats.connect(nats_url)

    async def differences(processes: int) -> dict[str, Finding]:
        async def all_answer() -> bool:
            return len(await parts._stats(client, "tools") or []) == processes

        await eventually(all_answer)
        return {one.name: one for one in await parts.on_the_bus(client, Place(here=True)) if one.area == tools.AREA}

    try:
        async with executors.running(PACKS, mcp_file=one), executors.running(PACKS, mcp_file=one):
            assert await differences(2) == {}
            async with executors.running(PACKS, mcp_file=other):
                (name, finding), *others = (await differences(3)).items()
                assert (name, finding.level, others) == ("MCP servers", "WARN", [])
                assert "3 executors were given different MCP servers (servers: 1, 2, 2)" in finding.says
                assert "VOXBRIDGE_MCP_FILE" in finding.do
            async with executors.running("tests.tools.pack", mcp_file=one):
                found = await differences(3)
                assert list(found) == ["packs"]
                assert "VOXBRIDGE_TOOL_PACKS" in found["packs"].do
    finally:
        await client.close()


def figure(text: str, **environment: str) -> float:
    return McpServers(Catalogue({}), parse(text.encode()), environment).figures()[MCP_FIGURE]


def test_what_an_executor_was_given_has_one_sum_whatever_its_order_and_secrets() -> None:
    usual = figure("servers: {a: {command: x, env: {TOKEN: one}}, b: {url: 'https://b'}}")
    assert figure("servers: {b: {url: 'https://b'}, a: {command: x, env: {TOKEN: another}}}") == usual
    for different in (
        "servers: {a: {command: x, env: {TOKEN: one}}}",
        "servers: {a: {command: x}, b: {url: 'https://b'}}",
        "servers: {a: {command: x, env: {TOKEN: one}, effect: read}, b: {url: 'https://b'}}",
        "servers: {a: {command: x, env: {TOKEN: '${LOST}'}}, b: {url: 'https://b'}}",
    ):
        assert figure(different) != usual, different
    assert figure("servers: {a: {command: x, env: {TOKEN: '${LOST}'}}, b: {url: 'https://b'}}", LOST="here") == usual
