"""Secrets that the operator put into files, such as a password of Valkey or the seed of a user of NATS.

Owns how such a file is read. Does not own secrets that Voxbridge creates (`voxbridge.shared.secrets.secret_file`). Keeps nothing, so a
crash loses nothing.
"""

from __future__ import annotations

from pathlib import Path

from voxbridge.shared.errors import Code, VoxbridgeError


def read_secret(path: str, variable: str) -> str:
    """Return the secret in a file; raises `INVALID_ARGUMENT` that names the variable, never the content of the file."""
    try:
        found = Path(path).expanduser().read_text(encoding="ascii").strip()
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not text"
        raise VoxbridgeError(Code.INVALID_ARGUMENT, f"{variable} names {path}, which cannot be read: {why}.", field=variable) from error
    if not found:
        raise VoxbridgeError(Code.INVALID_ARGUMENT, f"{variable} names {path}, which is empty.", field=variable)
    return found
