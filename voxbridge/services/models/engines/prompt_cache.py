"""A disk cache of prompts: restoring one takes milliseconds, reading it again seconds.

Owns the folder `prompts` of the data folder (0700): one file for each prompt. The name identifies its writer (engine, weights, settings),
the prompt, and the file's content, so that a torn or foreign file is detected. A prompt is the fixed part of a conversation, never its
words: the caller of `keep` sees to that. A crash here leaves an incomplete file, which the next start removes.
"""

from __future__ import annotations

import os
import re
import time
from contextlib import suppress
from hashlib import blake2b, sha256
from pathlib import Path
from typing import Final

FILES: Final = 16
BYTES: Final = 512 * 2**20
"""Bytes of all files together; the least recently used file is removed first. A prompt of 600 tokens has 17 MB."""

UNFINISHED_S: Final = 60.0
"""Age in seconds after which an unfinished file counts as abandoned."""

_NAME: Final = re.compile(r"([0-9a-f]{16})-([0-9a-f]{32})-([0-9a-f]{32})\.slot")
_UNFINISHED: Final = ".new"


def digest(prompt: str) -> str:
    """Return the key of a prompt in file names."""
    return sha256(prompt.encode()).hexdigest()[:32]


class Prompts:
    """The files of one engine. `maker` is everything that decides whether the engine can read them. The methods access the disk: call them
    in a thread. None of them raises: without a disk, prompts are read again."""

    def __init__(self, folder: Path, maker: tuple[object, ...]) -> None:
        self.folder = folder
        self._maker = sha256(repr(maker).encode()).hexdigest()[:16]
        self._whole: dict[str, tuple[int, int, int]] = {}
        """Files that this process found complete, with their stamps at that time."""

    def open(self) -> bool:
        """Create the folder and remove all files that are no prompts. Return false if it cannot be written."""
        try:
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            self.folder.chmod(0o700)
            for path in self.folder.iterdir():
                if _NAME.fullmatch(path.name) is None and not self._being_written(path):
                    self.drop(path.name)
        except OSError:
            return False
        self._make_room()
        return True

    def has(self, prompt: str) -> bool:
        """Tell whether there is a file for a prompt, complete or not, and mark it as used."""
        path = self._file(prompt)
        if path is not None:
            with suppress(OSError):
                self._use(path)
        return path is not None

    def find(self, prompt: str) -> str | None:
        """Return the name of a prompt's file and mark it as used. Remove a file whose content does not fit its name."""
        path = self._file(prompt)
        if path is None:
            return None
        try:
            if self._whole.get(path.name) != _stamp(path):
                if path.name != self._name(prompt, path):
                    path.unlink()
                    return None
                self._whole[path.name] = _stamp(path)
            self._use(path)
        except OSError:
            return None
        return path.name

    def unfinished(self) -> str:
        """Return a name for the engine to write to, in the folder."""
        return f"{os.getpid()}-{time.monotonic_ns()}{_UNFINISHED}"

    def keep(self, prompt: str, written: str) -> bool:
        """Take the file that the engine wrote for a prompt; remove older files to make room."""
        path = self.folder / written
        try:
            path.chmod(0o600)
            name = self._name(prompt, path)
            if (before := self._file(prompt)) is not None:
                self.drop(before.name)
            path.replace(self.folder / name)
            self._whole[name] = _stamp(self.folder / name)
        except OSError:
            self.drop(written)
            return False
        self._make_room()
        return True

    def drop(self, name: str) -> None:
        """Remove a file."""
        self._whole.pop(name, None)
        with suppress(OSError):
            (self.folder / name).unlink(missing_ok=True)

    def _use(self, path: Path) -> None:
        whole = self._whole.get(path.name) == _stamp(path)
        os.utime(path)
        if whole:
            self._whole[path.name] = _stamp(path)

    def _file(self, prompt: str) -> Path | None:
        begin = f"{self._maker}-{digest(prompt)}-"
        try:
            return next((path for path in self.folder.iterdir() if path.name.startswith(begin)), None)
        except OSError:
            return None

    def _name(self, prompt: str, path: Path) -> str:
        content = blake2b(digest_size=16)
        with path.open("rb") as file:
            while block := file.read(2**20):
                content.update(block)
        return f"{self._maker}-{digest(prompt)}-{content.hexdigest()}.slot"

    def _being_written(self, path: Path) -> bool:
        return path.name.endswith(_UNFINISHED) and time.time() - path.stat().st_mtime < UNFINISHED_S

    def _make_room(self) -> None:
        with suppress(OSError):
            known = [(path, path.stat()) for path in self.folder.iterdir() if _NAME.fullmatch(path.name)]
            known.sort(key=lambda one: one[1].st_mtime_ns, reverse=True)
            total = 0
            for count, (path, stat) in enumerate(known, 1):
                total += stat.st_size
                if count > FILES or total > BYTES:
                    self.drop(path.name)


def _stamp(path: Path) -> tuple[int, int, int]:
    stat = path.stat()
    return stat.st_ino, stat.st_size, stat.st_mtime_ns
