"""Where a service's engines are found again by the next one: the folder of its lock and of the records of its engines.

Owns the folder `models-<port>` in the data folder. A record tells where an engine listens and with which key, so it is readable
by this user alone. A record that is lost costs a load; one that is out of date is seen to be by its process.
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
    """An engine that runs. `identity` says which engine with which weights and settings it is; `pid` is its keeper's."""

    pid: int
    identity: str
    url: str
    key: str = ""


class Home:
    """Taken by one service at a time."""

    def __init__(self, data_dir: Path, port: int) -> None:
        data = data_dir.expanduser().resolve()
        self.folder = data / "run" / f"models-{port}"
        self.prompts = data / "prompts"
        """Where prompts that were read are kept."""

        self._lock: IO[bytes] | None = None

    def take(self) -> None:
        """Be the service of this folder; raises `UNAVAILABLE` when another one is, or when the folder cannot be written."""
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
            except BlockingIOError as error:  # a keeper that looks has it for an instant
                if time.monotonic() > deadline:
                    lock.close()
                    raise Unavailable(f"Another models service holds {self.folder}. Stop it, or set VOXBRIDGE_MODELS_PORT.") from error
                time.sleep(_AGAIN_S)
            else:
                self._lock = lock
                return

    def leave(self) -> None:
        """Let go of the folder."""
        if self._lock is not None:
            self._lock.close()
            self._lock = None

    def record(self, name: str) -> Record | None:
        """What is known of an engine that an earlier service started."""
        try:
            return msgspec.json.decode(self._file(name).read_bytes(), type=Record)
        except (OSError, msgspec.DecodeError):
            return None

    def remember(self, name: str, record: Record) -> None:
        """Write down an engine that serves. Raises `OSError` when the disk is full: it then cannot be found again."""
        new = self._file(name).with_suffix(".new")
        with os.fdopen(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
            file.write(msgspec.json.encode(record))
        new.replace(self._file(name))

    def forget(self, name: str) -> None:
        """The engine is gone."""
        self._file(name).unlink(missing_ok=True)

    def note(self, name: str, what: bytes) -> None:
        """Write down what the next service should know of an engine; what cannot be written is found out anew by it."""
        new = self._note(name).with_suffix(".new")
        with suppress(OSError):
            with os.fdopen(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
                file.write(what)
            new.replace(self._note(name))

    def noted(self, name: str) -> bytes:
        """What was written down; nothing where nothing was."""
        try:
            return self._note(name).read_bytes()
        except OSError:
            return b""

    def said(self, name: str) -> str:
        """The last words of an engine that has ended; they are read once."""
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
