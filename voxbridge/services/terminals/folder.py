"""The private folder that the service and the holder of a host share."""

from __future__ import annotations

import hashlib
import os
import tempfile
from pathlib import Path
from typing import Final

from voxbridge.shared.errors import Code, VoxbridgeError

PATH_LIMIT: Final = 100
"""Bytes of a socket's path, of the 104 that every system takes."""

SCREENS: Final = "screens"
"""Folder in it, of what terminals showed."""

_LONGEST: Final = len("/holder.sock")


def place(named: Path) -> Path:
    """Return where the folder is: as it is named, unless the path of a socket in it is too long for the system."""
    whole = named.absolute()
    if len(os.fsencode(whole)) + _LONGEST <= PATH_LIMIT:
        return whole
    digest = hashlib.blake2s(os.fsencode(whole), digest_size=8).hexdigest()
    return Path(tempfile.gettempdir()) / f"voxbridge-terminals-{os.getuid()}-{digest}"


def private(named: Path) -> Path:
    """Make the folder, and return where it is. Raises `PERMISSION_DENIED` where others may read it."""
    whole = place(named)
    try:
        whole.mkdir(mode=0o700, parents=True, exist_ok=True)
        found = whole.stat()
    except OSError as error:
        message = f"The folder {whole} of the terminals cannot be made: {error.strerror}."
        raise VoxbridgeError(Code.PERMISSION_DENIED, message) from error
    if found.st_uid != os.getuid() or found.st_mode & 0o077:
        message = f"The folder {whole} of the terminals must be this user's alone: chmod 700 it, or remove it."
        raise VoxbridgeError(Code.PERMISSION_DENIED, message)
    return whole
