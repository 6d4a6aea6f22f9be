"""Real servers for every test that needs one: started once, and emptied for each test that asks for a fresh one."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import nats
import pytest
import redis

from shared.embedded import NatsServer, ValkeyServer
from tests import replayed


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
    """URL of a nats-server that holds no stream. After the test its sessions are replayed, and what it made is removed."""
    yield nats_server.url
    connection = await nats.connect(nats_server.url)
    services = replayed.WHOLE_SERVICES.get(request.path.parent.name)
    found = ""
    try:
        if services is not None and request.node.get_closest_marker("past_is_broken") is None:
            found = await replayed.differences(connection, services)
        streams = connection.jetstream()
        for stream in await streams.streams_info():
            await streams.delete_stream(str(stream.config.name))
    finally:
        await connection.close()
    assert not found, f"{found}\n(a test that writes a past no service could have is marked past_is_broken)"


@pytest.fixture
def redis_url(valkey_server: ValkeyServer) -> str:
    """URL of an empty Valkey."""
    with redis.Redis.from_url(valkey_server.url) as client:
        client.flushall()
    return valkey_server.url


@pytest.fixture
def own_nats(tmp_path: Path) -> Iterator[Callable[[], NatsServer]]:
    """Start servers that the test may `kill()` and `start()` again: same port, same store. Stopped after the test."""
    with ExitStack() as running:
        count = 0

        def start() -> NatsServer:
            nonlocal count
            count += 1
            return running.enter_context(NatsServer(tmp_path / f"nats-{count}"))

        yield start


@pytest.fixture
def own_valkey(tmp_path: Path) -> Iterator[Callable[[], ValkeyServer]]:
    """As `own_nats`, for Valkey."""
    with ExitStack() as running:
        count = 0

        def start() -> ValkeyServer:
            nonlocal count
            count += 1
            return running.enter_context(ValkeyServer(tmp_path / f"valkey-{count}"))

        yield start
