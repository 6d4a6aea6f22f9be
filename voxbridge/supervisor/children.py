"""The processes that the supervisor starts: a service from a command, or an embedded server.

Owns how a process is started, how its output is kept and how its whole group is ended. Does not own when. The kernel kills a child started
here when the supervisor dies, so a crash here leaves nothing running.
"""

from __future__ import annotations

import asyncio
import os
import signal
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, BinaryIO, Final, Protocol

from voxbridge.shared.embedded.child import die_with_parent, end_group
from voxbridge.shared.embedded.servers import EmbeddedServer
from voxbridge.supervisor.logfile import LogFile

MAX_LINE: Final = 64 * 1024
LAST_WORDS: Final = 5
PIPE_S: Final = 0.5

Say = Callable[[str], None]
Probe = Callable[[], Awaitable[bool]]


class Child(Protocol):
    """A running process."""

    pid: int

    async def wait(self) -> int:
        """Return its exit code once it has ended and its output is kept; negative for a signal."""

    def last_words(self) -> str:
        """Return the end of its output, for the message that it died."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """A program to keep running. `ready` is its probe; a program without one is ready once started."""

    name: str
    spawn: Callable[[], Awaitable[Child]]
    ready: Probe | None = None
    server: bool = False
    """Started before the others and stopped after them."""
    why: Callable[[], str] = lambda: ""
    """Returns the reason why the program was not ready when it was last probed, or an empty string."""
    ended: Callable[[], Coroutine[Any, Any, None]] | None = None
    """Called as soon as one of its processes has ended."""
    standby: Standing | None = None
    """Keeps a process on standby for the program."""


class Standing(Protocol):
    """Holder of a process that stands by for a program, from which `Program.spawn` starts the program."""

    def prepare(self) -> None:
        """Start a process on standby if there is none; returns at once."""

    async def close(self) -> None:
        """End the process on standby, and prepare no further one."""


class Command:
    """A process started from a command."""

    def __init__(
        self,
        process: asyncio.subprocess.Process,
        output: asyncio.StreamReader,
        pipe: asyncio.ReadTransport,
        log: LogFile,
        on_error: Say,
        go: BinaryIO | None = None,
    ) -> None:
        self.pid = process.pid
        self._process = process
        self._go = go
        self._output = output
        self._pipe = pipe
        self._log = log
        self._on_error = on_error
        self._last: deque[str] = deque(maxlen=LAST_WORDS)
        self._pump = asyncio.create_task(self._keep_output())

    @property
    def ended(self) -> bool:
        """True if the process is known to have ended."""
        return self._process.returncode is not None

    def begin(self) -> None:
        """Tell a process on standby to begin. Raises `OSError` if it is gone."""
        go, self._go = self._go, None
        if go is not None:
            with go:
                go.write(b"\n")

    async def wait(self) -> int:
        """Return its exit code once it has ended and its output is kept."""
        code = await self._process.wait()
        end_group(self.pid, signal.SIGKILL)  # its own children must not outlive it, nor hold its output open
        with suppress(TimeoutError):  # a process that left the group may hold the pipe forever
            async with asyncio.timeout(PIPE_S):
                await self._pump
        self._pipe.close()
        self._log.close()
        if self._go is not None:
            self._go.close()
        return code

    def last_words(self) -> str:
        """Return the last line that it wrote."""
        return self._last[-1] if self._last else ""

    async def _keep_output(self) -> None:
        full = False
        while True:
            try:
                line = await self._output.readline()
            except ValueError:  # longer than the buffer: the line is dropped, and reading goes on after it
                continue
            if not line:
                return
            text = line.decode(errors="replace").rstrip()
            if text:
                self._last.append(text)
            if " error " in text[:200] or text.startswith("Traceback"):
                self._on_error(text)
            try:
                self._log.write(line)
                full = False
            except OSError as error:
                if not full:
                    self._on_error(f"{self._log.path} cannot be written: {error.strerror}.")
                full = True


async def start_command(command: Sequence[str], env: Mapping[str, str], log: LogFile, on_error: Say, *, waits: bool = False) -> Command:
    """Start a command in a process group of its own. Its lines go to `log`, and error lines to `on_error` too. With `waits` the command
    reads a line before it begins, which `Command.begin` writes. Raises `OSError`."""
    # A pipe of our own: with asyncio's, the end of a process goes unnoticed while one of its children holds its output open.
    ours, theirs = os.pipe()
    reading = os.fdopen(ours, "rb", buffering=0)
    stdin, go = os.pipe() if waits else (os.open(os.devnull, os.O_RDONLY), -1)
    writing = os.fdopen(go, "wb", buffering=0) if waits else None
    try:
        process = await asyncio.create_subprocess_exec(
            *command, env=env, stdin=stdin, stdout=theirs, stderr=theirs, start_new_session=True, preexec_fn=die_with_parent()
        )
    except BaseException:
        reading.close()
        if writing is not None:
            writing.close()
        raise
    finally:
        os.close(theirs)
        os.close(stdin)
    output = asyncio.StreamReader(limit=MAX_LINE)
    pipe, _ = await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(output), reading)
    return Command(process, output, pipe, log, on_error, writing)


class _Server:
    def __init__(self, server: EmbeddedServer, threads: ThreadPoolExecutor) -> None:
        self._server = server
        self._process = server.spawn()
        self._threads = threads
        self.pid = self._process.pid

    async def wait(self) -> int:
        return await asyncio.get_running_loop().run_in_executor(self._threads, self._process.wait)

    def last_words(self) -> str:
        return self._server.last_words()


def embedded(server: EmbeddedServer) -> Program:
    """Return an embedded server as a program; raises `StartError` from `spawn`.

    A server whose disk was full does not always write again by itself: it is ended once there is room, and so started again.
    """
    threads = ThreadPoolExecutor(2, thread_name_prefix=server.name)
    ailment = ""

    async def spawn() -> Child:
        return _Server(server, threads)

    def look() -> bool:
        nonlocal ailment
        if not server.answers():
            ailment = ""
            return False
        ailment = server.ailment()
        if "write error" in ailment and server.has_room() and (pid := server.pid) is not None:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGTERM)
        return not ailment

    async def ready() -> bool:
        return await asyncio.get_running_loop().run_in_executor(threads, look)

    return Program(name=server.name, spawn=spawn, ready=ready, server=True, why=lambda: ailment)


def how_it_ended(code: int) -> str:
    """Return `ended with code 3`, or `was killed by SIGKILL`."""
    if code >= 0:
        return f"ended with code {code}"
    try:
        return f"was killed by {signal.Signals(-code).name}"
    except ValueError:
        return f"was killed by signal {-code}"


def child_environment(settings: Mapping[str, str], prefix: str) -> dict[str, str]:
    """Return this process's environment with `settings` in place of all variables that begin with `prefix`."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(prefix)}
    return {**kept, **settings, "PYTHONUNBUFFERED": "1"}
