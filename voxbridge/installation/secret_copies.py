"""Writing a secret into a file for its owner, completely or not at all, in place of the old content.

Owns how it is written. Does not own which secrets there are.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import Final

_PRIVATE: Final = 0o400


def write_secret(path: Path, text: str) -> None:
    """Replace the content of the file by `text`; raises `OSError`. An existing file keeps its mode."""
    mode = stat.S_IMODE(path.stat().st_mode) if path.exists() else _PRIVATE
    part = path.with_name(f".{path.name}.part")
    part.unlink(missing_ok=True)
    with os.fdopen(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode), "w", encoding="ascii") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    part.replace(path)
