"""The connection to Valkey when its server is no longer the primary: two real servers, and an address that changes over."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote, urlsplit

import pytest
from redis.asyncio import Redis
from redis.exceptions import ReadOnlyError

from tests.eventually import eventually
from tests.ports import free_port
from voxbridge.shared.embedded.valkey_server import ValkeyServer
from voxbridge.shared.store.connection import RETRIES, connect_redis


@dataclass
class Pair:
    """A primary and its replica, each with a port for the other, and the clients' address of the current primary."""

    servers: list[ValkeyServer]
    direct: list[Redis]
    ports: list[int]
    name: Path

    @property
    def url(self) -> str:
        return f"unix://{quote(str(self.name))}?db=0"

    def leads_to(self, number: int) -> None:
        """Make the address lead to this server."""
        fresh = self.name.with_suffix(".new")
        fresh.symlink_to(self.servers[number].socket)
        fresh.replace(self.name)

    async def follows(self, follower: int, leader: int) -> None:
        """Make one server the replica of the other, and wait until it is in sync."""
        if await self._role(leader) != "master":
            await self.direct[leader].replicaof("NO", "ONE")
        await self.direct[follower].replicaof("127.0.0.1", str(self.ports[leader]))

        async def holds() -> bool:
            return (await self.direct[follower].info("replication")).get("master_link_status") == "up"

        await eventually(holds)

    async def _role(self, number: int) -> str:
        return str((await self.direct[number].info("replication"))["role"])


@asynccontextmanager
async def paired(own_valkey: Callable[[], ValkeyServer], folder: Path) -> AsyncIterator[Pair]:
    async with AsyncExitStack() as stack:
        servers = [own_valkey(), own_valkey()]
        secret = [str(urlsplit(server.url).password) for server in servers]
        direct = [await stack.enter_async_context(Redis.from_url(server.url, decode_responses=True)) for server in servers]
        ports = [free_port(), free_port()]
        for number in (0, 1):
            settings = {"port": ports[number], "requirepass": secret[0], "masterauth": secret[0], "repl-diskless-sync-delay": 0}
            for name, value in settings.items():
                await direct[number].config_set(name, str(value))
        direct[1] = await stack.enter_async_context(
            Redis.from_url(f"unix://:{secret[0]}@{quote(str(servers[1].socket))}?db=0", decode_responses=True)
        )
        password = folder / "password"
        password.write_text(secret[0])
        pair = Pair(servers, direct, ports, folder / "primary.sock")
        pair.leads_to(0)
        await pair.follows(1, 0)
        yield pair


async def test_a_client_leaves_a_server_that_was_demoted_for_the_one_that_its_name_leads_to(
    own_valkey: Callable[[], ValkeyServer], tmp_path: Path
) -> None:
    async with paired(own_valkey, tmp_path) as pair:
        client = await connect_redis(pair.url, password_file=str(tmp_path / "password"))
        try:
            # Opens several connections, all to the first server.
            await asyncio.gather(*(client.set(f"before:{number}", number) for number in range(8)))
            await pair.follows(0, 1)
            pair.leads_to(1)
            assert await client.set("after", "written")
            assert await pair.direct[1].get("after") == "written"
            script = client.register_script("return redis.call('SET', KEYS[1], ARGV[1])")
            assert await script(keys=["by script"], args=["written"])
            async with client.pipeline(transaction=True) as pipeline:
                pipeline.set("in", "one")
                pipeline.set("a", "transaction")
                await pipeline.execute()
            assert await pair.direct[1].mget("by script", "in", "a", "before:7") == ["written", "one", "transaction", "7"]
        finally:
            await client.aclose()


async def test_a_server_that_stays_a_replica_is_said_after_the_last_try(
    own_valkey: Callable[[], ValkeyServer], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with paired(own_valkey, tmp_path) as pair:
        client = await connect_redis(pair.url, password_file=str(tmp_path / "password"))
        try:
            await pair.follows(0, 1)
            with pytest.raises(ReadOnlyError):
                await client.set("key", "value")
            assert len([one for one in caplog.messages if "takes no writes" in one]) == RETRIES + 1
            await pair.direct[1].set("key", "of the new primary")
            pair.leads_to(1)
            assert await client.get("key") == "of the new primary"
            assert await client.set("key", "value")
        finally:
            await client.aclose()
