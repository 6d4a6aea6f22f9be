"""Child processes that run isolated functions, each killed when its call ends early.

Owns their number, the queue for them, and their end. Does not own what runs in one (`voxbridge.services.tools.isolation.program`) nor the
timeouts, which cancel `run`. A lost child ends only its own call; the kernel ends all children with this process.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
import socket
import sys
from collections.abc import Coroutine, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import msgspec

from voxbridge.services.tools.core.results import RESULT_LIMIT
from voxbridge.services.tools.isolation.program import FRAME, Answered, Asked
from voxbridge.services.tools.registry import Tool
from voxbridge.shared.embedded.child import end_group
from voxbridge.shared.errors import Code, VoxbridgeError
from voxbridge.shared.events.voice import Failure

CHILDREN_LIMIT: Final = 4
"""Children of one executor, and so isolated calls that run concurrently."""
WAITING_LIMIT: Final = 64
"""Isolated calls that may wait for a child."""
START_S: Final = 10.0
"""Seconds that a child may take to load the packs."""
STATUS_S: Final = 1.0
"""Seconds that a child may run on after its socket closed."""
CALLS_LIMIT: Final = 1_000
"""Calls after which a child is replaced, so that leaks do not accumulate."""
FRAME_LIMIT: Final = 2 * RESULT_LIMIT
_ROOT: Final = Path(__file__).parents[4]

_log = logging.getLogger(__name__)


class Child:
    """A child process, and the socket to it."""

    def __init__(self, process: asyncio.subprocess.Process, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.pid = process.pid
        self.calls = 0
        self._process = process
        self._reader = reader
        self._writer = writer

    @property
    def lives(self) -> bool:
        """Tell whether it can take a call. This asks the kernel, because the event loop learns of an end late."""
        if self._process.returncode is not None or self._reader.at_eof():
            return False
        try:
            return os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None
        except ChildProcessError:  # its status was already collected
            return False

    async def ask(self, asked: Asked) -> Answered:
        """Run a call in the child. Raises `INTERRUPTED` or `TIMED_OUT` when the process ends meanwhile, `TOO_LARGE` for an oversized
        answer."""
        self.calls += 1
        payload = msgspec.msgpack.encode(asked)
        try:
            self._writer.write(FRAME.pack(len(payload)) + payload)
            await self._writer.drain()
            return msgspec.msgpack.decode(await self._read(), type=Answered)
        except (OSError, asyncio.IncompleteReadError):
            raise _died(asked, await self._status()) from None

    async def _status(self) -> int:
        try:
            async with asyncio.timeout(STATUS_S):
                return await self._process.wait()
        except TimeoutError:  # it closed its socket but still runs
            self.kill()
            return await self._process.wait()

    async def ready(self) -> None:
        """Wait until it has loaded the packs. Raises `UNAVAILABLE`."""
        try:
            async with asyncio.timeout(START_S):
                await self._read()
        except (OSError, TimeoutError, asyncio.IncompleteReadError):
            message = "A process for isolated functions could not be started; the log of the tool executor says why."
            raise VoxbridgeError(Code.UNAVAILABLE, message) from None

    def kill(self) -> None:
        """Kill it at once, together with the processes it started."""
        end_group(self.pid, signal.SIGKILL)
        self._writer.close()

    async def gone(self) -> None:
        """Wait until it has ended."""
        await self._process.wait()

    async def _read(self) -> bytes:
        (size,) = FRAME.unpack(await self._reader.readexactly(FRAME.size))
        if size > FRAME_LIMIT:
            raise VoxbridgeError(Code.TOO_LARGE, f"An isolated function answered with {size} bytes.", field="result", limit=FRAME_LIMIT)
        return await self._reader.readexactly(size)


class Children:
    """The children of one executor. One is kept ready if any function is isolated; more are started on demand, and kept."""

    def __init__(self, tools: Mapping[str, Tool]) -> None:
        self._packs = sorted({tool.run.__module__ for tool in tools.values() if tool.isolation is not None})
        self._idle: list[Child] = []
        self._all: set[Child] = set()
        self._room = asyncio.Semaphore(CHILDREN_LIMIT)
        self._waiting = 0
        self._closed = False
        self._ending: set[asyncio.Future[Any]] = set()

    def __len__(self) -> int:
        return len(self._all)

    @property
    def pids(self) -> Sequence[int]:
        """The process ids of the children."""
        return [child.pid for child in self._all]

    async def warm_up(self) -> None:
        """Have one child ready. A failure is logged, and the next call tries again."""
        if not self._packs or self._idle or self._closed or self._room.locked():
            return
        async with self._room:
            try:
                self._idle.append(await self._start())
            except (VoxbridgeError, OSError) as error:
                if not self._closed:
                    _log.warning("no process for isolated functions: %s", error)

    async def run(self, tool: Tool, arguments: dict[str, Any]) -> dict[str, Any]:
        """Run an isolated function. Cancelling this kills the child at once.

        Raises the function's error, `TOO_LARGE` and `TIMED_OUT` beyond its limits, `INTERRUPTED` when the child was lost, `OVERLOADED` and
        `UNAVAILABLE` when there was none.
        """
        limits = tool.isolation
        if limits is None:
            raise ValueError(f"{tool.name} is not isolated")
        if self._room.locked() and self._waiting >= WAITING_LIMIT:
            message = f"{WAITING_LIMIT} calls wait for a process already; try again in a moment."
            raise VoxbridgeError(Code.OVERLOADED, message, limit=WAITING_LIMIT)
        self._waiting += 1
        try:
            await self._room.acquire()
        finally:
            self._waiting -= 1
        child = await self._take()
        try:
            asked = Asked(pack=tool.run.__module__, name=tool.name, arguments=arguments, cpu_s=limits.cpu_s, memory_mb=limits.memory_mb)
            answer = await child.ask(asked)
        except BaseException:
            self._give_back(child, again=False)
            raise
        self._give_back(child, again=not answer.last and child.calls < CALLS_LIMIT)
        if answer.error is not None:
            raise _raised(answer.error)
        return answer.result or {}

    def close(self) -> None:
        """Kill all children, and start no more."""
        self._closed = True
        for child in list(self._all):
            self._end(child)

    async def stop(self) -> None:
        """Kill all children, and wait until they are gone."""
        self.close()
        while self._ending:
            await asyncio.wait(set(self._ending))

    async def _take(self) -> Child:
        """Return an idle child or start one. The caller holds a place of `_room`, which `_give_back` frees, or this method on failure."""
        while self._idle:
            child = self._idle.pop()
            if child.lives:
                return child
            self._end(child)
        starting = asyncio.ensure_future(self._start())
        try:
            return await asyncio.shield(starting)
        except asyncio.CancelledError:
            starting.add_done_callback(self._unwanted)  # it serves the next call, and its place is taken until then
            self._ending.add(starting)
            raise
        except BaseException:
            self._room.release()
            raise

    def _unwanted(self, starting: asyncio.Future[Child]) -> None:
        self._ending.discard(starting)
        if starting.cancelled() or starting.exception() is not None:
            self._room.release()
        else:
            self._give_back(starting.result(), again=True)

    def _give_back(self, child: Child, *, again: bool) -> None:
        self._room.release()
        if again and child.lives and not self._closed:
            self._idle.append(child)
        else:
            self._end(child)

    def _end(self, child: Child) -> None:
        child.kill()
        self._all.discard(child)
        if child in self._idle:
            self._idle.remove(child)
        self._do(self._replace(child))

    async def _replace(self, child: Child) -> None:
        await child.gone()
        await self.warm_up()

    async def _start(self) -> Child:
        if self._closed:
            raise VoxbridgeError(Code.UNAVAILABLE, "The tool executor is stopping.")
        ours, theirs = socket.socketpair()
        command = [sys.executable, "-m", "voxbridge.services.tools.isolation.program", str(theirs.fileno()), str(os.getpid()), *self._packs]
        with theirs:
            process = await asyncio.create_subprocess_exec(
                *command, stdin=asyncio.subprocess.DEVNULL, pass_fds=(theirs.fileno(),), env=child_environment(), start_new_session=True
            )
        reader, writer = await asyncio.open_connection(sock=ours, limit=FRAME_LIMIT)
        child = Child(process, reader, writer)
        self._all.add(child)
        if self._is_closed():
            child.kill()
        try:
            await child.ready()
        except BaseException:
            self._all.discard(child)
            child.kill()
            self._do(child.gone())
            raise
        return child

    def _is_closed(self) -> bool:
        return self._closed  # it may change at each await

    def _do(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._ending.add(task)
        task.add_done_callback(self._ending.discard)


def child_environment() -> dict[str, str]:
    """Return the environment of a child of the executor: without the settings of this process, which name its servers and secrets."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("VOXBRIDGE_")}
    paths = [str(_ROOT), *(path for path in sys.path if path), *filter(None, [kept.get("PYTHONPATH")])]
    return {**kept, "PYTHONPATH": os.pathsep.join(dict.fromkeys(paths))}


def _died(asked: Asked, status: int) -> VoxbridgeError:
    if status == -signal.SIGXCPU:
        message = f"{asked.name} used more than {asked.cpu_s} s of processor time."
        return VoxbridgeError(Code.TIMED_OUT, message, limit=asked.cpu_s, retryable=False)
    with contextlib.suppress(ValueError):
        why = signal.Signals(-status).name
        return _lost(asked, f"by {why}")
    return _lost(asked, f"with status {status}")


def _lost(asked: Asked, how: str) -> VoxbridgeError:
    message = f"The process of {asked.name} ended {how}; how far it came is not known."
    return VoxbridgeError(Code.INTERRUPTED, message, retryable=False)


def _raised(error: Failure) -> VoxbridgeError:
    return VoxbridgeError(Code(error.code), error.message, retryable=error.retryable, field=error.field or None)
