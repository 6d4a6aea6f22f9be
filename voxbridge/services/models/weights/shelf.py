"""The folder of verified weights: the path of a file, whether it is there, and whether it has the right bytes.

A file counts as present when a stamp beside it (`.NAME.verified`) says that these bytes, by size and modification time, were once hashed to
the manifest's digest; so a second start does not hash a gigabyte again. A crash here loses a stamp at most, and the file is hashed again.
"""

from __future__ import annotations

import errno
import hashlib
import os
from contextlib import suppress
from enum import StrEnum
from pathlib import Path

import msgspec

from voxbridge.services.models.weights.manifest import File, Model
from voxbridge.shared.errors import Code, VoxbridgeError

CHUNK = 1 << 20
PARTIAL = ".partial"


class State(StrEnum):
    """The state of a file, known without hashing it."""

    VERIFIED = "verified"
    UNVERIFIED = "unverified"
    MISSING = "missing"


class Stamp(msgspec.Struct, frozen=True):
    """A digest, and the size and modification time of the file it was computed from."""

    sha256: str
    bytes: int
    mtime_ns: int


def digest(path: Path) -> str:
    """Return the SHA-256 of a file, in hex."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def refusal(error: OSError, path: Path) -> VoxbridgeError:
    """Return an actionable error for a file that could not be written."""
    if error.errno in {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}:
        return VoxbridgeError(
            Code.UNAVAILABLE,
            f"No room left to write {path}. Free some space, or set VOXBRIDGE_MODELS_DIR to a folder on another disk, and start again: "
            "what was fetched is kept.",
            field="VOXBRIDGE_MODELS_DIR",
            retryable=False,
        )
    return VoxbridgeError(
        Code.PERMISSION_DENIED,
        f"Cannot write {path}: {error.strerror}. Make the folder writable, or set VOXBRIDGE_MODELS_DIR to one that is.",
        field="VOXBRIDGE_MODELS_DIR",
    )


class Shelf:
    """The folder `root`, with one subfolder for each model."""

    def __init__(self, root: Path) -> None:
        self.root = root.expanduser()

    def path(self, model: Model, file: File) -> Path:
        """Return the path of the file."""
        return self.root / model.id / file.name

    def partial(self, file: File) -> Path:
        """Return the path of the file while it is fetched. It is named by digest, so that an old file is never continued after the manifest
        changed."""
        return self.root / PARTIAL / f"{file.sha256[:16]}-{file.name}"

    def state(self, model: Model, file: File) -> State:
        """Return the state of the file by its stamp, without reading it."""
        path = self.path(model, file)
        try:
            status = path.stat()
        except (FileNotFoundError, NotADirectoryError):
            return State.MISSING
        expected = Stamp(file.sha256, status.st_size, status.st_mtime_ns)
        return State.VERIFIED if status.st_size == file.bytes and _read_stamp(path) == expected else State.UNVERIFIED

    def verify(self, model: Model, file: File) -> bool:
        """Hash the file, and stamp it if it is the right one. Return false when it is missing or has other bytes."""
        path = self.path(model, file)
        if not path.is_file() or path.stat().st_size != file.bytes or digest(path) != file.sha256:
            with suppress(OSError):
                _stamp_path(path).unlink()
            return False
        _write_stamp(path, file)
        return True

    def missing(self, model: Model) -> list[File]:
        """Return the files of a model that have to be fetched. A file without a stamp is hashed first."""
        return [file for file in model.files if self.state(model, file) is not State.VERIFIED and not self.verify(model, file)]

    def prepare(self, model: Model) -> None:
        """Make the folders of a model. Raises `PERMISSION_DENIED` or `UNAVAILABLE`."""
        for folder in (self.root / model.id, self.root / PARTIAL):
            try:
                folder.mkdir(parents=True, exist_ok=True)
            except OSError as error:
                raise refusal(error, folder) from error
            if not os.access(folder, os.W_OK):
                raise refusal(PermissionError(errno.EACCES, os.strerror(errno.EACCES)), folder)

    def commit(self, model: Model, file: File, source: str) -> None:
        """Move a finished partial file to its place, if its digest is the manifest's; else remove it and raise `PROVIDER_REFUSED`."""
        partial, path = self.partial(file), self.path(model, file)
        found = digest(partial)
        if found != file.sha256:
            partial.unlink()
            raise VoxbridgeError(
                Code.PROVIDER_REFUSED,
                f"{model.id}/{file.name} from {source} has SHA-256 {found}, not {file.sha256} as in the manifest. It was not kept.",
                field=file.name,
                retryable=False,
            )
        partial.replace(path)
        _write_stamp(path, file)


def _stamp_path(path: Path) -> Path:
    return path.with_name(f".{path.name}.verified")


def _read_stamp(path: Path) -> Stamp | None:
    try:
        return msgspec.json.decode(_stamp_path(path).read_bytes(), type=Stamp)
    except (OSError, msgspec.DecodeError):
        return None


def _write_stamp(path: Path, file: File) -> None:
    status = path.stat()
    scratch = _stamp_path(path).with_suffix(".new")
    try:
        scratch.write_bytes(msgspec.json.encode(Stamp(file.sha256, status.st_size, status.st_mtime_ns)))
        scratch.replace(_stamp_path(path))
    except OSError as error:
        if error.errno not in {errno.EACCES, errno.EROFS, errno.EPERM}:
            raise refusal(error, path) from error
        # A read-only folder of weights is supported: its files are hashed at each start instead.
