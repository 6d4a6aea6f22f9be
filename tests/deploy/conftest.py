"""A nats-server where each service is a separate user, with the permissions of the compose stack."""

from __future__ import annotations

import socket
import subprocess
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import pytest
from nats.aio.client import Client

from tests.ports import free_port
from voxbridge.installation import credentials
from voxbridge.installation import streams as installation_streams
from voxbridge.shared.bus.connection import EVENTS_PENDING, close_nats, connect_nats
from voxbridge.shared.config import Config
from voxbridge.shared.embedded.child import die_with_parent
from voxbridge.shared.embedded.nats_configuration import Place
from voxbridge.shared.embedded.nats_server import NatsServer

START_S = 10.0


@dataclass(frozen=True)
class Guarded:
    """A running server, and the folder with the credentials of all users."""

    url: str
    folder: Path

    def seed(self, name: str) -> str:
        """Return the seed file of a user."""
        return str(self.folder / name / credentials.SEED_FILE)

    def config(self, name: str, **settings: object) -> Config:
        """Return the settings of a service on this server."""
        return Config(nats_url=self.url, nats_seed_file=self.seed(name), **settings)  # type: ignore[arg-type]


@pytest.fixture
def guarded(tmp_path: Path) -> Iterator[Guarded]:
    """The server, without streams."""
    folder, port = tmp_path / "credentials", free_port()
    credentials.make(folder, sync_interval="1s", max_file_store="1GB")
    keys = {name: credentials.public_key(folder / name / credentials.SEED_FILE) for name in credentials.NAMES}
    configuration = tmp_path / "nats.conf"
    place = Place(listen=f"127.0.0.1:{port}", store=str(tmp_path / "store"), sync_interval="1s", max_file_store="1GB")
    configuration.write_text(credentials.nats_configuration(keys, place, monitor=f"127.0.0.1:{free_port()}"))
    program = NatsServer(tmp_path).command()[0]
    output = tmp_path / "nats.log"
    with output.open("wb") as said:
        server = subprocess.Popen([program, "-c", str(configuration)], stdout=said, stderr=said, preexec_fn=die_with_parent())  # noqa: PLW1509 - as the product's own children
    try:
        end = time.monotonic() + START_S
        while not _greets(port):
            assert server.poll() is None, output.read_text()
            assert time.monotonic() < end, output.read_text()
            time.sleep(0.01)
        yield Guarded(f"nats://127.0.0.1:{port}", folder)
    finally:
        server.terminate()
        server.wait(10)


def _greets(port: int) -> bool:
    try:
        with socket.create_connection(("127.0.0.1", port), 0.5) as connection:
            return connection.recv(4096).startswith(b"INFO ")
    except OSError:
        return False


@pytest.fixture
async def streams(guarded: Guarded) -> Guarded:
    """The server with its streams and consumers, made as by the admin's job."""
    await installation_streams.make_streams(guarded.config("admin"))
    return guarded


class SignIn(Protocol):
    """Connects to the server as a user."""

    async def __call__(self, name: str) -> Client: ...


@pytest.fixture
async def sign_in(streams: Guarded) -> AsyncIterator[SignIn]:
    """Connect as a user, like the services do; the connections are closed after the test."""
    async with AsyncExitStack() as open_ones:

        async def connect(name: str) -> Client:
            client = await connect_nats(
                streams.url, f"{name}-test", pending=EVENTS_PENDING, timeout_s=5, user=name, seed_file=streams.seed(name)
            )
            open_ones.push_async_callback(close_nats, client)
            return client

        yield connect
