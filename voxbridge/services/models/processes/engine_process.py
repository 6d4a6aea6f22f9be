"""An engine in its own process that is kept alive: adopted or started, awaited until it serves, started again when it ends.

Owns when an engine's process runs; the engine's class defines its command and how to check that it serves. When this service is killed, its
engines go on under their keepers, and the next service adopts them while they are warm.
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import socket
import subprocess
import sys
from abc import ABC, abstractmethod
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import Final

import httpx
import msgspec

from voxbridge.services.models.processes.home import Home, Record
from voxbridge.shared.errors import Unavailable

STOP_TIMEOUT_S: Final = 2.0
RESTART_PAUSE_S: Final = 0.5
PROBE_S: Final = 0.02

_log = logging.getLogger(__name__)


class Launch(msgspec.Struct, frozen=True, kw_only=True):
    """A start of an engine: its command, its first input, the address where it will listen, and its key."""

    command: tuple[str, ...]
    url: str
    key: str = ""
    input: bytes = b""


class Child(ABC):
    """An engine's process. Subclasses define the command and the check that it serves."""

    name: str
    start_timeout_s: float = 60.0

    def __init__(self, home: Home) -> None:
        self.restarts = 0
        self.url = ""
        self.key = ""
        self._home = home
        self._up = asyncio.Event()
        self._keeper: _Process | None = None
        self._watch: asyncio.Task[None] | None = None

    @abstractmethod
    def identity(self) -> tuple[object, ...]:
        """Return all that distinguishes one engine from another: code, weights, settings. A different engine is not adopted."""

    @abstractmethod
    def launch(self) -> Launch:
        """Return the command and address of a new start."""

    @abstractmethod
    async def serves(self) -> bool:
        """Tell whether the engine at `url` serves. Raises `UNAVAILABLE` when it never will, `httpx.TransportError` when not yet."""

    @property
    def pid(self) -> int | None:
        """Process id of the keeper while it runs."""
        return self._keeper.pid if self._keeper else None

    async def start(self) -> None:
        """Adopt the engine of a service that died, or start one, and wait until it serves. Raises `UNAVAILABLE`."""
        if not await self._adopt():
            try:
                await self._spawn()
            except BaseException:
                await self._stop()
                raise
        self._watch = asyncio.create_task(self._keep(), name=f"{self.name}-watch")

    async def up(self) -> None:
        """Wait until the process serves. Raises `UNAVAILABLE` after `start_timeout_s`."""
        try:
            async with asyncio.timeout(self.start_timeout_s):
                await self._up.wait()
        except TimeoutError as error:
            raise Unavailable(f"{self.name} has not come back within {self.start_timeout_s:.0f} s.") from error

    async def close(self) -> None:
        """Stop the process."""
        if self._watch:
            self._watch.cancel()
            with suppress(asyncio.CancelledError):
                await self._watch
        await self._stop()

    async def _adopt(self) -> bool:
        record = self._home.record(self.name)
        if record is None:
            return False
        process = _Process.found(record.pid, self._home.folder)
        if process is None:
            return False
        self._keeper, self.url, self.key = process, record.url, record.key
        if record.identity == self._identity():
            try:
                await self._until_it_serves(process)
            except Unavailable as error:
                _log.warning("%s is not adopted: %s", self.name, error.message)
            else:
                _log.info("%s is adopted", self.name)
                return True
        await self._stop()
        return False

    async def _spawn(self) -> None:
        launch = self.launch()
        self._home.said(self.name)  # discards the output of an earlier run
        self.url, self.key = launch.url, launch.key
        keeper = [sys.executable, "-m", "voxbridge.services.models.processes.keeper", str(self._home.folder), self.name, str(os.getppid())]
        process = self._keeper = _Process.started([*keeper, *launch.command], launch.input)
        await self._until_it_serves(process)
        try:
            self._home.remember(self.name, Record(pid=process.pid, identity=self._identity(), url=self.url, key=self.key))
        except OSError as error:
            _log.warning("%s is loaded anew when this service is started again: %s", self.name, error)

    async def _until_it_serves(self, process: _Process) -> None:
        serving = asyncio.create_task(self._probe())
        ended = asyncio.create_task(process.wait())
        try:
            await asyncio.wait((serving, ended), timeout=self.start_timeout_s, return_when=asyncio.FIRST_COMPLETED)
            if serving.done():
                serving.result()
            elif ended.done():
                raise Unavailable(f"{self.name} ended at its start: {self._home.said(self.name) or 'it said nothing.'}")
            else:
                raise Unavailable(f"{self.name} did not serve within {self.start_timeout_s:.0f} s of its start.")
        finally:
            for task in (serving, ended):
                task.cancel()
        self._up.set()

    async def _probe(self) -> None:
        while True:
            try:
                if await self.serves():
                    return
            except httpx.TransportError:
                pass
            await asyncio.sleep(PROBE_S)

    async def _keep(self) -> None:
        while True:
            if self._keeper is not None:
                await self._keeper.wait()
                _log.warning("%s ended and is started again: %s", self.name, self._home.said(self.name) or "it said nothing.")
            self._up.clear()
            self.restarts += 1
            await self._stop()
            try:
                await self._spawn()
            except Unavailable as error:
                _log.warning("%s", error.message)
                await self._stop()
                await asyncio.sleep(RESTART_PAUSE_S)

    async def _stop(self) -> None:
        process, self._keeper = self._keeper, None
        if process is None:
            return
        self._home.forget(self.name)
        process.signal(signal.SIGTERM)
        try:
            async with asyncio.timeout(STOP_TIMEOUT_S):
                await process.wait()
        except TimeoutError:
            process.signal(signal.SIGKILL)
            await process.wait()
        process.close()

    def _identity(self) -> str:
        return sha256(repr(self.identity()).encode()).hexdigest()


class _Process:
    """A keeper's process, started or found, held by a pidfd, which never refers to another process."""

    def __init__(self, pid: int, descriptor: int, started: subprocess.Popen[bytes] | None = None) -> None:
        self.pid = pid
        self._descriptor = descriptor
        self._started = started

    @classmethod
    def started(cls, command: list[str], first: bytes) -> _Process:
        process = subprocess.Popen(command, stdin=subprocess.PIPE, start_new_session=True)
        if process.stdin is not None:
            with suppress(BrokenPipeError), process.stdin as stdin:
                stdin.write(first)
        return cls(process.pid, os.pidfd_open(process.pid), process)

    @classmethod
    def found(cls, pid: int, folder: Path) -> _Process | None:
        try:
            descriptor = os.pidfd_open(pid)
        except OSError:
            return None
        try:
            command = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
        except OSError:
            command = []
        if b"voxbridge.services.models.processes.keeper" in command and os.fsencode(folder) in command:
            return cls(pid, descriptor)
        os.close(descriptor)
        return None

    async def wait(self) -> None:
        """Wait until it has ended."""
        loop = asyncio.get_running_loop()
        ended = asyncio.Event()
        descriptor = os.dup(self._descriptor)  # one for each waiter: a loop has one reader for each descriptor
        loop.add_reader(descriptor, ended.set)
        try:
            await ended.wait()
        finally:
            loop.remove_reader(descriptor)
            os.close(descriptor)
        if self._started is not None:
            self._started.wait()

    def signal(self, number: signal.Signals) -> None:
        with suppress(ProcessLookupError):
            signal.pidfd_send_signal(self._descriptor, number)

    def close(self) -> None:
        os.close(self._descriptor)


def free_port() -> int:
    """Return a loopback port that is free now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def fingerprint(path: Path) -> tuple[str, int, int]:
    """Identify a file without reading it: by its path, size and modification time."""
    stat = path.stat()
    return str(path), stat.st_size, stat.st_mtime_ns
