"""A real nats-server and a real Valkey from their wheels, on loopback, as child processes.

Owns their files (configuration, password, store, log), and how they are started, probed and stopped. Does not own when they are restarted:
the supervisor of `voxbridge up` does. A crash here loses nothing that a server acknowledged: the stores are on disk, and a server started
again on the same folder continues with them. A folder is used by one server at a time; the server itself holds the lock for that, so it
ends when the server does.
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
import secrets
import shutil
import signal
import socket
import subprocess
import sysconfig
import tempfile
import time
from abc import ABC, abstractmethod
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from voxbridge.shared.embedded.child import die_with_parent, end_group
from voxbridge.shared.errors import Code, VoxbridgeError

LOOPBACK: Final = "127.0.0.1"
START_TIMEOUT_S: Final = 15.0
STOP_TIMEOUT_S: Final = 3.0
MIN_FREE_BYTES: Final = 256 * 1024 * 1024
PROBE_TIMEOUT_S: Final = 0.5
INSTALL: Final = "Run `make setup` in a checkout, or pip install 'voxbridge[all]'."
_SOCKET_PATH_LIMIT: Final = 100  # the kernel's limit is 108 bytes, with the final zero


class StartError(VoxbridgeError):
    """Error of an embedded server that cannot be started; the message is one line that says what to do."""

    def __init__(self, message: str, *, field: str | None = None, limit: float | str | None = None) -> None:
        super().__init__(Code.UNAVAILABLE, message, field=field, limit=limit, retryable=False)


class EmbeddedServer(ABC):
    """Life of one server: `start` it (or `spawn` it and poll `answers`), `stop` it, or `kill` it as a crash would.

    A context manager, plain and asynchronous. The process belongs to the thread that starts it (see `voxbridge.shared.embedded.child`).
    """

    name: str
    url: str
    """URL for clients, with credentials: treat it as a secret."""

    def __init__(self, folder: Path, *, min_free_bytes: int = MIN_FREE_BYTES) -> None:
        self.folder = folder.absolute()
        self._min_free = min_free_bytes
        self._process: subprocess.Popen[bytes] | None = None
        self._password = ""
        self._started = False

    @abstractmethod
    def command(self) -> list[str]:
        """Return the program and its arguments."""

    def environment(self) -> dict[str, str]:
        """Return the environment of the process."""
        return dict(os.environ)

    @abstractmethod
    def answers(self) -> bool:
        """Return whether the server takes requests now; blocks for half a second at most."""

    def ailment(self) -> str:
        """Return what keeps a server that answers from working, in its own words, or an empty string; blocks for half a second at most."""
        return ""

    def has_room(self) -> bool:
        """Return whether the disk has the free space that a first start requires."""
        return shutil.disk_usage(self.folder).free >= self._min_free

    @abstractmethod
    def _address(self) -> str:
        """Return the URL, with the password."""

    @abstractmethod
    def _configure(self) -> None:
        """Write the configuration; raises `StartError` when the address is taken."""

    @property
    def pid(self) -> int | None:
        """Id of the process; None while there is none."""
        process = self._process
        return process.pid if process is not None and process.poll() is None else None

    @property
    def log_file(self) -> Path:
        """File with the output of the server."""
        return self.folder / "server.log"

    def reserve(self) -> str:
        """Return the URL that clients will use, before the server is started; raises `StartError` when the folder cannot be written."""
        try:
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._password = secret(self.folder / "password")
        except OSError as error:
            raise _cannot_write(self.folder, error) from error
        self.url = self._address()
        return self.url

    def _take(self) -> int:
        self.reserve()
        try:
            return _lock(self.folder, self.name)
        except OSError as error:
            raise _cannot_write(self.folder, error) from error

    def _prepare(self) -> None:
        try:
            free = shutil.disk_usage(self.folder).free
            # A server that comes back to a full disk still serves requests that need no space, as calls do.
            if free < self._min_free and not self._started:
                raise StartError(
                    f"The disk of {self.folder} is full: {free >> 20} MiB are free and {self.name} needs {self._min_free >> 20} MiB. "
                    "Free some space or set VOXBRIDGE_DATA_DIR to another disk.",
                    field="VOXBRIDGE_DATA_DIR",
                    limit=self._min_free,
                )
            self._configure()
        except OSError as error:
            raise _cannot_write(self.folder, error) from error

    def spawn(self) -> subprocess.Popen[bytes]:
        """Start the process without waiting for it; raises `StartError` when another server holds the folder."""
        command = self.command()
        lock = self._take()
        try:
            self._prepare()
            with self.log_file.open("wb") as log:
                self._process = subprocess.Popen(
                    command,
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    cwd=self.folder,
                    start_new_session=True,
                    env=self.environment(),
                    pass_fds=(lock,),
                    preexec_fn=die_with_parent(),  # noqa: PLW1509 - one system call, looked up before the fork
                )
        except OSError as error:
            raise StartError(f"{self.name} cannot be started from {command[0]}: {error.strerror}.") from error
        finally:
            os.close(lock)
        self._started = True
        return self._process

    def start(self, timeout_s: float = START_TIMEOUT_S) -> Self:
        """Start the server and return once it answers; raises `StartError` with the server's own words when it does not."""
        process = self.spawn()
        end = time.monotonic() + timeout_s
        while not self.answers():
            if process.poll() is not None:
                raise StartError(f"{self.name} ended with code {process.returncode} as it started: {self.last_words()}")
            if time.monotonic() > end:
                self.kill()
                raise StartError(f"{self.name} did not answer within {timeout_s:g} s; its log is {self.log_file}.")
            time.sleep(0.005)
        return self

    def last_words(self) -> str:
        """Return the last line of its log that is not blank."""
        try:
            lines = self.log_file.read_text(errors="replace").strip().splitlines()
        except OSError:
            lines = []
        return lines[-1].strip() if lines else f"it said nothing; its log is {self.log_file}."

    def stop(self, timeout_s: float = STOP_TIMEOUT_S) -> None:
        """Ask the server to end, wait `timeout_s`, then kill it. Does nothing when it is not running."""
        process = self._process
        if process is None:
            return
        if process.poll() is None:
            end_group(process.pid, signal.SIGTERM)
            try:
                process.wait(timeout_s)
            except subprocess.TimeoutExpired:
                self.kill()
        self._process = None

    def kill(self) -> None:
        """Send SIGKILL, as a crash would; the store stays."""
        if self._process is not None:
            end_group(self._process.pid, signal.SIGKILL)
            self._process.wait()
            self._process = None

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.stop()

    async def __aenter__(self) -> Self:
        # Blocking is short (tens of milliseconds), and a pool's thread must not be the parent.
        return self.start()

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.stop()


def port_is_free(port: int, host: str = LOOPBACK) -> bool:
    """Return whether a server could listen on this port now."""
    with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError as error:
            if error.errno == errno.EADDRINUSE:
                return False
            raise
    return True


def free_port() -> int:
    """Return a port of loopback that is free now."""
    with socket.socket() as probe:
        probe.bind((LOOPBACK, 0))
        return int(probe.getsockname()[1])


def program(name: str) -> str:
    """Return the path of a program that is installed here. Raises `StartError` with how to install it."""
    beside = Path(sysconfig.get_path("scripts")) / name
    found = str(beside) if beside.exists() else shutil.which(name)
    if found is None:
        raise missing(name)
    return found


def missing(name: str) -> StartError:
    """Return the error of a program that is not installed."""
    return StartError(f"{name} is not installed. {INSTALL}", field=name)


def _cannot_write(folder: Path, error: OSError) -> StartError:
    if error.errno == errno.ENOSPC:
        reason = "the disk is full. Free some space or set VOXBRIDGE_DATA_DIR to another disk"
    else:
        reason = f"{(error.strerror or str(error)).lower()}. Make the folder writable or set VOXBRIDGE_DATA_DIR to another"
    return StartError(f"{folder} cannot be written: {reason}.", field="VOXBRIDGE_DATA_DIR")


def secret(path: Path) -> str:
    """Return the secret in a file; make one if there is none."""
    try:
        kept = path.read_text().strip()
    except FileNotFoundError:
        kept = ""
    if not kept:
        kept = secrets.token_hex(24)
        write_private(path, kept)
    return kept


def quoted(path: Path) -> str:
    """Return a path as a quoted string of a configuration file."""
    return json.dumps(str(path), ensure_ascii=False)


def write_private(path: Path, text: str) -> None:
    """Write a file that only its owner may read."""
    with suppress(OSError):  # unchanged content is not written, so it needs no room on the disk
        if path.read_text() == text:
            return
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(handle, "w") as file:
        file.write(text)


def _lock(folder: Path, name: str) -> int:
    handle = os.open(folder / "lock", os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(handle)
        raise StartError(
            f"Another {name} uses {folder}. Stop it, or set VOXBRIDGE_DATA_DIR to another folder.", field="VOXBRIDGE_DATA_DIR"
        ) from None
    return handle


def socket_path(folder: Path) -> Path:
    """Return the path of the server's socket: one in the folder, or a short one where that is too long for a socket."""
    plain = folder / "valkey.sock"
    if len(os.fsencode(plain)) <= _SOCKET_PATH_LIMIT:
        return plain
    short = sha256(os.fsencode(folder)).hexdigest()[:16]
    return Path(tempfile.gettempdir()) / f"voxbridge-{os.getuid()}-{short}" / "valkey.sock"
