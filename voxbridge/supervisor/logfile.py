"""The log file of one child process: appended to, and rotated by size so that it cannot fill the disk.

Owns `<name>.log` and `<name>.log.1`. Output that the supervisor had not read yet is lost when the supervisor is killed.
"""

from __future__ import annotations

from pathlib import Path
from typing import BinaryIO, Final

MAX_BYTES: Final = 8 * 1024 * 1024


class LogFile:
    """An append-only file of at most `max_bytes`, with one older file beside it."""

    def __init__(self, path: Path, max_bytes: int = MAX_BYTES) -> None:
        self.path = path
        self._max = max_bytes
        self._file: BinaryIO | None = None
        self._size = 0

    def write(self, line: bytes) -> None:
        """Append a line; raises `OSError` when the disk refuses it."""
        file = self._file or self._open()
        if self._size + len(line) > self._max and self._size:
            file.close()
            self.path.replace(self.path.with_name(f"{self.path.name}.1"))
            file = self._open()
        file.write(line)
        file.flush()
        self._size += len(line)

    def close(self) -> None:
        """Close the file; a later write opens it again."""
        if self._file is not None:
            self._file.close()
            self._file = None

    def _open(self) -> BinaryIO:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self._file = self.path.open("ab")
        self._size = self._file.tell()
        return self._file
