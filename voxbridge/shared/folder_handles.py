"""Work on the handle of an open folder: a file is read or written in it, and errors of the operating system get a meaning.

Owns that a file appears as a whole or not at all, and the sentences of errors. Does not own where a path may lead
(`voxbridge.shared.workspace`).
"""

from __future__ import annotations

import errno
import os
import secrets
import stat
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Final

from voxbridge.shared.errors import Code, VoxbridgeError
from voxbridge.shared.spoken_paths import suggestions

CANDIDATES: Final = 5
"""Candidates that an error names."""

_NEW: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_NO_HARD_LINKS: Final = frozenset({errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK})


@contextmanager
def meaning(name: str) -> Iterator[None]:
    """Turn errors of the operating system into ours."""
    try:
        yield
    except OSError as error:
        raise _explained(error, name) from error


def _explained(error: OSError, name: str) -> VoxbridgeError:
    if error.errno in (errno.ENOENT, errno.ENOTDIR):
        return missing(name)
    if error.errno in (errno.ENAMETOOLONG, errno.EINVAL, errno.ENXIO, errno.EISDIR):
        return VoxbridgeError(Code.INVALID_ARGUMENT, f"{short(name)} cannot be used: {error.strerror}. Choose another.", field="path")
    if error.errno == errno.ELOOP:
        return _link(name)
    if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
        return VoxbridgeError(Code.PERMISSION_DENIED, f"{short(name)} may not be used: {error.strerror}.", field="path")
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return VoxbridgeError(Code.UNAVAILABLE, "The disk of the workspace is full. Free some space.", retryable=False)
    return VoxbridgeError(Code.UNAVAILABLE, f"{short(name)} cannot be used now: {error.strerror}.")


def refuse_link(name: str, folder: int, told: str) -> None:
    """Refuse a link by name: opening it would fail too, with an error that says less."""
    with suppress(FileNotFoundError):
        if stat.S_ISLNK(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode):
            raise _link(told)


def read(handle: int, limit: int) -> bytes:
    """Return the content of an open file, up to a number of bytes."""
    pieces = bytearray()
    while len(pieces) < limit and (piece := os.read(handle, limit - len(pieces))):
        pieces += piece
    return bytes(pieces)


def write(folder: int, name: str, content: bytes, *, replace: bool, told: str) -> None:
    """Write beside the file and put it into its place in one step."""
    beside = f".vx-{secrets.token_hex(8)}.tmp"
    _create(folder, beside, content)
    try:
        if replace:
            refuse_link(name, folder, told)
            with suppress(FileNotFoundError):
                if not stat.S_ISREG(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode):
                    raise no_file(told)
            os.rename(beside, name, src_dir_fd=folder, dst_dir_fd=folder)
            return
        _put(lambda: os.link(beside, name, src_dir_fd=folder, dst_dir_fd=folder, follow_symlinks=False), folder, name, content, told)
    finally:
        with suppress(FileNotFoundError):
            os.unlink(beside, dir_fd=folder)


def _put(link: Callable[[], None], folder: int, name: str, content: bytes, told: str) -> None:
    """Give the file its name, unless the name is taken; where the disk has no hard links, write it under its name."""
    try:
        try:
            link()
        except OSError as error:
            if error.errno not in _NO_HARD_LINKS:
                raise
            _create(folder, name, content)
    except FileExistsError as error:
        raise VoxbridgeError(Code.CONFLICT, f"{told} exists. Choose another name.", field="path") from error


def _create(folder: int, name: str, content: bytes) -> None:
    handle = os.open(name, _NEW, 0o644, dir_fd=folder)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
    except BaseException:
        with suppress(OSError):
            os.unlink(name, dir_fd=folder)
        raise


def short(text: str) -> str:
    """Return a name as it may be told: one line, without what cannot be shown."""
    clean = "".join(letter if letter.isprintable() else "?" for letter in text.strip())
    return clean if len(clean) <= 80 else clean[:79] + "…"


def missing(said: str, names: Sequence[str] = ()) -> VoxbridgeError:
    """Build the error for a path that is not there; of the names that are, it tells those that look like it."""
    alike = suggestions(said, names, count=CANDIDATES)
    do = f"Did you mean {' or '.join(alike)}?" if alike else "Say its name again, or its path."
    return VoxbridgeError(Code.NOT_FOUND, f"Nothing in the workspace is called {short(said)}. {do}", field="path")


def no_file(name: str) -> VoxbridgeError:
    """Build the error for what is not a regular file."""
    return VoxbridgeError(Code.INVALID_ARGUMENT, f"{short(name)} is not a regular file. Name a file.", field="path")


def _link(name: str) -> VoxbridgeError:
    return VoxbridgeError(Code.PERMISSION_DENIED, f"{short(name)} is a link; links are not followed. Name the file itself.", field="path")
