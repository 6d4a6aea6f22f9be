"""The holder as the service asks it: starts it where there is none, and asks again after a cut.

Owns the connection. One request is open at a time. Programs that ended are told to `ended`, in the loop's thread.
"""

from __future__ import annotations

import asyncio
import json
import os
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, NamedTuple

import msgspec

from voxbridge.services.terminals.holder.holder import SOCKET
from voxbridge.services.terminals.holder.keeper import END_S
from voxbridge.shared.errors import Code, VoxbridgeError

START_S: Final = 10.0
ANSWER_S: Final = 5.0
_READ: Final = 65_536


class Known(msgspec.Struct, frozen=True, kw_only=True):
    """A terminal as the holder knows it; `code` is None while its program runs."""

    id: str
    pid: int
    started: int
    columns: int
    rows: int
    code: int | None = None


class Hello(msgspec.Struct, frozen=True, kw_only=True):
    """A holder: the id of its start, its process, and its terminals."""

    boot: str
    pid: int
    terminals: tuple[Known, ...]


class Answer(NamedTuple):
    """An answer of the holder, and the descriptor that came with it."""

    body: dict[str, Any]
    descriptor: int | None


class HolderClient:
    """A connection to the holder of a folder."""

    def __init__(self, folder: Path, ended: Callable[[str, int], None], lost: Callable[[], None]) -> None:
        self.folder = folder
        self._ended, self._lost = ended, lost
        self._sock: socket.socket | None = None
        self._numbers = 0
        self._waiting: dict[int, asyncio.Future[Answer]] = {}
        self._read = b""
        self._descriptors: list[int] = []
        self._asking = asyncio.Lock()

    async def connect(self) -> Hello:
        """Connect, starting a holder where none answers; return what it holds. Raises `UNAVAILABLE`."""
        deadline = asyncio.get_running_loop().time() + START_S
        while True:
            hello = await self._greeted()
            if hello is not None:
                return hello
            if asyncio.get_running_loop().time() > deadline:
                message = f"The holder of terminals does not start; {self.folder / 'holder.log'} may say why."
                raise VoxbridgeError(Code.UNAVAILABLE, message, retryable=True)
            await asyncio.to_thread(self._start)
            await asyncio.sleep(0.05)

    async def _greeted(self) -> Hello | None:
        """Connect to the holder that there is; None where there is none, or where it dies before it answers."""
        sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        sock.setblocking(False)
        try:
            await asyncio.get_running_loop().sock_connect(sock, str(self.folder / SOCKET))
        except OSError:
            sock.close()
            return None
        self._sock, self._read = sock, b""
        asyncio.get_running_loop().add_reader(sock.fileno(), self._readable)
        try:
            return msgspec.convert((await self.ask("hello")).body, Hello)
        except VoxbridgeError as error:
            if error.code != Code.UNAVAILABLE:
                raise
            self.close()
            return None

    async def ask(self, verb: str, wait_s: float = ANSWER_S, **fields: Any) -> Answer:
        """Ask, and return the answer. Raises `INVALID_ARGUMENT` with the holder's reason, and `UNAVAILABLE` where it is gone."""
        async with self._asking:
            sock = self._sock
            if sock is None:
                raise _gone()
            self._numbers += 1
            number = self._numbers
            answered = self._waiting[number] = asyncio.get_running_loop().create_future()
            try:
                line = json.dumps({"request": number, "verb": verb, **fields}).encode() + b"\n"
                await asyncio.get_running_loop().sock_sendall(sock, line)
                async with asyncio.timeout(wait_s):
                    answer: Answer = await answered
            except (OSError, TimeoutError) as error:
                raise _gone() from error
            finally:
                self._waiting.pop(number, None)
        if "error" in answer.body:
            raise VoxbridgeError(Code.INVALID_ARGUMENT, f"{answer.body['error']}.")
        return answer

    async def end(self, terminal: str) -> tuple[list[str], int | None]:
        """End everything in a terminal; return the processes that live on, and the exit code of its program."""
        body = (await self.ask("end", END_S + ANSWER_S, id=terminal)).body
        return [f"{one['pid']} {one['command']}" for one in body["left"]], body["code"]

    def close(self) -> None:
        """Close the connection; the holder and its terminals live on."""
        sock, self._sock = self._sock, None
        if sock is not None:
            asyncio.get_running_loop().remove_reader(sock.fileno())
            sock.close()
        for waiting in self._waiting.values():
            if not waiting.done():
                waiting.set_exception(_gone())

    def _start(self) -> None:
        with (self.folder / "holder.log").open("ab") as log:
            # In a session of its own: a signal to the service's group, or a terminal that closes, does not reach it.
            subprocess.run(
                [sys.executable, "-m", "voxbridge.services.terminals.holder", str(self.folder), "--detach"],
                stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=log, start_new_session=True, cwd="/", check=False,
                env={name: os.environ[name] for name in ("PATH", "LANG", "LC_ALL", "PYTHONPATH", "HOME") if name in os.environ},
            )  # fmt: skip

    def _readable(self) -> None:
        sock = self._sock
        if sock is None:
            return
        try:
            data, descriptors, _, _ = socket.recv_fds(sock, _READ, 4)
        except BlockingIOError:
            return
        except OSError:
            data, descriptors = b"", []
        if not data:
            self.close()
            self._lost()
            return
        self._descriptors += descriptors
        self._read += data
        *lines, self._read = self._read.split(b"\n")
        for line in lines:
            self._took(json.loads(line))

    def _took(self, message: dict[str, Any]) -> None:
        if "ended" in message:
            self._ended(message["ended"], message["code"])
            return
        # One request is open at a time, so a descriptor that came is that of this answer.
        descriptor = self._descriptors.pop(0) if self._descriptors else None
        waiting = self._waiting.get(message["request"])
        if waiting is not None and not waiting.done():
            waiting.set_result(Answer(message, descriptor))
        elif descriptor is not None:
            os.close(descriptor)


def _gone() -> VoxbridgeError:
    return VoxbridgeError(Code.UNAVAILABLE, "The holder of terminals is gone or does not answer. Ask again in a moment.", retryable=True)
