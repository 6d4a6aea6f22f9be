"""The processes of sandboxes: a zygote that forks them, and for each a socket and a handle by which it is killed.

Owns the processes and their end, which is known from the kernel by the handle and not by an id that another process could have by then.
Does not own which session has one (`voxbridge.services.tools.sandbox.sandboxes`). If this process dies, the kernel ends the zygote and all
its children.
"""

from __future__ import annotations

import array
import asyncio
import contextlib
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path
from typing import Final

import msgspec

from voxbridge.services.tools.sandbox import frames, jail, zygote
from voxbridge.services.tools.sandbox.names import ALLOWED
from voxbridge.shared.errors import Code, VoxbridgeError

START_S: Final = 20.0
"""Seconds that the zygote may take to load."""

FORK_S: Final = 5.0
GONE_S: Final = 5.0
_ROOT: Final = Path(__file__).parents[4]


class Lost(VoxbridgeError):
    """Error of a process that ended: killed by the kernel at one of its limits, by a forbidden system call, or from outside."""

    def __init__(self, why: str) -> None:
        super().__init__(Code.INTERRUPTED, f"The sandbox's process ended: {why}.", retryable=False)
        self.why = why


class Process:
    """A process of a sandbox."""

    def __init__(self, pid: int, handle: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.pid = pid
        self._handle = handle
        self._reader = reader
        self._writer = writer
        self._gone = asyncio.Event()
        self.status: int | None = None
        asyncio.get_running_loop().add_reader(handle, self._ended)

    @property
    def lives(self) -> bool:
        """Return whether it can be asked."""
        return not self._gone.is_set() and not self._reader.at_eof()

    def send(self, frame: msgspec.Struct) -> None:
        """Send a message."""
        payload = msgspec.json.encode(frame)
        self._writer.write(frames.HEAD.pack(len(payload)) + payload)

    async def receive(self) -> frames.Incoming:
        """Return its next message. Raises `Lost` when it ends, and when it sends what is none."""
        try:
            (size,) = frames.HEAD.unpack(await self._reader.readexactly(frames.HEAD.size))
            if size > frames.OUT_LIMIT:
                raise self._fault("it sent more than it may")
            told: frames.Incoming = frames.DECODER.decode(await self._reader.readexactly(size))
        except (OSError, asyncio.IncompleteReadError):
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(GONE_S):
                    await self._gone.wait()
            raise Lost(self._why()) from None
        except (msgspec.MsgspecError, UnicodeDecodeError):
            raise self._fault("it sent what is not a message") from None
        return told

    async def check(self, source: str) -> str:
        """Have it read a handler; return the problem as JSON, or an empty text. Raises `Lost`."""
        self.send(frames.CheckFrame(source=source, allowed=ALLOWED))
        told = await self.receive()
        if not isinstance(told, frames.CheckedFrame):
            raise self._fault("it answered what it was not asked")
        return told.problem

    def kill(self) -> None:
        """Kill it at once."""
        if not self._gone.is_set():
            with contextlib.suppress(ProcessLookupError):
                signal.pidfd_send_signal(self._handle, signal.SIGKILL)
        self._writer.close()

    async def gone(self) -> None:
        """Wait until the kernel has ended it."""
        await self._gone.wait()

    def _ended(self) -> None:
        asyncio.get_running_loop().remove_reader(self._handle)
        os.close(self._handle)
        self._writer.close()
        self._gone.set()

    def _fault(self, why: str) -> Lost:
        self.kill()
        return Lost(why)

    def _why(self) -> str:
        if self.status in (None, 0):
            return "it was lost"
        if self.status == -signal.SIGXCPU:
            return f"it used more than {jail.CPU_S} s of processor time"
        if self.status == -signal.SIGSYS:
            return "it made a system call that it may not"
        with contextlib.suppress(ValueError):
            return f"it was ended by {signal.Signals(-(self.status or 0)).name}"
        return f"it ended with the status {self.status}"


class Zygote:
    """A process from which those of sandboxes are forked; started when one is first wanted, and again when it was lost."""

    def __init__(self) -> None:
        self._line: socket.socket | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self._lock = asyncio.Lock()
        self._told: asyncio.Queue[tuple[bytes, int, int, int]] = asyncio.Queue()
        self._living: dict[int, Process] = {}
        self._forking: set[asyncio.Task[Process]] = set()

    def __len__(self) -> int:
        return len(self._living)

    @property
    def pids(self) -> list[int]:
        """Return the ids of the living processes of sandboxes."""
        return list(self._living)

    async def fork(self) -> Process:
        """Start a process. Raises `UNAVAILABLE`.

        If the caller is cancelled meanwhile, the process is ended as soon as it is there: what the zygote tells of it must be heard, or it
        would be taken for the next one's."""
        task = asyncio.get_running_loop().create_task(self._start_one())
        self._forking.add(task)
        task.add_done_callback(self._forking.discard)
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            task.add_done_callback(_unwanted)
            raise

    async def _start_one(self) -> Process:
        if why := jail.why_not():
            raise VoxbridgeError(Code.UNAVAILABLE, f"There is no sandbox here: {why}.", retryable=False)
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            with theirs:
                async with self._lock:
                    pid, handle = await self._forked(theirs)
            ours.setblocking(False)
            reader, writer = await asyncio.open_connection(sock=ours, limit=frames.OUT_LIMIT)
        except BaseException:
            ours.close()
            raise
        process = self._living[pid] = Process(pid, handle, reader, writer)
        try:
            async with asyncio.timeout(FORK_S):
                first = await process.receive()
            if not isinstance(first, frames.RestFrame):
                raise Lost(getattr(first, "message", "it could not be confined"))
        except (VoxbridgeError, TimeoutError) as error:
            process.kill()
            message = f"A sandbox could not be confined, and runs nothing ({error})."
            raise VoxbridgeError(Code.UNAVAILABLE, message, retryable=False) from error
        return process

    async def close(self) -> None:
        """End the zygote and, by the kernel, all that it forked."""
        await asyncio.gather(*self._forking, return_exceptions=True)
        for process in list(self._living.values()):
            process.kill()
        started, self._process = self._process, None
        self._lost()
        if started is not None:
            started.kill()
            await asyncio.to_thread(started.wait)
        for process in list(self._living.values()):
            await process.gone()
        self._living.clear()

    async def _forked(self, theirs: socket.socket) -> tuple[int, int]:
        for _ in range(2):
            try:
                async with asyncio.timeout(START_S):
                    line = self._line or await self._start()
                    line.sendmsg([b"F"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [theirs.fileno()]))])
                    kind, pid, number, handle = await self._told.get()
            except (OSError, TimeoutError):
                self._lost()
                continue
            if kind == zygote.FORKED:
                return pid, handle
            if kind == zygote.FAILED:
                why = f"A sandbox's process cannot be started: {os.strerror(number).lower()}."
                raise VoxbridgeError(Code.UNAVAILABLE, why, retry_after_ms=1_000)
        raise VoxbridgeError(Code.UNAVAILABLE, "Sandboxes cannot be started; the log of the tools service says why.")

    async def _start(self) -> socket.socket:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            program = (sys.executable, "-m", zygote.__name__, str(theirs.fileno()), str(os.getpid()))
            # Started by the thread that lives as long as this process: the kernel ends the zygote with it.
            self._process = subprocess.Popen(  # noqa: ASYNC220 - from another thread it would end with that thread
                program, pass_fds=(theirs.fileno(),), stdin=subprocess.DEVNULL, env=_environment(), cwd="/"
            )
        ours.setblocking(False)
        self._line, self._told = ours, asyncio.Queue()
        asyncio.get_running_loop().add_reader(ours, self._hear, ours)
        kind, *_ = await self._told.get()
        if kind != zygote.READY:
            raise OSError("the zygote ended as it was loading")
        return ours

    def _hear(self, line: socket.socket) -> None:
        try:
            data, ancillary, _, _ = line.recvmsg(zygote.TOLD.size, socket.CMSG_SPACE(array.array("i").itemsize))
        except BlockingIOError:
            return
        except OSError:
            data, ancillary = b"", []
        if len(data) < zygote.TOLD.size:
            if line is self._line:
                self._lost()
            return
        kind, pid, number = zygote.TOLD.unpack(data)
        if kind == zygote.ENDED:
            process = self._living.pop(pid, None)
            if process is not None:
                process.status = number
            return
        handle = array.array("i", ancillary[0][2])[0] if ancillary else -1
        self._told.put_nowait((kind, pid, number, handle))

    def _lost(self) -> None:
        """Forget a zygote that is gone; its children are gone with it."""
        line, self._line = self._line, None
        if line is not None:
            asyncio.get_running_loop().remove_reader(line)
            line.close()
        self._told.put_nowait((b"", 0, 0, -1))
        if self._process is not None and self._process.poll() is None:
            self._process.kill()
            self._process.wait()  # it is gone at once, and nobody else asks how it ended
        for process in list(self._living.values()):
            process.kill()


def _unwanted(task: asyncio.Task[Process]) -> None:
    if not task.cancelled() and task.exception() is None:
        task.result().kill()


def _environment() -> dict[str, str]:
    """Return what the zygote is told: nothing of this process but where its modules are."""
    paths = [str(_ROOT), *(path for path in sys.path if path)]
    return {"PYTHONPATH": os.pathsep.join(dict.fromkeys(paths)), "TZ": "UTC", "LANG": "C.UTF-8", "PYTHONDONTWRITEBYTECODE": "1"}
