"""A child process that is kept alive: started, awaited until it serves, started again when it ends, stopped with the service.

Owns the process and its restarts; what it is, where it listens and how to tell that it serves is the engine's to say. A crash
here ends the child too.
"""

from __future__ import annotations

import asyncio
import logging
from abc import ABC, abstractmethod
from collections import deque
from contextlib import suppress
from typing import Final

from shared.child import die_with_parent
from shared.errors import Unavailable

STOP_TIMEOUT_S: Final = 2.0
RESTART_PAUSE_S: Final = 0.5

_log = logging.getLogger(__name__)


class Child(ABC):
    """Subclasses say the command and what being up means."""

    name: str
    start_timeout_s: float = 60.0

    def __init__(self) -> None:
        self.restarts = 0
        self._up = asyncio.Event()
        self._process: asyncio.subprocess.Process | None = None
        self._keeper: asyncio.Task[None] | None = None
        self._reader: asyncio.Task[None] | None = None
        self._last_words: deque[str] = deque(maxlen=20)

    @abstractmethod
    def command(self) -> list[str]:
        """The program and its arguments, made anew for each start."""

    @abstractmethod
    async def become_ready(self, process: asyncio.subprocess.Process) -> None:
        """Return when the process serves; it may end meanwhile. Raises `UNAVAILABLE`."""

    @property
    def pid(self) -> int | None:
        """The process id while it runs."""
        return self._process.pid if self._process and self._process.returncode is None else None

    async def start(self) -> None:
        """Start the process and wait until it serves; raises `UNAVAILABLE`."""
        try:
            await self._spawn()
        except BaseException:
            await self._stop()
            raise
        self._keeper = asyncio.create_task(self._keep(), name=f"{self.name}-keeper")

    async def up(self) -> None:
        """Wait until the process serves; raises `UNAVAILABLE` after the time of a start."""
        try:
            await asyncio.wait_for(self._up.wait(), self.start_timeout_s)
        except TimeoutError as error:
            raise Unavailable(f"{self.name} has not come back within {self.start_timeout_s:.0f} s.") from error

    async def close(self) -> None:
        """Stop the process."""
        if self._keeper:
            self._keeper.cancel()
            with suppress(asyncio.CancelledError):
                await self._keeper
        await self._stop()

    async def _spawn(self) -> None:
        pipe = asyncio.subprocess.PIPE
        process = self._process = await asyncio.create_subprocess_exec(
            *self.command(), stdin=pipe, stdout=pipe, stderr=pipe, preexec_fn=die_with_parent()
        )
        if process.stderr:
            self._reader = asyncio.create_task(self._read(process.stderr), name=f"{self.name}-stderr")
        ready = asyncio.create_task(self.become_ready(process))
        ended = asyncio.create_task(process.wait())
        try:
            await asyncio.wait((ready, ended), timeout=self.start_timeout_s, return_when=asyncio.FIRST_COMPLETED)
            if ready.done():
                ready.result()
            elif ended.done():
                if self._reader:
                    await self._reader
                raise Unavailable(f"{self.name} ended with status {ended.result()} at its start: {self._said()}")
            else:
                raise Unavailable(f"{self.name} did not serve within {self.start_timeout_s:.0f} s of its start: {self._said()}")
        finally:
            for task in (ready, ended):
                task.cancel()
        self._up.set()

    def _said(self) -> str:
        return " ".join(list(self._last_words)[-2:]) or "it said nothing."

    async def _read(self, stderr: asyncio.StreamReader) -> None:
        async for line in stderr:
            self._last_words.append(line.decode(errors="replace").strip())

    async def _keep(self) -> None:
        while True:
            if self._process is not None:
                status = await self._process.wait()
                _log.warning("%s ended with status %s and is started again", self.name, status)
            self._up.clear()
            self.restarts += 1
            try:
                await self._spawn()
            except Unavailable as error:
                _log.warning("%s", error.message)
                await self._stop()
                await asyncio.sleep(RESTART_PAUSE_S)

    async def _stop(self) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        if process.returncode is None:
            process.terminate()
            try:
                await asyncio.wait_for(process.wait(), STOP_TIMEOUT_S)
            except TimeoutError:
                process.kill()
                await process.wait()
        if self._reader:
            await self._reader
