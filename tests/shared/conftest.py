"""Servers of the bus and log tests, one set for each backend that this machine has."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.shared import backends
from tests.shared.backends import Server
from voxbridge.shared.log.reader import Log


def pytest_report_collectionfinish() -> str:
    return f"bus and log run on: {', '.join(backends.bus_names())}"


@pytest.fixture(scope="session", params=backends.names())
def backend(request: pytest.FixtureRequest) -> str:
    """`embedded`, and `containers` where a Docker engine answers."""
    return str(request.param)


@pytest.fixture(scope="session", params=backends.bus_names())
def bus_backend(request: pytest.FixtureRequest) -> str:
    """All of `backend`, and `cluster`: three servers, and a log of three replicas."""
    return str(request.param)


@pytest.fixture(scope="session")
def bus_url(bus_backend: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A nats-server, or three, shared by all tests: each test uses its own sessions."""
    server = backends.nats_server(bus_backend, tmp_path_factory.mktemp("bus"))
    server.start()
    yield server.url
    server.stop()


@pytest.fixture(scope="session")
def store_url(backend: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A Valkey shared by all tests."""
    server = backends.valkey_server(backend, tmp_path_factory.mktemp("store"))
    server.start()
    yield server.url
    server.stop()


@pytest.fixture
def own_server(backend: str, tmp_path: Path) -> Iterator[Callable[[str], Server]]:
    """Start a `nats` or `valkey` server that the test may kill."""
    with ExitStack() as running:

        def start(kind: str) -> Server:
            make = backends.nats_server if kind == "nats" else backends.valkey_server
            server = make(backend, tmp_path / kind)
            server.start()
            running.callback(server.stop)
            return server

        yield start


@pytest.fixture
async def log(bus_url: str) -> AsyncIterator[Log]:
    """A log on the shared server."""
    async with backends.open_log(bus_url) as log:
        yield log
