"""Gateways as separate processes, for tests that kill them."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from asyncio.subprocess import Process
from collections.abc import Mapping
from contextlib import AsyncExitStack, suppress
from pathlib import Path
from typing import Any

import redis.asyncio

from tests.eventually import BOUND_S
from tests.gateway.conftest import Address
from tests.ports import free_port
from voxbridge.shared.store.connection import connect_redis
from voxbridge.shared.store.store import Store


class GatewayProcess(Address):
    """A gateway process. `name` is its process id in the log and in Valkey."""

    def __init__(self, process: Process, port: int, name: str) -> None:
        super().__init__(port)
        self.name = name
        self._process = process

    def kill(self) -> None:
        """Send SIGKILL, as in a crash."""
        self._process.send_signal(signal.SIGKILL)

    async def killed(self) -> bool:
        """Wait for its end; return whether that was SIGKILL."""
        return await asyncio.wait_for(self._process.wait(), BOUND_S) == -signal.SIGKILL


class Processes:
    """Starter of gateways over one NATS and one Valkey; all are ended after the test."""

    def __init__(self, folder: Path, nats_url: str, redis_url: str) -> None:
        self._folder = folder
        self._env = {name: value for name, value in os.environ.items() if not name.startswith("VOXBRIDGE_")} | {
            "VOXBRIDGE_NATS_URL": nats_url,
            "VOXBRIDGE_REDIS_URL": redis_url,
            "VOXBRIDGE_DATA_DIR": str(folder),
        }
        self._redis_url = redis_url
        self._stack = AsyncExitStack()
        self.store: Store

    async def __aenter__(self) -> Processes:
        client: redis.asyncio.Redis = await connect_redis(self._redis_url)
        self._stack.push_async_callback(client.aclose)
        self.store = Store(client)
        return self

    async def __aexit__(self, *_: Any) -> None:
        await self._stack.aclose()

    async def gateway(self, port: int = 0, *, module: str = "voxbridge.services.gateway", more: Mapping[str, str] = {}) -> GatewayProcess:
        """Start a gateway, with `more` in its environment, and wait until it accepts connections and has registered itself."""
        port = port or free_port()
        known = await self._living()
        env = {**self._env, "VOXBRIDGE_PORT": str(port), "VOXBRIDGE_MODELS_PORT": str(free_port()), **more}
        output = (self._folder / f"gateway-{port}").open("ab")
        self._stack.callback(output.close)
        process = await asyncio.create_subprocess_exec(sys.executable, "-m", module, env=env, stdout=output, stderr=output)
        self._stack.push_async_callback(_end, process)
        async with asyncio.timeout(6 * BOUND_S):
            while True:
                assert process.returncode is None, (self._folder / f"gateway-{port}").read_text()
                names = await self._living() - known
                with suppress(OSError):
                    _, writer = await asyncio.open_connection("127.0.0.1", port)
                    writer.close()
                    await writer.wait_closed()
                    if names:
                        return GatewayProcess(process, port, names.pop())
                await asyncio.sleep(0.02)

    async def _living(self) -> set[str]:
        found = [key async for key in self.store.redis.scan_iter("vx:gateway:*")]
        return {(key.decode() if isinstance(key, bytes) else key).removeprefix("vx:gateway:") for key in found}


async def _end(process: Process) -> None:
    if process.returncode is None:
        process.kill()
    await process.wait()
