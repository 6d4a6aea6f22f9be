"""Checks before anything is started: a writable folder, room on the disk, free ports, no other process on the folder.

Owns the checks and their one-line messages. Does not own the servers' own checks (`voxbridge.shared.embedded.servers`).
"""

from __future__ import annotations

import errno
import fcntl
import os
import shutil
from pathlib import Path
from typing import Final, Self

from voxbridge.shared.config import Config
from voxbridge.shared.embedded.servers import MIN_FREE_BYTES, StartError, port_is_free
from voxbridge.shared.secrets import sealed_box
from voxbridge.shared.secrets.secret_file import admin_token_file, vault_key_file

_LISTEN: Final = "0A"


class FolderLock:
    """Lock of a data folder, held by its one `voxbridge up` for as long as that process lives."""

    def __init__(self, handle: int) -> None:
        self._handle = handle

    @classmethod
    def take(cls, folder: Path, url: str) -> Self:
        """Take the lock, or raise `StartError` that names its holder."""
        handle = os.open(folder / "up.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            who = os.read(handle, 200).decode(errors="replace").strip() or "another process"
            os.close(handle)
            raise StartError(
                f"Voxbridge is already running on {folder} ({who}). Stop it, or set VOXBRIDGE_DATA_DIR and VOXBRIDGE_PORT to others.",
                field="VOXBRIDGE_DATA_DIR",
            ) from None
        os.ftruncate(handle, 0)
        os.write(handle, f"process {os.getpid()}, {url}".encode())
        return cls(handle)

    def release(self) -> None:
        """Release the lock; the file stays, empty."""
        os.ftruncate(self._handle, 0)
        os.close(self._handle)


def check_folder(folder: Path, *, min_free_bytes: int = MIN_FREE_BYTES) -> None:
    """Create the data folder and write to it; raises `StartError`."""
    probe = folder / f".write-{os.getpid()}"
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        probe.write_bytes(b"x")
        probe.unlink()
        free = shutil.disk_usage(folder).free
    except OSError as error:
        if error.errno == errno.ENOSPC:
            raise _full(folder, 0, min_free_bytes) from error
        reason = (error.strerror or str(error)).lower()
        raise StartError(
            f"The data folder {folder} cannot be written: {reason}. Make it writable, or set VOXBRIDGE_DATA_DIR to another.",
            field="VOXBRIDGE_DATA_DIR",
        ) from error
    if free < min_free_bytes:
        raise _full(folder, free, min_free_bytes)


def check_secrets(config: Config) -> None:
    """Raise `UNAVAILABLE` when the file of a secret exists and cannot be used; missing files are created when they are needed."""
    vault_key_file(config).read()
    admin_token_file(config).read()


def make_vault(config: Config) -> None:
    """Create the vault key if there is none, and its public half for processes that only seal. Raises `UNAVAILABLE`."""
    sealed_box.publish(vault_key_file(config), config.vault_public_key_path)


def check_port(host: str, port: int, variable: str) -> None:
    """Raise `StartError` unless a service can listen on the port; the error names the process that holds it, if the system tells."""
    try:
        free = port_is_free(port, host)
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise StartError(f"{host}:{port} cannot be listened on: {reason}. Set {variable} to another.", field=variable) from error
    if not free:
        holder = port_holder(port)
        by = f" by {holder}" if holder else ""
        raise StartError(f"Port {port} is taken{by}. Stop it, or choose another port: {variable}={port + 10} make up.", field=variable)


def port_holder(port: int) -> str | None:
    """Return `name (process 123)` of the process that listens on a port, if this user may see it."""
    inodes = _listening(port)
    for link in Path("/proc").glob("[0-9]*/fd/*"):
        try:
            if str(link.readlink()) in inodes:
                return f"{(link.parents[1] / 'comm').read_text().strip()} (process {link.parents[1].name})"
        except OSError:  # another user's process, or gone since it was listed
            continue
    return None


def _listening(port: int) -> set[str]:
    found: set[str] = set()
    for table in (Path("/proc/net/tcp"), Path("/proc/net/tcp6")):
        try:
            rows = table.read_text().splitlines()[1:]
        except OSError:
            continue
        for row in rows:
            cells = row.split()
            if cells[3] == _LISTEN and int(cells[1].rpartition(":")[2], 16) == port:
                found.add(f"socket:[{cells[9]}]")
    return found


def _full(folder: Path, free: int, needed: int) -> StartError:
    return StartError(
        f"The disk of {folder} is full: {free >> 20} MiB are free and {needed >> 20} MiB are needed. "
        "Free some space, or set VOXBRIDGE_DATA_DIR to another disk.",
        field="VOXBRIDGE_DATA_DIR",
        limit=needed,
    )
