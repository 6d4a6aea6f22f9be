"""The compared systems, running: the product, a bare relay on the vendor's SDK, and the peers, each kept to one core.

Owns their processes and their core. The stand-in for Gemini and the load run on the other cores, so that they do not affect the
measurement. If the comparison crashes, all of them end.
"""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import ExitStack, asynccontextmanager, contextmanager
from pathlib import Path
from typing import Final

import msgspec
import psutil

from bench.areas.realtime import relay
from bench.peers.catalogue import Peer
from bench.peers.environment import python_of
from bench.stack import LIGHT, ROOT, Child, child_environment, free_port, listening, stack
from voxbridge.shared.embedded.child import die_with_parent

START_S: Final = 120.0
OURS: Final = "voxbridge"
RELAY: Final = "relay"
TITLES: Final = {OURS: "Voxbridge", RELAY: "google-genai relay"}


class System(msgspec.Struct, frozen=True, kw_only=True):
    """A running system. `bare` sockets take audio at once; the product's are started first."""

    name: str
    url: str
    bare: bool
    pids: Callable[[], dict[str, list[int]]]
    """Return all its process ids, by name."""

    check: Callable[[], None] = lambda: None
    """Raise `StackError` with its last output when it has ended."""


class PeerProcess(Child):
    """A module run by another environment's Python, ended with this process."""

    def __init__(self, name: str, python: Path, module: list[str], env: Mapping[str, str], folder: Path) -> None:
        super().__init__(name, module, env, folder)
        self._python = python

    def __enter__(self) -> PeerProcess:
        with self.said.open("wb") as said:
            self._process = subprocess.Popen(
                [self._python, "-m", *self._module],
                cwd=ROOT,
                env=dict(self._env),
                stdin=subprocess.DEVNULL,
                stdout=said,
                stderr=said,
                preexec_fn=die_with_parent(),  # noqa: PLW1509 - one system call, looked up before the fork
            )
        return self


@contextmanager
def on_cores(cores: set[int]) -> Iterator[None]:
    """Restrict all processes started in the block, and their children, to these cores; an empty set means no restriction."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, cores or before)
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


def cores() -> tuple[set[int], set[int]]:
    """Return the core of the systems, and those of the rest; both empty on a machine with one core."""
    first, *others = sorted(os.sched_getaffinity(0))
    return ({first}, set(others)) if others else (set(), set())


@asynccontextmanager
async def product(found: Mapping[str, str]) -> AsyncIterator[System]:
    """Run the product: nats-server, Valkey, gateway, voice and tools."""
    async with stack(LIGHT, greeting=False, extra=found) as running:
        yield System(name=OURS, url=running.url, bare=False, pids=running.pids)


@asynccontextmanager
async def sdk_relay(found: Mapping[str, str], module: str = "") -> AsyncIterator[System]:
    """Run the relay of `bench.clients.relay`, or another `module` beside it."""
    async with relay(found, f"bench.clients.relay{module}") as (url, process):
        yield System(name=RELAY, url=url, bare=True, pids=lambda: {RELAY: _tree(process.pid)})


@asynccontextmanager
async def peer(which: Peer, found: Mapping[str, str], module: str = "") -> AsyncIterator[System]:
    """Run a peer's adapter, or another `module` beside it."""
    port = free_port()
    with ExitStack() as running:
        folder = Path(running.enter_context(tempfile.TemporaryDirectory(prefix="voxbridge-bench-")))
        command = [f"bench.peers.adapters.{module or which.name}", str(port)]
        child = running.enter_context(PeerProcess(which.title, python_of(which), command, {**child_environment(), **found}, folder))
        await listening(port, child, START_S)
        pid = child.pid
        yield System(
            name=which.name, url=f"ws://127.0.0.1:{port}/echo", bare=True, pids=lambda: {which.name: _tree(pid)}, check=child.check
        )


def _tree(pid: int) -> list[int]:
    process = psutil.Process(pid)
    return [pid, *(child.pid for child in process.children(recursive=True))]
