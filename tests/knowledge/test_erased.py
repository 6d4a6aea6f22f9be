"""Erasing an account's graphs: by the service, at rest, and where it cannot be done."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest
from nats.aio.client import Client

from tests.knowledge.serving import serving
from voxbridge.services.knowledge.library import Library
from voxbridge.sessions import graphs
from voxbridge.shared.bus.connection import connect_nats
from voxbridge.shared.config import Config
from voxbridge.shared.knowledge import Ingest

pytestmark = pytest.mark.timeout(60)
PLANTED = "The word xylophone42 is planted."


@pytest.fixture
async def nc(nats_url: str) -> AsyncIterator[Client]:
    connection = await connect_nats(nats_url, "erases", pending=1_024, timeout_s=5)
    yield connection
    await connection.close()


@pytest.fixture
def config(nats_url: str, redis_url: str, tmp_path: Path) -> Config:
    return replace(Config(), nats_url=nats_url, redis_url=redis_url, data_dir=tmp_path)


def planted(config: Config) -> set[str]:
    """Return the accounts in whose files the planted word is found."""
    found: set[str] = set()
    for path in config.knowledge_path.rglob("*"):
        with suppress(FileNotFoundError, IsADirectoryError):  # SQLite's own files come and go while the service looks at its graphs
            if b"xylophone42" in path.read_bytes():
                found.add(path.relative_to(config.knowledge_path).parts[0])
    return found


def plant(config: Config, *accounts: str) -> None:
    """Put the word into a graph of each account."""
    library = Library(config.knowledge_path)
    library.take()
    for account in accounts:
        library.ingest(Ingest(account=account, graph="g", source="a.md", title="a", text=PLANTED, at=1))
    library.close()


async def test_the_service_that_runs_removes_the_graphs_of_one_account(config: Config, nc: Client) -> None:
    plant(config, "local", "ada@example.com")
    assert planted(config) == {"local", "ada@example=com"}
    async with serving(config):
        assert await graphs.forget(nc, config, "ada@example.com") == ""
        assert planted(config) == {"local"}
        assert await graphs.forget(nc, config, "nobody") == ""


async def test_without_the_service_the_files_are_removed_where_they_are_at_rest(config: Config, nc: Client) -> None:
    plant(config, "local", "ada@example.com")
    here = replace(config, nats_url="")
    assert await graphs.forget(nc, here, "local") == ""
    assert await graphs.forget(nc, here, "local") == ""
    assert planted(config) == {"ada@example=com"}


async def test_what_cannot_be_reached_is_said(config: Config, nc: Client) -> None:
    plant(config, "local")
    told = await graphs.forget(nc, config, "local")
    assert told.startswith("the knowledge graphs of local (The knowledge service does not answer")
    library = Library(config.knowledge_path)
    library.take()
    try:
        assert (await graphs.forget(nc, replace(config, nats_url=""), "local")).startswith("the knowledge graphs in ")
    finally:
        library.close()
    assert planted(config) == {"local"}
