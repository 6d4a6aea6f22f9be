"""Trained routers on disk: a start reads in milliseconds what takes seconds of a processor to train, and more on a busy machine.

Owns the folder `routers` of the data folder (0700): one file for each set of functions. Its name is a digest of everything that a router is
trained on, this release's rules included, so an old file is never used for a new set. A file holds what functions say of themselves and
nothing of a conversation. A crash here leaves an incomplete file under a name of its own, which the next writing removes.
"""

from __future__ import annotations

import os
import tempfile
import zipfile
from collections.abc import Sequence
from contextlib import suppress
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Final

import msgspec
import numpy as np

from voxbridge.services.models import choice
from voxbridge.services.models.choice.meanings import Meanings
from voxbridge.services.models.choice.router import Known, Router

FILES: Final = 8
"""Files kept; the one used longest ago goes first. One of 80 functions has 10 MB."""

_ENDING: Final = ".npz"
_UNFINISHED: Final = ".new"


class RouterFiles:
    """The files of an installation. The methods access the disk: call them in a thread. None of them raises: without a disk, routers are
    trained again."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def read(self, functions: Sequence[Known], table: Meanings) -> Router | None:
        """Return the router of a set of functions, or None if there is none. A file that does not fit is removed."""
        path = self._path(functions)
        try:
            with path.open("rb") as file, np.load(file, allow_pickle=False) as arrays:
                router = Router(functions, table, dict(arrays))
            os.utime(path)
        except FileNotFoundError:
            return None
        except (OSError, ValueError, KeyError, IndexError, EOFError, zipfile.BadZipFile):
            with suppress(OSError):
                path.unlink()
            return None
        return router

    def has(self, functions: Sequence[Known]) -> bool:
        """Tell whether there is a file of a set of functions."""
        return self._path(functions).exists()

    def write(self, functions: Sequence[Known], router: Router) -> None:
        """Keep the router of a set of functions."""
        with suppress(OSError):
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._folder.chmod(0o700)
            for left in self._folder.glob(f"*{_UNFINISHED}"):
                left.unlink(missing_ok=True)
            handle, name = tempfile.mkstemp(suffix=_UNFINISHED, dir=self._folder)
            with os.fdopen(handle, "wb") as file:
                np.savez(file, allow_pickle=False, **router.arrays())
            Path(name).replace(self._path(functions))
            files = sorted(self._folder.glob(f"*{_ENDING}"), key=lambda path: path.stat().st_mtime, reverse=True)
            for old in files[FILES:]:
                old.unlink(missing_ok=True)

    def _path(self, functions: Sequence[Known]) -> Path:
        return self._folder / f"{sha256(_rules() + msgspec.msgpack.encode(functions)).hexdigest()[:48]}{_ENDING}"


@cache
def _rules() -> bytes:
    """Return a digest of what routers are made by: the modules beside `router`, their lines and their table of meanings."""
    found = sha256(np.__version__.encode())
    for path in sorted(Path(choice.__file__).parent.iterdir()):
        if path.is_file():
            found.update(sha256(path.read_bytes()).digest())
    return found.digest()
