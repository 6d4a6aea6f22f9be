"""A real `voxbridge up` for a measurement: supervised, with its standby, in a folder that is removed; and busy loops beside it.

Owns the processes; the caller decides what happens to them. If the benchmark crashes, they all end.
"""

from __future__ import annotations

import asyncio
import json
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import ExitStack, asynccontextmanager, contextmanager, suppress
from pathlib import Path
from typing import Any, Final

import msgspec
import nats
import psutil
from nats.aio.client import Client
from nats.errors import Error as NatsError
from redis.asyncio import Redis

from bench.stack import READY_S, Child, StackError, child_environment, free_port
from voxbridge.shared.embedded.child import die_with_parent
from voxbridge.shared.service.process import health_subject
from voxbridge.shared.setting import PREFIX
from voxbridge.shared.store.store import Store

ANSWER_S: Final = 1.0
POLL_S: Final = 0.05


class Installed:
    """A running `voxbridge up`."""

    def __init__(self, port: int, up: psutil.Process, nc: Client, store: Store) -> None:
        self.port = port
        self.up = up
        self._nc = nc
        self._store = store

    @property
    def url(self) -> str:
        """URL of the VOX socket."""
        return f"ws://127.0.0.1:{self.port}/ws/vox"

    def processes(self, module: str) -> list[psutil.Process]:
        """Return the running processes of a service."""
        found = []
        for child in self.up.children():
            try:
                if any(module in part for part in child.cmdline()):  # in one part where the process stood by before
                    found.append(child)
            except psutil.Error:
                continue
        return found

    async def workers(self, count: int = 2) -> dict[str, psutil.Process]:
        """Return the voice workers by name, once so many are ready. Raises `StackError`."""
        return await self._named("voice", count)

    async def only(self, service: str) -> psutil.Process:
        """Return the process of a service that runs in one, once it is ready and the next one stands by. Raises `StackError`."""
        (found,) = (await self._named(service, 1)).values()
        end = time.monotonic() + READY_S
        while not self._stands_by(service):
            if time.monotonic() > end:
                raise StackError(f"No {service} stood by within {READY_S:g} s.")
            await asyncio.sleep(POLL_S)
        return found

    def _stands_by(self, service: str) -> bool:
        for child in self.up.children():
            with suppress(psutil.Error):
                if any(f"the next {service} stands by" in part for part in child.cmdline()):
                    return True
        return False

    async def owner(self, sid: str) -> str:
        """Return the worker that holds a session."""
        found = await self._store.redis.get(f"vx:lease:{{{sid}}}")
        return found.decode() if isinstance(found, bytes) else str(found or "")

    async def _named(self, service: str, count: int) -> dict[str, psutil.Process]:
        end = time.monotonic() + READY_S
        while time.monotonic() < end:
            found: dict[str, psutil.Process] = {}
            for process in self.processes(f"voxbridge.services.{service}"):
                try:
                    answer = await self._nc.request(health_subject(service, socket.gethostname(), process.pid), b"", timeout=ANSWER_S)
                    told: dict[str, Any] = json.loads(answer.data)
                except (NatsError, TimeoutError):
                    continue
                if told["ready"]:
                    found[str(told["process"])] = process
            if len(found) >= count:
                return found
            await asyncio.sleep(POLL_S)
        raise StackError(f"There were no {count} processes of {service} within {READY_S:g} s.")


@asynccontextmanager
async def installed(settings: Mapping[str, str]) -> AsyncIterator[Installed]:
    """Run `voxbridge up` with these settings over the defaults, and yield it when it is ready. Raises `StackError`."""
    folder = Path(tempfile.mkdtemp(prefix="voxbridge-bench-"))
    port = free_port()
    own = {"PORT": str(port), "MODELS_PORT": str(free_port()), "DATA_DIR": str(folder / "data"), "LOG_LEVEL": "info"}
    env = {**child_environment(), **{f"{PREFIX}{name}": value for name, value in own.items()}, **settings}
    try:
        with ExitStack() as running:
            child = running.enter_context(Child("up", ["voxbridge", "up"], env, folder))
            end = time.monotonic() + READY_S
            while b"Voxbridge is ready at" not in child.said.read_bytes():
                child.check()
                if time.monotonic() > end:
                    raise StackError(f"`voxbridge up` was not ready within {READY_S:g} s.")
                await asyncio.sleep(POLL_S)
            told: dict[str, Any] = msgspec.json.decode((folder / "data" / "runtime.json").read_bytes())
            nc = await nats.connect(told["nats_url"])
            try:
                async with Redis.from_url(told["redis_url"]) as redis:
                    yield Installed(port, psutil.Process(child.pid), nc, Store(redis))
            finally:
                await nc.close()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def busy(loops: int) -> Iterator[None]:
    """Run so many busy-loop processes beside the measurement."""
    running = [
        subprocess.Popen([sys.executable, "-c", "while True: pass"], preexec_fn=die_with_parent())  # noqa: PLW1509 - one system call
        for _ in range(loops)
    ]
    try:
        yield
    finally:
        for process in running:
            process.kill()
            process.wait()
