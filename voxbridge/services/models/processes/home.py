"""The folder through which a service finds the engines of its predecessor: its lock and the records of its engines.

Owns the folder `models-<port>` in the data folder. A record holds an engine's address and key, so it is readable by this user alone. A lost
record costs one load; an outdated one is detected by its process.
"""

from __future__ import annotations

import fcntl
import os
import time
from contextlib import suppress
from pathlib import Path
from typing import IO, Final

import msgspec

from voxbridge.services.models.processes.keeper import lock_file, said_file
from voxbridge.shared.errors import Unavailable

LOCK_TIMEOUT_S: Final = 5.0
_AGAIN_S: Final = 0.01


class Record(msgspec.Struct, frozen=True, kw_only=True):
    """A running engine. `identity` identifies the engine with its weights and settings; `pid` is its keeper's."""

    pid: int
    identity: str
    url: str
    key: str = ""


class Home:
    """The folder of one service, locked while the service runs."""

    def __init__(self, data_dir: Path, port: int) -> None:
        data = data_dir.expanduser().resolve()
        self.folder = data / "run" / f"models-{port}"
        self.prompts = data / "prompts"
        """Folder of saved prompts."""
        self.routers = data / "routers"
        """Folder of trained routers."""
        self.phrasings = data / "phrasings.json"
        """File of the requests that were written for functions that bring none."""

        self._lock: IO[bytes] | None = None

    def take(self) -> None:
        """Lock the folder for this service. Raises `UNAVAILABLE` when another service holds it, or when the folder cannot be written."""
        try:
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            lock = lock_file(self.folder).open("ab")
        except OSError as error:
            raise Unavailable(
                f"The folder {self.folder} cannot be written: {error.strerror}. Free it, or set VOXBRIDGE_DATA_DIR to another."
            ) from error
        deadline = time.monotonic() + LOCK_TIMEOUT_S
        while True:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as error:  # a keeper's check holds the lock for an instant
                if time.monotonic() > deadline:
                    lock.close()
                    raise Unavailable(f"Another models service holds {self.folder}. Stop it, or set VOXBRIDGE_MODELS_PORT.") from error
                time.sleep(_AGAIN_S)
            else:
                self._lock = lock
                return

    def leave(self) -> None:
        """Release the folder."""
        if self._lock is not None:
            self._lock.close()
            self._lock = None

    def record(self, name: str) -> Record | None:
        """Return the record of an engine that an earlier service started; None if there is none."""
        try:
            return msgspec.json.decode(self._file(name).read_bytes(), type=Record)
        except (OSError, msgspec.DecodeError):
            return None

    def remember(self, name: str, record: Record) -> None:
        """Write the record of an engine that serves. Raises `OSError` when the disk is full: the engine then cannot be found again."""
        new = self._file(name).with_suffix(".new")
        with os.fdopen(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
            file.write(msgspec.json.encode(record))
        new.replace(self._file(name))

    def forget(self, name: str) -> None:
        """Remove the record of an engine that is gone."""
        self._file(name).unlink(missing_ok=True)

    def note(self, name: str, what: bytes) -> None:
        """Write a note about an engine for the next service. A failure is ignored: the next service finds it out anew."""
        new = self._note(name).with_suffix(".new")
        with suppress(OSError):
            with os.fdopen(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
                file.write(what)
            new.replace(self._note(name))

    def noted(self, name: str) -> bytes:
        """Return the note about an engine; empty if there is none."""
        try:
            return self._note(name).read_bytes()
        except OSError:
            return b""

    def said(self, name: str) -> str:
        """Return the last output of an engine that has ended, and remove it."""
        file = said_file(self.folder, name)
        try:
            words = file.read_text()
            file.unlink()
        except OSError:
            return ""
        return words

    def _note(self, name: str) -> Path:
        return self.folder / f"{name}.note"

    def _file(self, name: str) -> Path:
        return self.folder / f"{name}.json"
