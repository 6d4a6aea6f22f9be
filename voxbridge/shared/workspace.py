"""The workspace: the folders that functions may read files from and write files into.

Owns how a path that was spoken or written becomes a file, and that no file outside the roots is reached: every component is opened relative
to the handle of its folder, and a link is never followed, so swapping a folder for a link between two steps leads nowhere. Does not own
how a file is used. All methods block; call them in a thread. A crash leaves at most a hidden file of the write it cut off.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Final, Literal

from voxbridge.shared.errors import Code, VoxbridgeError
from voxbridge.shared.folder_handles import CANDIDATES, meaning, missing, no_file, read, refuse_link, short, write
from voxbridge.shared.spoken_paths import near, parts_of, written

READ_LIMIT: Final = 1024 * 1024
"""Bytes of a file that is read, and of one that is written."""

LIST_LIMIT: Final = 5_000
"""Entries of folders that one listing looks at."""

DEPTH_LIMIT: Final = 24
"""Folders below one another that a listing enters."""

SKIPPED: Final = frozenset({"node_modules", "__pycache__", "venv", "site-packages"})
"""Folders that a listing does not enter, beside hidden ones: what is in them was not written here."""

_FORBIDDEN_ROOTS: Final = ("/proc", "/sys", "/dev")
_FOLDER: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_READ: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
Kind = Literal["file", "folder"]


@dataclass(frozen=True, slots=True)
class Place:
    """A file or folder of the workspace: the root it is in, and its path below that. The root itself has no parts."""

    root: Path
    parts: tuple[str, ...]
    kind: Kind

    @property
    def name(self) -> str:
        """Path below the root, with `/`; `.` for the root."""
        return "/".join(self.parts) or "."

    @property
    def path(self) -> Path:
        """Absolute path, to show it; do not open it."""
        return self.root.joinpath(*self.parts)


@dataclass(frozen=True, slots=True)
class Listing:
    """Files of a folder in the order of their paths. `complete` is false if a limit left some out."""

    places: tuple[Place, ...]
    complete: bool


class Workspace:
    """The roots, in order of preference. What is new is written into the first one.

    With `make`, the first root is made when it is first used; a root that is missing otherwise is `UNAVAILABLE`.
    """

    def __init__(self, roots: Sequence[Path | str], *, make: bool = False) -> None:
        if not roots:
            raise ValueError("a workspace has one root or more")
        self.roots = tuple(Path(os.path.normpath(Path(root).expanduser().absolute())) for root in roots)
        self.makes_first = make
        for root in self.roots:
            real = Path(os.path.realpath(root))
            if real == Path("/") or any(real.is_relative_to(one) for one in _FORBIDDEN_ROOTS):
                message = f"VOXBRIDGE_WORKSPACE_DIRS: {root} cannot be a workspace. Name folders that hold projects."
                raise VoxbridgeError(Code.INVALID_ARGUMENT, message, field="VOXBRIDGE_WORKSPACE_DIRS")

    def faults(self) -> list[tuple[Path, str]]:
        """Return the roots that cannot be used, each with the reason: missing, no folder, not readable, or not writable."""
        found = []
        for root in self.roots:
            if not root.exists():
                if self.makes_first and root == self.roots[0]:
                    continue
                found.append((root, "does not exist"))
            elif not root.is_dir():
                found.append((root, "is no folder"))
            elif not os.access(root, os.R_OK | os.X_OK):
                found.append((root, "is not readable"))
            elif not os.access(root, os.W_OK):
                found.append((root, "is not writable"))
        return found

    def find(self, said: str, *, kind: Kind | None = None) -> Place:
        """Return the file or folder that a spoken or written path means: one that has this path, else the only one whose path ends like it.

        Raises `NOT_FOUND`, `PERMISSION_DENIED` for a path that leads out, and `INVALID_ARGUMENT` that names the candidates if several fit.
        """
        relative = self._inside(said)
        for root, parts in relative:
            place = self._at(root, parts)
            if place is not None and (kind is None or place.kind == kind):
                return place
        if said.strip().startswith("/"):
            raise missing(said)
        wanted = parts_of(written(said))
        listed = self.listing(kind=kind).places
        names = [place.name for place in listed]
        found = [listed[index] for index in near(wanted, names)]
        if len(found) == 1:
            return found[0]
        if not found:
            raise missing(said, names)
        told = ", ".join(place.name for place in found[:CANDIDATES])
        more = f" and {len(found) - CANDIDATES} more" if len(found) > CANDIDATES else ""
        raise VoxbridgeError(Code.INVALID_ARGUMENT, f"Several fit {short(said)}: {told}{more}. Say which one.", field="path")

    def read_bytes(self, place: Place | str, *, limit: int = READ_LIMIT) -> bytes:
        """Return the bytes of a file. Raises `TOO_LARGE` beyond the limit, `INVALID_ARGUMENT` for what is not a regular file."""
        place = self.find(place, kind="file") if isinstance(place, str) else place
        if not place.parts:
            raise no_file(place.name)
        with meaning(place.name), self._folder(place.root, place.parts[:-1]) as folder, ExitStack() as closing:
            name = place.parts[-1]
            refuse_link(name, folder, place.name)
            if not stat.S_ISREG(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode):
                raise no_file(place.name)  # a device is not even opened
            handle = os.open(name, _READ, dir_fd=folder)
            closing.callback(os.close, handle)
            seen = os.fstat(handle)
            if not stat.S_ISREG(seen.st_mode):
                raise no_file(place.name)
            content = read(handle, limit + 1) if seen.st_size <= limit else b""
            if seen.st_size > limit or len(content) > limit:
                message = f"{place.name} has more than {limit:,} bytes. Choose a smaller file."
                raise VoxbridgeError(Code.TOO_LARGE, message, field="path", limit=limit)
            return content

    def read_text(self, place: Place | str, *, limit: int = READ_LIMIT) -> str:
        """Return the text of a file in UTF-8, without a mark at its beginning. Raises as `read_bytes`, and `INVALID_ARGUMENT` for other
        bytes."""
        place = self.find(place, kind="file") if isinstance(place, str) else place
        content = self.read_bytes(place, limit=limit)
        try:
            text = content.decode("utf-8-sig")
        except UnicodeDecodeError as error:
            message = f"{place.name} is not text in UTF-8 (byte {error.start}). Choose a text file, or convert it."
            raise VoxbridgeError(Code.INVALID_ARGUMENT, message, field="path") from error
        if "\0" in text:
            raise VoxbridgeError(Code.INVALID_ARGUMENT, f"{place.name} holds binary data. Choose a text file.", field="path")
        return text

    def listing(
        self,
        below: Place | None = None,
        *,
        kind: Kind | None = "file",
        suffixes: tuple[str, ...] = (),
        limit: int = LIST_LIMIT,
        depth: int = DEPTH_LIMIT,
    ) -> Listing:
        """Return the files below a folder, or below all roots; folders as well with `kind=None`, or alone.

        Links, hidden entries and `SKIPPED` folders are left out. `suffixes` such as `(".py",)` choose files by their name.
        """
        starts = [(below.root, below.parts)] if below is not None else [(root, ()) for root in self.roots]
        walk = _Walk(limit, depth)
        for root, parts in starts:
            with _absent(optional=below is None), meaning("/".join(parts) or "."), self._folder(root, parts) as folder:
                walk.enter(root, parts, folder)
        chosen = [
            place
            for place in walk.places
            if (kind is None or place.kind == kind) and (place.kind == "folder" or not suffixes or place.parts[-1].endswith(suffixes))
        ]
        return Listing(tuple(sorted(chosen, key=lambda place: (self.roots.index(place.root), place.parts))), walk.complete)

    def write(self, path: str, text: str, *, replace: bool = False) -> Place:
        """Write a file as a whole, or not at all, and return it. Missing folders on its way are made.

        Raises `CONFLICT` if there is one and `replace` is not set, `TOO_LARGE` beyond `READ_LIMIT`, and as `find` does.
        """
        content = text.encode()
        if len(content) > READ_LIMIT:
            message = f"The text has {len(content):,} bytes; a file may have {READ_LIMIT:,}."
            raise VoxbridgeError(Code.TOO_LARGE, message, limit=READ_LIMIT)
        root, parts = self._new(path)
        name = "/".join(parts)
        with meaning(name), self._folder(root, parts[:-1], make=True) as folder:
            write(folder, parts[-1], content, replace=replace, told=name)
        return Place(root, parts, "file")

    def make_folder(self, path: str) -> Place:
        """Make a folder and return it; of two that try, one succeeds. Raises `CONFLICT` if it exists, and as `write` does."""
        root, parts = self._new(path)
        name = "/".join(parts)
        with meaning(name), self._folder(root, parts[:-1], make=True) as folder:
            try:
                os.mkdir(parts[-1], 0o755, dir_fd=folder)
            except FileExistsError as error:
                raise VoxbridgeError(Code.CONFLICT, f"{name} exists. Choose another name.", field="path") from error
        return Place(root, parts, "folder")

    def remove(self, place: Place, content_sha256: str) -> bool:
        """Delete a file that still has this content (SHA-256, in hex); return whether there was one. Raises `CONFLICT` for one that was
        changed, and as `read_bytes` does."""
        try:
            found = self.read_bytes(place)
        except VoxbridgeError as error:
            if error.code == Code.NOT_FOUND:
                return False
            raise
        if sha256(found).hexdigest() != content_sha256:
            raise VoxbridgeError(Code.CONFLICT, f"{place.name} was changed since, so it stays.", field="path")
        with meaning(place.name), self._folder(place.root, place.parts[:-1]) as folder:
            os.unlink(place.parts[-1], dir_fd=folder)
        return True

    def remove_folder(self, place: Place) -> None:
        """Delete a folder if nothing is in it; one that is missing is not an error. Raises `CONFLICT` for one that holds something."""
        with meaning(place.name), self._folder(place.root, place.parts[:-1]) as folder, suppress(FileNotFoundError):
            try:
                os.rmdir(place.parts[-1], dir_fd=folder)
            except OSError as error:
                if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
                    raise
                raise VoxbridgeError(Code.CONFLICT, f"{place.name} holds other files, so it stays.", field="path") from error

    # --- the inside ---

    def _inside(self, said: str) -> list[tuple[Path, tuple[str, ...]]]:
        """Return where a path may lie as it is written: below each root, or below the one that an absolute path names."""
        text = said.strip()
        parts = parts_of(text)
        if not text.startswith("/"):
            return [(root, parts) for root in self.roots]
        whole = Path("/").joinpath(*parts)
        for root in self.roots:
            for base in (root, Path(os.path.realpath(root))):
                if whole.is_relative_to(base):
                    return [(root, whole.relative_to(base).parts)]
        raise VoxbridgeError(Code.PERMISSION_DENIED, f"{short(said)} is outside the workspace. Name a file below it.", field="path")

    def _new(self, path: str) -> tuple[Path, tuple[str, ...]]:
        root, parts = self._inside(path)[0]
        if not parts:
            raise VoxbridgeError(Code.INVALID_ARGUMENT, "The path names no file. Say a name.", field="path")
        if any(part.startswith(".") for part in parts):  # such as .git/hooks, which would be run
            message = f"{short(path)} is hidden; hidden files and folders are not written. Choose a name without a dot at its beginning."
            raise VoxbridgeError(Code.PERMISSION_DENIED, message, field="path")
        return root, parts

    def _at(self, root: Path, parts: tuple[str, ...]) -> Place | None:
        """Return what lies at exactly this path; None if nothing does."""
        told = "/".join(parts) or "."
        try:
            with meaning(told), self._folder(root, parts[:-1]) as folder:
                if not parts:
                    return Place(root, (), "folder")
                refuse_link(parts[-1], folder, told)
                mode = os.stat(parts[-1], dir_fd=folder, follow_symlinks=False).st_mode
        except VoxbridgeError as error:
            if error.code == Code.NOT_FOUND:
                return None
            raise
        if stat.S_ISDIR(mode):
            return Place(root, parts, "folder")
        if stat.S_ISREG(mode):
            return Place(root, parts, "file")
        raise no_file(told)

    @contextmanager
    def _folder(self, root: Path, parts: tuple[str, ...], *, make: bool = False) -> Iterator[int]:
        """Hold a folder open: each component relative to the one before, none of them a link."""
        with ExitStack() as closing:
            if self.makes_first and root == self.roots[0]:
                root.mkdir(mode=0o755, parents=True, exist_ok=True)
            try:
                handle = os.open(root, _FOLDER)
            except OSError as error:
                message = f"The workspace folder {root} cannot be opened: {error.strerror}. Make it, or change VOXBRIDGE_WORKSPACE_DIRS."
                raise VoxbridgeError(Code.UNAVAILABLE, message, retryable=False) from error
            closing.callback(os.close, handle)
            for index, part in enumerate(parts):
                if make:
                    with suppress(FileExistsError):
                        os.mkdir(part, 0o755, dir_fd=handle)
                refuse_link(part, handle, "/".join(parts[: index + 1]))
                handle = os.open(part, _FOLDER | os.O_NOFOLLOW, dir_fd=handle)
                closing.callback(os.close, handle)
            yield handle


class _Walk:
    """A walk through folders by their handles, with a bound on entries and on depth."""

    def __init__(self, limit: int, depth: int) -> None:
        self.places: list[Place] = []
        self.complete = True
        self._left = limit
        self._depth = depth

    def enter(self, root: Path, parts: tuple[str, ...], folder: int, level: int = 0) -> None:
        """Take the entries of an open folder, then those of the folders in it."""
        below: list[str] = []
        with os.scandir(folder) as entries:
            for entry in entries:
                if self._left <= 0:
                    self.complete = False
                    break
                self._left -= 1
                if entry.name.startswith(".") or not entry.name.isprintable():
                    continue  # a name that is no UTF-8 holds surrogates, which are not printable
                if entry.is_dir(follow_symlinks=False) and entry.name not in SKIPPED:
                    below.append(entry.name)
                    self.places.append(Place(root, (*parts, entry.name), "folder"))
                elif entry.is_file(follow_symlinks=False):
                    self.places.append(Place(root, (*parts, entry.name), "file"))
        for name in sorted(below):
            if level >= self._depth:
                self.complete = False
                return
            with suppress(OSError):  # it went away, became a link, or may not be read
                handle = os.open(name, _FOLDER | os.O_NOFOLLOW, dir_fd=folder)
                try:
                    self.enter(root, (*parts, name), handle, level + 1)
                finally:
                    os.close(handle)


@contextmanager
def _absent(*, optional: bool) -> Iterator[None]:
    """Suppress `UNAVAILABLE` and `NOT_FOUND` where a root may be missing."""
    try:
        yield
    except VoxbridgeError as error:
        if not optional or error.code not in (Code.UNAVAILABLE, Code.NOT_FOUND):
            raise
