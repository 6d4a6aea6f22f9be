"""The product, started for a measurement: a nats-server, a Valkey and one process per service, on loopback, in a folder that is removed.

Owns the processes and their settings. If the benchmark crashes, they all end.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import ExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import msgspec
import nats
import psutil
from nats.aio.msg import Msg

from voxbridge.installation.streams import make_streams
from voxbridge.shared.bus.permissions import RIGHTS
from voxbridge.shared.config import Config
from voxbridge.shared.embedded.child import die_with_parent
from voxbridge.shared.embedded.nats_server import NatsServer
from voxbridge.shared.embedded.servers import port_is_free
from voxbridge.shared.embedded.valkey_server import ValkeyServer
from voxbridge.shared.setting import PREFIX
from voxbridge.supervisor.probes import Probes

ROOT: Final = Path(__file__).resolve().parent.parent
READY_S: Final = 180.0
"""Seconds until the services must be ready: the models are read from disk."""
LIGHT: Final = ("tools", "voice", "gateway")
FULL: Final = ("models", *LIGHT)
ANSWER_S: Final = 0.2
"""Seconds that answers of processes are awaited."""

_STOP_S: Final = 9.0


class StackError(Exception):
    """A part of the product that did not start; the message names it and shows its last output."""


@dataclass(frozen=True, slots=True)
class Stack:
    """A running product."""

    config: Config
    processes: Mapping[str, psutil.Process]
    """Processes by name: `nats`, `valkey` and the services."""

    start: Callable[[str], Awaitable[psutil.Process]]
    """Start one more process of a service; returns when it is ready. Raises `StackError`."""

    @property
    def url(self) -> str:
        """URL of the VOX socket."""
        return f"ws://127.0.0.1:{self.config.port}/ws/vox"

    def pids(self, *names: str) -> dict[str, list[int]]:
        """Return the process ids of these names (of all names without any), each with its children."""
        chosen = names or tuple(self.processes)
        return {name: [p.pid for p in (self.processes[name], *self.processes[name].children(recursive=True))] for name in chosen}

    def memory(self) -> dict[str, int]:
        """Return the proportional set size of each process and its children in bytes."""
        return {name: sum(psutil.Process(pid).memory_full_info().pss for pid in pids) for name, pids in self.pids().items()}


@asynccontextmanager
async def stack(
    services: Sequence[str], *, greeting: bool = True, models_url: str = "", extra: Mapping[str, str] | None = None
) -> AsyncIterator[Stack]:
    """Start the product, with `extra` in its environment, and wait until every part is ready; raises `StackError`.

    It is stopped and its folder removed at the end."""
    folder = Path(tempfile.mkdtemp(prefix="voxbridge-bench-"))
    try:
        with ExitStack() as running:
            nats = running.enter_context(NatsServer(folder / "nats"))
            valkey = running.enter_context(ValkeyServer(folder / "valkey"))
            usual = Config()
            config = replace(
                usual,
                nats_url=nats.url,
                redis_url=valkey.url,
                data_dir=folder,
                port=free_port(),
                models_port=free_port(),
                models_url=models_url,
                max_sessions=4_000,
                starts_per_s=10_000,
                greeting=usual.greeting if greeting else "",
                log_level="warning",
            )
            env = {**child_environment(), **config.as_env(), **(extra or {})}
            if not greeting:
                env[f"{PREFIX}GREETING"] = ""
            await make_streams(config)

            def child(name: str) -> Child:
                signed = {f"{PREFIX}NATS_URL": nats.url_of(name)} if name in RIGHTS else {}
                return Child(name, [f"voxbridge.services.{name}"], {**env, **signed}, folder)

            children = {name: running.enter_context(child(name)) for name in services}
            await _until_ready(config, children)
            pids = {"nats": nats.pid, "valkey": valkey.pid, **{name: child.pid for name, child in children.items()}}

            async def start(name: str) -> psutil.Process:
                before = await _on_the_bus(config.nats_url, name)
                started = running.enter_context(child(name))
                await _until_ready(config, {name: started})
                # The readiness check is also answered by processes that ran before, so wait for a new id on the bus.
                end = time.monotonic() + READY_S
                while not await _on_the_bus(config.nats_url, name) - before:
                    started.check()
                    if time.monotonic() > end:
                        raise StackError(f"{name} was not on the bus within {READY_S:g} s.")
                return psutil.Process(started.pid)

            yield Stack(config, {name: psutil.Process(pid) for name, pid in pids.items()}, start)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@asynccontextmanager
async def bare_echo() -> AsyncIterator[tuple[str, psutil.Process]]:
    """Run the baseline; yield its URL and its process."""
    port = free_port()
    with ExitStack() as running:
        folder = running.enter_context(tempfile.TemporaryDirectory(prefix="voxbridge-bench-"))
        child = running.enter_context(Child("bare", ["bench.clients.bare", str(port)], child_environment(), Path(folder)))
        await listening(port, child, READY_S)
        yield f"ws://127.0.0.1:{port}/echo", psutil.Process(child.pid)


async def listening(port: int, child: Child, within_s: float) -> None:
    """Wait until a process accepts connections; raises `StackError`."""
    end = time.monotonic() + within_s
    while port_is_free(port):
        child.check()
        if time.monotonic() > end:
            raise StackError(f"{child.name} did not start.")
        await asyncio.sleep(0.05)


class Child:
    """A Python module as a separate process, ended with this one."""

    def __init__(self, name: str, module: Sequence[str], env: Mapping[str, str], folder: Path) -> None:
        self.name = name
        self._module = module
        self.said = folder / f"{name}.log"
        self._env = env
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int:
        """Process id. Raises `StackError` when it does not run."""
        if self._process is None:
            raise StackError(f"{self.name} is not running.")
        return self._process.pid

    def check(self) -> None:
        """Raise `StackError` with its last output when it has ended."""
        if self._process is not None and self._process.poll() is not None:
            words = self.said.read_text(errors="replace").strip().splitlines()[-5:]
            raise StackError(f"{self.name} ended with code {self._process.returncode}: {' | '.join(words)}")

    def __enter__(self) -> Child:
        with self.said.open("wb") as said:
            self._process = subprocess.Popen(
                [sys.executable, "-m", *self._module],
                cwd=ROOT,
                env=dict(self._env),
                stdin=subprocess.DEVNULL,
                stdout=said,
                stderr=said,
                preexec_fn=die_with_parent(),  # noqa: PLW1509 - one system call, looked up before the fork
            )
        return self

    def __exit__(self, *_: object) -> None:
        process = self._process
        if process is not None:
            process.terminate()
            try:
                process.wait(_STOP_S)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


async def _until_ready(config: Config, children: Mapping[str, Child]) -> None:
    probes = Probes(config.nats_url)
    asks: dict[str, Callable[[], Awaitable[bool]]] = {
        "models": probes.http(f"http://127.0.0.1:{config.models_port}/readyz"),
        "knowledge": probes.bus("knowledge"),
        "tools": probes.bus("tools"),
        "voice": probes.bus("voice"),
        "terminals": probes.bus("terminals"),
        "gateway": probes.http(f"http://127.0.0.1:{config.port}/healthz"),
    }
    end = time.monotonic() + READY_S
    try:
        for name, child in children.items():
            while not await asks[name]():
                child.check()
                if time.monotonic() > end:
                    raise StackError(f"{name} was not ready within {READY_S:g} s.")
                await asyncio.sleep(0.1)
    finally:
        await probes.close()


async def _on_the_bus(nats_url: str, name: str) -> set[str]:
    """Return the processes of a service that answer within `ANSWER_S`."""
    nc = await nats.connect(nats_url)
    found: set[str] = set()

    async def take(message: Msg) -> None:
        if message.data:  # an empty message means "no responders"
            found.add(msgspec.json.decode(message.data, type=dict[str, Any])["id"])

    try:
        inbox = nc.new_inbox()
        await nc.subscribe(inbox, cb=take)
        await nc.publish(f"$SRV.PING.voxbridge-{name}", b"", reply=inbox)
        await asyncio.sleep(ANSWER_S)
    finally:
        await nc.close()
    return found


def free_port() -> int:
    """Return a loopback port that is free now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def child_environment() -> dict[str, str]:
    """Return this process's environment without the settings of an installation, except the location of the models."""
    kept = (f"{PREFIX}MODELS_DIR", f"{PREFIX}MODELS_SET", f"{PREFIX}MODELS_SOURCE")
    return {name: value for name, value in os.environ.items() if not name.startswith(PREFIX) or name in kept}
