"""`voxbridge knowledge` against a running service."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from tests.knowledge.serving import serving
from voxbridge.cli import cli
from voxbridge.shared.config import Config
from voxbridge.shared.errors import VoxbridgeError
from voxbridge.shared.knowledge import Ingest


async def run(*arguments: str) -> Result:
    """Run the command in a thread, since its service runs in this one."""
    return await asyncio.to_thread(lambda: CliRunner().invoke(cli, ["knowledge", *arguments]))


async def test_graphs_are_listed_and_their_indexes_made_again(
    nats_url: str, redis_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("VOXBRIDGE_NATS_URL", nats_url)
    monkeypatch.setenv("COLUMNS", "140")
    async with serving(replace(Config(), nats_url=nats_url, redis_url=redis_url, data_dir=tmp_path)) as (_, asks):
        assert (await run("ls")).output == "local has no knowledge graph. Put documents into one: voxbridge ingest FOLDER\n"
        at = 1_700_000_000_000_000
        await asks(Ingest(account="local", graph="hand book", source="a.md", title="a", text="# A\nOne.\n# B\nTwo.", at=at))
        listed = (await run("ls")).output
        assert [cell.strip() for cell in listed.splitlines()[4].strip("│").split("│")] == [
            "hand-book",
            "1",
            "2",
            "2",
            "0",
            "2023-11-14 22:13 UTC",
        ]
        assert (await run("rebuild")).output == "The indexes of 1 graph of local were made again.\n"
        assert "ada has no knowledge graph" in (await run("ls", "--account", "ada")).output
    away = await run("ls")
    assert away.exit_code != 0
    assert "The knowledge service does not answer" in (str(away.exception) if isinstance(away.exception, VoxbridgeError) else away.output)
