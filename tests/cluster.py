"""A cluster of three nats-servers on loopback that a test can kill, stop, and depose as leader."""

from __future__ import annotations

import asyncio
import json
import os
import secrets
import signal
import socket
from collections.abc import AsyncIterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, asynccontextmanager
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import nats
from nats.aio.client import Client
from nats.errors import Error as NatsError

from tests.eventually import eventually
from tests.stopped import stop
from voxbridge.shared.embedded.nats_server import NatsServer
from voxbridge.shared.embedded.servers import LOOPBACK

SERVERS = 3
READY_S = 30.0
_ASK_S = 1.0
_LOOK_S = 0.02


class ClusteredServer(NatsServer):
    """A server of the cluster. The product's configuration stays; a name and the routes to the others are added."""

    def __init__(self, folder: Path, number: int, routes: Sequence[int], *, sync_interval: str = "always") -> None:
        super().__init__(folder, sync_interval=sync_interval, min_free_bytes=0)
        self.cluster_name = f"n{number}"
        self._number = number
        self._routes = routes

    def _configure(self) -> None:
        super()._configure()
        path = self.folder / "nats.conf"
        routes = ", ".join(f'"nats://{LOOPBACK}:{port}"' for port in self._routes)
        text = path.read_text().replace('server_name: "voxbridge"', f'server_name: "{self.cluster_name}"', 1)
        assert self.cluster_name in text
        listen = f"{LOOPBACK}:{self._routes[self._number]}"
        path.write_text(f'{text}cluster {{ name: voxbridge, listen: "{listen}", routes: [{routes}], no_advertise: true }}\n')


class Cluster:
    """Three servers; `url` names them all, `urls` each. A context manager that returns once they have a leader."""

    def __init__(self, folder: Path, *, sync_interval: str = "always") -> None:
        ports = _free_ports(SERVERS)
        password = secrets.token_hex(24)
        self.servers = [ClusteredServer(folder / f"n{n}", n, ports, sync_interval=sync_interval) for n in range(SERVERS)]
        for server in self.servers:
            server.folder.mkdir(mode=0o700, parents=True)
            for name in ("password", "system-password"):
                (server.folder / name).touch(mode=0o600)
                (server.folder / name).write_text(password)
        self._stopped: set[int] = set()

    @property
    def urls(self) -> list[str]:
        """Client URL of each server."""
        return [server.url for server in self.servers]

    @property
    def url(self) -> str:
        """URLs of all of them, in the form of `VOXBRIDGE_NATS_URL`."""
        return ",".join(self.urls)

    def start(self) -> Self:
        """Start all of them, and wait until they have elected a leader."""
        for server in self.servers:
            if server.pid is None:
                server.spawn()
        with ThreadPoolExecutor(1) as beside:  # the caller may run in an event loop of its own
            beside.submit(asyncio.run, self._ready()).result()
        return self

    def stop(self) -> None:
        """Stop all of them."""
        for number in list(self._stopped):
            self.go_on(number)
        for server in self.servers:
            server.kill()

    def kill_all(self) -> None:
        """Send SIGKILL to all of them."""
        for server in self.servers:
            server.kill()

    def __enter__(self) -> Self:
        with ExitStack() as undo:
            undo.callback(self.stop)
            self.start()
            undo.pop_all()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.stop()

    def kill(self, number: int) -> None:
        """Send SIGKILL to one of them."""
        self.servers[number].kill()

    def start_again(self, number: int) -> None:
        """Start a killed one, on the same port and store."""
        self.servers[number].start()

    def freeze(self, number: int) -> None:
        """Send SIGSTOP: the server keeps its sockets and does nothing."""
        stop(self._pid(number))
        self._stopped.add(number)

    def go_on(self, number: int) -> None:
        """Send SIGCONT: the server goes on with its old state, and lags."""
        self._stopped.discard(number)
        os.kill(self._pid(number), signal.SIGCONT)

    def _pid(self, number: int) -> int:
        pid = self.servers[number].pid
        assert pid is not None
        return pid

    async def leader(self, nc: Client, stream: str = "EV") -> int:
        """Wait until a stream has a leader and all replicas are up to date or gone. Return the number of the leader."""

        async def name() -> str:
            return str(((await self._info(nc, stream)).get("cluster") or {}).get("leader") or "")

        return int((await eventually(name, within_s=READY_S))[1:])

    async def step_down(self, nc: Client, stream: str = "EV") -> None:
        """Make the stream's leader step down."""
        await nc.request(f"$JS.API.STREAM.LEADER.STEPDOWN.{stream}", timeout=_ASK_S)

    async def whole(self, nc: Client, stream: str = "EV") -> None:
        """Wait until every replica of a stream is present and up to date."""

        async def follow() -> bool:
            replicas = ((await self._info(nc, stream)).get("cluster") or {}).get("replicas") or []
            return len(replicas) == SERVERS - 1 and all(one["current"] and not one.get("offline") for one in replicas)

        await eventually(follow, within_s=READY_S)

    async def _info(self, nc: Client, stream: str) -> dict[str, Any]:
        try:
            return dict(json.loads((await nc.request(f"$JS.API.STREAM.INFO.{stream}", timeout=_ASK_S)).data))
        except (NatsError, TimeoutError):
            return {}

    async def _ready(self) -> None:
        async with asyncio.timeout(READY_S):
            for server in self.servers:
                await eventually(server.answers)
            nc = await nats.connect(self.urls, error_cb=_quiet)
            try:
                while True:
                    # A stream of three replicas can be made only once all three servers know one another.
                    try:
                        js = nc.jetstream(timeout=_ASK_S)
                        await js.add_stream(name="READY", subjects=["ready"], num_replicas=SERVERS)
                        await js.delete_stream("READY")
                    except (NatsError, TimeoutError):
                        await asyncio.sleep(_LOOK_S)
                    else:
                        return
            finally:
                await nc.close()


@asynccontextmanager
async def connected(urls: str | list[str], **options: Any) -> AsyncIterator[Client]:
    """Connect without reporting the errors that these tests cause."""
    client = await nats.connect(urls, error_cb=_quiet, reconnect_time_wait=0.02, max_reconnect_attempts=-1, **options)
    try:
        yield client
    finally:
        await client.close()


async def _quiet(_: Exception) -> None:
    """Ignore the connection errors that these tests cause."""


def _free_ports(count: int) -> list[int]:
    with ExitStack() as held:
        probes = [held.enter_context(socket.socket()) for _ in range(count)]
        for probe in probes:
            probe.bind((LOOPBACK, 0))
        return [int(probe.getsockname()[1]) for probe in probes]
