"""Real servers for the tests: started once, and emptied for each test that asks for a fresh one."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import nats
import pytest
import redis

from tests import replayed, tls
from tests.cluster import Cluster
from tests.ports import free_port
from voxbridge.shared import structures
from voxbridge.shared.embedded.nats_server import NatsServer
from voxbridge.shared.embedded.valkey_server import ValkeyServer

tls.share()


def pytest_collection_finish() -> None:
    """Read all structures, as a service does at its start: services run in this process, too."""
    structures.read_all()


@pytest.fixture(scope="session")
def nats_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[NatsServer]:
    """The nats-server of the whole run. Do not kill it: `own_nats` gives a test a server of its own."""
    with NatsServer(tmp_path_factory.mktemp("nats")) as server:
        yield server


@pytest.fixture(scope="session")
def valkey_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ValkeyServer]:
    """The Valkey of the whole run."""
    with ValkeyServer(tmp_path_factory.mktemp("valkey")) as server:
        yield server


@pytest.fixture
async def nats_url(nats_server: NatsServer, request: pytest.FixtureRequest) -> AsyncIterator[str]:
    """URL of a nats-server without streams. After the test its sessions are replayed and its streams removed."""
    yield nats_server.url
    found = await replayed.of_server(nats_server.url, _recorded_by(request))
    connection = await nats.connect(nats_server.url)
    try:
        streams = connection.jetstream()
        for stream in await streams.streams_info():
            await streams.delete_stream(str(stream.config.name))
    finally:
        await connection.close()
    assert not found, found


def _recorded_by(request: pytest.FixtureRequest) -> tuple[str, ...]:
    """Return the services whose sessions are replayed after this test."""
    if request.node.get_closest_marker("past_is_broken") is not None:
        return ()
    return replayed.WHOLE_SERVICES.get(request.path.relative_to(Path(__file__).parent).parts[0], ())


@pytest.fixture
def redis_url(valkey_server: ValkeyServer) -> str:
    """URL of an empty Valkey."""
    with redis.Redis.from_url(valkey_server.url) as client:
        client.flushall()
    return valkey_server.url


@pytest.fixture
def own_nats(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Callable[[], NatsServer]]:
    """Start servers that the test may `kill()` and `start()` again: same port, same store. Replayed and stopped after the test."""
    with ExitStack() as running:
        started: list[NatsServer] = []

        def start() -> NatsServer:
            started.append(running.enter_context(NatsServer(tmp_path / f"nats-{len(started) + 1}", port=free_port())))
            return started[-1]

        yield start
        services = _recorded_by(request)
        found = [asyncio.run(replayed.of_server(server.url, services)) for server in started if services and server.pid]
    assert not any(found), "\n".join(found)


@pytest.fixture(scope="session")
def nats_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Three nats-servers for the whole run. Do not kill one: `own_cluster` gives a test servers of its own."""
    with Cluster(tmp_path_factory.mktemp("cluster")) as cluster:
        yield cluster


@pytest.fixture
def own_cluster(tmp_path: Path) -> Iterator[Cluster]:
    """Three nats-servers of one cluster that the test may kill, freeze and depose as leader."""
    with Cluster(tmp_path / "cluster") as cluster:
        yield cluster


@pytest.fixture
def own_valkey(tmp_path: Path) -> Iterator[Callable[[], ValkeyServer]]:
    """Start Valkey servers of the test's own, like `own_nats`."""
    with ExitStack() as running:
        count = 0

        def start() -> ValkeyServer:
            nonlocal count
            count += 1
            return running.enter_context(ValkeyServer(tmp_path / f"valkey-{count}"))

        yield start
