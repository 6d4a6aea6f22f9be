"""Backends of the tests of the bus and the log: one embedded server, three in a cluster with three replicas of the log, and containers
where a Docker engine answers."""

from __future__ import annotations

import asyncio
import os
import socket
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import cache
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import urlsplit

import docker  # type: ignore[import-untyped]
import docker.errors  # type: ignore[import-untyped]
import nats
from testcontainers.core.config import testcontainers_config
from testcontainers.core.container import DockerContainer

from tests.cluster import Cluster
from voxbridge.shared.bus.connection import close_nats
from voxbridge.shared.embedded.nats_server import NatsServer
from voxbridge.shared.embedded.valkey_server import ValkeyServer
from voxbridge.shared.errors import Unavailable
from voxbridge.shared.log.reader import READ_TIMEOUT_S, Log

# Every container is stopped by the fixture that started it; the library's reaper would need another image.
testcontainers_config.ryuk_disabled = True

NATS_IMAGE = "nats:2-alpine"
VALKEY_IMAGE = "valkey/valkey:8-alpine"


class Server(Protocol):
    """A server that a test may kill and start again: same address, same store."""

    url: str

    def start(self) -> Any:
        """Start it and wait until it answers."""

    def kill(self) -> None:
        """Kill it, as in a crash."""

    def stop(self) -> None:
        """Stop it."""


class Container:
    """A server in a container; its host port is fixed, so that it has the same address after a restart."""

    def __init__(self, image: str, port: int, command: str, scheme: str) -> None:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self._port = int(probe.getsockname()[1])
        self.url = f"{scheme}://127.0.0.1:{self._port}"
        self._container = DockerContainer(image).with_command(command).with_bind_ports(port, self._port)
        self._made = False

    def start(self) -> Container:
        if self._made:
            self._container.get_wrapped_container().start()
        else:
            self._container.start()
            self._made = True
        end = time.monotonic() + 30
        while True:
            try:
                with socket.create_connection(("127.0.0.1", self._port), 1) as connection:
                    connection.sendall(b"PING\r\n")
                    if connection.recv(64):
                        return self
            except OSError:
                pass
            if time.monotonic() > end:
                raise Unavailable(f"{self.url} did not answer within 30 s.")
            time.sleep(0.05)

    def kill(self) -> None:
        self._container.get_wrapped_container().kill("SIGKILL")
        self._container.get_wrapped_container().wait()

    def stop(self) -> None:
        if self._made:
            self._container.stop()


class ThreeServers:
    """A cluster as one server: all of it is killed and started again. Its log has three replicas (`open_log`)."""

    def __init__(self, folder: Path) -> None:
        self._cluster = Cluster(folder)
        for server in self._cluster.servers:
            server.reserve()
        self.url = self._cluster.url

    def start(self) -> Any:
        return self._cluster.start()

    def kill(self) -> None:
        self._cluster.kill_all()

    def stop(self) -> None:
        self._cluster.stop()


@cache
def names() -> tuple[str, ...]:
    """Return the backends of this machine."""
    place = urlsplit(os.environ.get("DOCKER_HOST", "unix:///var/run/docker.sock"))
    unix = place.scheme == "unix"
    try:
        # Probed with a plain socket first, because the client leaks one when nothing listens.
        with socket.socket(socket.AF_UNIX if unix else socket.AF_INET) as probe:
            probe.settimeout(2)
            probe.connect(place.path if unix else (place.hostname, place.port or 2375))
        client = docker.from_env(timeout=3)
        try:
            client.ping()
        finally:
            client.close()
    except (docker.errors.DockerException, OSError):
        return ("embedded",)
    return ("embedded", "containers")


def bus_names() -> tuple[str, ...]:
    """Return the backends of the bus and the log."""
    return (*names(), "cluster")


def nats_server(backend: str, folder: Path) -> Server:
    """Return a nats-server with JetStream, or three, not yet started."""
    if backend == "cluster":
        return ThreeServers(folder)
    return NatsServer(folder) if backend == "embedded" else Container(NATS_IMAGE, 4222, "-js -sd /data", "nats")


def valkey_server(backend: str, folder: Path) -> Server:
    """Return a Valkey, not yet started."""
    return (
        ValkeyServer(folder)
        if backend in ("embedded", "cluster")
        else Container(VALKEY_IMAGE, 6379, "valkey-server --appendonly yes --protected-mode no", "redis")
    )


@asynccontextmanager
async def open_log(
    url: str,
    *,
    read_timeout_s: float = READ_TIMEOUT_S,
    on_back: Callable[[], None] | None = None,
    on_lost: Callable[[], None] | None = None,
    replicas: int = 0,
) -> AsyncIterator[Log]:
    """Open a log over its own connection, with its streams; its feeds resume after every cut. Default: as many `replicas` as servers."""
    logs: list[Log] = []

    async def back() -> None:
        await asyncio.gather(*(log.reconnected() for log in logs))
        if on_back is not None:
            on_back()

    async def lost() -> None:
        if on_lost is not None:
            on_lost()

    async def quiet(_: Exception) -> None:
        """Ignore the connection errors that these tests cause."""

    servers = url.split(",")
    connection = await nats.connect(
        servers,
        error_cb=quiet,
        disconnected_cb=lost,
        reconnected_cb=back,
        reconnect_time_wait=0.02,
        max_reconnect_attempts=-1,
        pending_size=8 * 1024 * 1024,
    )
    try:
        log = Log(connection, read_timeout_s=read_timeout_s)
        logs.append(log)
        await log.ensure_streams(retention_days=1, replicas=replicas or len(servers))
        yield log
    finally:
        await close_nats(connection)
