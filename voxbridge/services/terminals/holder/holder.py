"""A process that forks programs in terminals and keeps their descriptors, children and exit codes.

It parses nothing that a program writes, so it has nothing to crash by, and it outlives the terminals service: a successor asks for each
terminal's descriptor and reads on; until then the kernel keeps the output, and a program that writes more than that waits. Below it, each
terminal has a keeper of its own (`keeper`), which everything in that terminal descends from. Where the holder dies, the keepers end what is
below them, which the service says. A program that kills its keeper is killed with all that is its.

It listens on a socket in a private folder; a connection of another user is closed. Requests and answers are lines of JSON, a descriptor
travels with its answer. Every connection is told of programs that ended. Without a terminal and a connection for `IDLE_S` it ends; so it
does at SIGTERM, after everything in its terminals has ended. Standard library only.
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
import pty
import secrets
import selectors
import signal
import socket
import struct
import sys
import termios
import time
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from voxbridge.services.terminals.holder import keeper, processes

SOCKET: Final = "holder.sock"
LOCK: Final = "holder.lock"
TERMINALS_LIMIT: Final = 128
REQUEST_LIMIT: Final = 262_144
"""Bytes of one request."""

MESSAGE_LIMIT: Final = 65_536
"""Bytes of a keeper's message."""

IDLE_S: Final = 5.0
STOP_S: Final = keeper.END_S + 4
"""Time that the end of the holder and of everything in its terminals takes at most."""

START_S: Final = 5.0
"""Time that a program may take to begin."""

_SIGNALS: Final = {name: getattr(signal, f"SIG{name}") for name in ("INT", "TERM", "HUP", "KILL", "STOP", "CONT")}


@dataclass
class Held:
    """A terminal: its master's descriptor, its keeper, its program, and how that ended."""

    id: str
    master: int
    keeper: int
    control: socket.socket
    pid: int
    started: int
    columns: int
    rows: int
    code: int | None = None
    left: list[dict[str, Any]] | None = None
    """Processes that live on after its end; None while its keeper lives."""

    ending: list[tuple[Connection, int]] = field(default_factory=list)
    """Requests that wait for its end."""

    closing: bool = False


class Connection:
    """A connection of the service."""

    def __init__(self, sock: socket.socket) -> None:
        self.sock = sock
        self.read = b""

    def send(self, message: dict[str, Any], descriptor: int | None = None) -> None:
        """Send a line, with a descriptor if there is one; a connection that does not take it is one that ended."""
        line = json.dumps(message).encode() + b"\n"
        try:
            if descriptor is not None:
                sent = socket.send_fds(self.sock, [line], [descriptor])
                line = line[sent:]
            if line:
                self.sock.sendall(line)
        except OSError:
            with suppress(OSError):
                self.sock.shutdown(socket.SHUT_RDWR)  # half a line may have gone


class Holder:
    """The loop of the holder."""

    def __init__(self, listening: socket.socket) -> None:
        self._boot = secrets.token_hex(8)
        self._held: dict[str, Held] = {}
        self._connections: set[Connection] = set()
        self._selector = selectors.DefaultSelector()
        self._listening = listening
        self._selector.register(listening, selectors.EVENT_READ, None)
        self._wake, write = socket.socketpair()
        for one in (self._wake, write):
            one.setblocking(False)
        signal.set_wakeup_fd(write.fileno())
        self._write = write
        self._selector.register(self._wake, selectors.EVENT_READ, "signal")
        self._stopping = False
        self._alone_since = time.monotonic()
        self._strays = False
        for number in (signal.SIGCHLD, signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._signalled)

    def run(self) -> None:
        """Serve until stopped, or alone for long."""
        while not (self._stopping and not self._held):
            for key, _ in self._selector.select(0.05 if self._strays else 1.0):
                if key.data is None:
                    self._accept()
                elif isinstance(key.data, Connection):
                    self._receive(key.data)
                elif isinstance(key.data, Held):
                    self._heard(key.data)
                else:
                    with suppress(BlockingIOError):
                        self._wake.recv(4096)
            self._reap()
            if self._strays:
                self._kill_strays()
            now = time.monotonic()
            if self._held or self._connections:
                self._alone_since = now
            elif now - self._alone_since > IDLE_S:
                return

    def _signalled(self, number: int, _frame: object) -> None:
        if number != signal.SIGCHLD and not self._stopping:
            self._stopping = True
            for held in list(self._held.values()):
                self._end(held)

    def _accept(self) -> None:
        sock, _ = self._listening.accept()
        pid_uid_gid = sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
        if struct.unpack("3i", pid_uid_gid)[1] != os.getuid():
            sock.close()
            return
        sock.settimeout(5.0)  # a service that does not read for so long is stopped, and has no claim to be waited for
        connection = Connection(sock)
        self._connections.add(connection)
        self._selector.register(sock, selectors.EVENT_READ, connection)

    def _receive(self, connection: Connection) -> None:
        try:
            data = connection.sock.recv(65_536)
        except OSError:
            data = b""
        connection.read += data
        *lines, connection.read = connection.read.split(b"\n")
        for line in lines:
            self._answer(connection, line)
        if not data or len(connection.read) > REQUEST_LIMIT:
            self._selector.unregister(connection.sock)
            self._connections.discard(connection)
            connection.sock.close()

    def _answer(self, connection: Connection, line: bytes) -> None:
        number = 0
        try:
            request = json.loads(line)
            number = int(request["request"])
            answer, descriptor = self._done(connection, number, request)
        except (ValueError, KeyError, TypeError, OSError) as error:
            text = os.strerror(error.errno) if isinstance(error, OSError) and error.errno else f"{type(error).__name__}: {error}"
            answer, descriptor = {"error": text}, None
        if answer is not None:
            connection.send({"request": number, **answer}, descriptor)

    def _done(self, connection: Connection, number: int, request: dict[str, Any]) -> tuple[dict[str, Any] | None, int | None]:
        verb = request["verb"]
        if verb == "hello":
            known = [
                {"id": one.id, "pid": one.pid, "code": one.code, "started": one.started, "columns": one.columns, "rows": one.rows}
                for one in self._held.values()
            ]
            return {"boot": self._boot, "pid": os.getpid(), "terminals": known}, None
        if verb == "start":
            held = self._start(request)
            return {"pid": held.pid, "started": held.started}, held.master
        if verb == "stop":
            self._signalled(signal.SIGTERM, None)
            return {}, None
        held = self._held[request["id"]]
        if verb == "take":
            return {"pid": held.pid, "code": held.code, "started": held.started}, held.master
        if verb == "resize":
            held.columns, held.rows = int(request["columns"]), int(request["rows"])
            fcntl.ioctl(held.master, termios.TIOCSWINSZ, struct.pack("HHHH", held.rows, held.columns, 0, 0))
            return {}, None
        if verb == "signal":
            os.killpg(self._foreground(held), _SIGNALS[request["signal"]])
            return {}, None
        if verb == "end":
            held.ending.append((connection, number))
            self._end(held)
            return None, None
        raise ValueError(f"no verb {verb}")

    def _foreground(self, held: Held) -> int:
        """Return the process group in the foreground of a terminal; that of its first process where it has none."""
        with suppress(OSError):
            if (group := os.tcgetpgrp(held.master)) > 0:
                return group
        if held.code is not None:
            raise ProcessLookupError(errno.ESRCH, "it has ended")
        return held.pid

    def _start(self, request: dict[str, Any]) -> Held:
        name, argv, env = str(request["id"]), list(request["argv"]), dict(request["env"])
        if name in self._held:
            raise ValueError(f"there is a terminal {name}")
        if len(self._held) >= TERMINALS_LIMIT:
            raise ValueError(f"there are {TERMINALS_LIMIT} terminals, which is the most")
        columns, rows = int(request["columns"]), int(request["rows"])
        master, slave = pty.openpty()
        control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        try:
            fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
            pid = os.fork()
            if pid == 0:
                keeper.keep(argv, env, str(request["directory"]), slave, theirs)
            theirs.close()
            control.settimeout(START_S)
            begun = json.loads(control.recv(MESSAGE_LIMIT) or b'{"error": "the process that keeps it ended"}')
            if "error" in begun:
                raise ValueError(begun["error"])  # noqa: TRY301 - the same clean-up as for what fails above
        except BaseException:
            os.close(master)
            control.close()
            raise
        finally:
            os.close(slave)
            theirs.close()
        os.set_blocking(master, False)
        held = Held(name, master, pid, control, begun["pid"], time.time_ns() // 1_000, columns, rows)
        self._held[name] = held
        self._selector.register(control, selectors.EVENT_READ, held)
        return held

    def _heard(self, held: Held) -> None:
        """Take what a keeper says."""
        try:
            data = held.control.recv(MESSAGE_LIMIT)
        except OSError:
            data = b""
        message = json.loads(data) if data else {}
        if "code" in message:
            self._over(held, message["code"])
        if data and "left" not in message:
            return
        if not data:  # killed: what was below it came to this process
            self._strays = True
            self._over(held, -signal.SIGKILL)
        held.left = message.get("left", [])
        self._selector.unregister(held.control)
        held.control.close()
        if held.closing:
            self._end(held)

    def _over(self, held: Held, code: int) -> None:
        if held.code is None:
            held.code = code
            for connection in tuple(self._connections):
                connection.send({"ended": held.id, "code": code})

    def _end(self, held: Held) -> None:
        """End everything in a terminal, and forget it once that is done."""
        first, held.closing = not held.closing, True
        if held.left is None:
            if first:
                with suppress(OSError):
                    held.control.send(b"end")
            return
        if self._held.pop(held.id, None) is not None:
            os.close(held.master)
        for connection, number in held.ending:
            if connection in self._connections:
                connection.send({"request": number, "left": held.left, "code": held.code})
        held.ending.clear()

    def _kill_strays(self) -> None:
        """Kill what is below this process and has no keeper. One that was killed is heard of before what was below it comes here: it counts
        as no keeper, so that this is done again until nothing is left."""
        keepers = frozenset(held.keeper for held in self._held.values() if held.left is None)
        left = processes.descendants(os.getpid(), without=keepers)
        for pid in left:
            with suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        self._strays = bool(left)

    def _reap(self) -> None:
        """Collect the ends of keepers, and of orphans that came to this process."""
        with suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass


def main(arguments: list[str]) -> int:
    """Run a holder in a folder; return 0 when it ended, also if another one holds the folder, and 2 for a wrong call. With `--detach` it
    returns once the holder listens, with `--stop` once the holder of the folder has ended."""
    named, *flags = arguments or ["-"]
    if named.startswith("-") or flags not in ([], ["--detach"], ["--stop"]):
        sys.stderr.write("usage: python -m voxbridge.services.terminals.holder FOLDER [--detach | --stop]\n")
        return 2
    folder = Path(named)
    if flags == ["--stop"]:
        return stop(folder)
    lock = os.open(folder / LOCK, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return 0
    path = folder / SOCKET
    path.unlink(missing_ok=True)
    listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    listening.bind(str(path))
    path.chmod(0o600)
    listening.listen(8)
    if flags == ["--detach"] and os.fork():
        os._exit(0)
    keeper.adopt_orphans()
    Holder(listening).run()
    path.unlink(missing_ok=True)
    return 0


def stop(folder: Path) -> int:
    """End the holder of a folder and everything in its terminals; return 0 once it has ended, also if there was none."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as sock:
        sock.settimeout(STOP_S)
        try:
            sock.connect(str(folder / SOCKET))
            sock.sendall(b'{"request": 1, "verb": "stop"}\n')
            while sock.recv(65_536):
                pass
        except (FileNotFoundError, ConnectionError):
            return 0
        except OSError:
            return 1
    return 0
