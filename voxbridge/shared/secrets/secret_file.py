"""Secrets in files of their own: 256 random bits as text, written once, completely or not at all, for their owner alone.

Owns how such a file is created, checked and read. Does not own what the secret is used for (`voxbridge.shared.secrets.vault`,
`voxbridge.services.gateway.door.admin_auth`). A crash here leaves either no file or a complete one.
"""

from __future__ import annotations

import os
import secrets
import stat
from contextlib import suppress
from pathlib import Path
from typing import Final

from voxbridge.shared.config import Config
from voxbridge.shared.errors import Code, VoxbridgeError

LENGTH: Final = 43
"""Characters of 256 bits in URL-safe base64 without padding; a shorter secret is refused."""

_LIMIT: Final = 4_096
_OTHERS: Final = stat.S_IRWXG | stat.S_IRWXO


def new_secret() -> str:
    """Return a secret of 256 random bits, `LENGTH` characters."""
    return secrets.token_urlsafe(32)


class SecretFile:
    """The secret file at `path`. Errors contain `what` it is and the `variable` that names it, and never its content."""

    def __init__(self, path: Path, *, what: str, variable: str) -> None:
        self.path = path
        self._what = what
        self._variable = variable

    def read(self) -> str | None:
        """Return the secret, or None while there is no file. Raises `UNAVAILABLE` in one line when the file cannot be used."""
        try:
            with self.path.open("rb") as file:
                mode = stat.S_IMODE(os.fstat(file.fileno()).st_mode)
                found = file.read(_LIMIT)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise self.broken(f"cannot be read: {_reason(error)}. Make it readable for the user of Voxbridge") from error
        if mode & _OTHERS:
            raise self.broken(f"may be read by others (mode {mode:04o}): run `chmod 600 {self.path}`, and make a new one if they did")
        text = found.decode("ascii", errors="replace").strip()
        if len(text) < LENGTH or not text.isprintable() or not text.isascii():
            raise self.broken(f"is too short or is not text: {LENGTH} characters are the least. Put the right file back")
        return text

    def ensure(self) -> str:
        """Return the secret, created now if there is none. Two processes that create it at once both get the one that is kept."""
        found = self.read()
        if found is None:
            try:
                self._make()
            except OSError as error:
                raise self.broken(f"cannot be written: {_reason(error)}. Make its folder writable") from error
            found = self.read()
        if found is None:
            raise self.broken("was removed as it was made")
        return found

    def beside(self, ending: str) -> SecretFile:
        """Return the file beside this one whose name has this ending added."""
        return SecretFile(self.path.with_name(f"{self.path.name}{ending}"), what=self._what, variable=self._variable)

    def broken(self, why: str) -> VoxbridgeError:
        """Build the error that says what is wrong with the file."""
        message = f"The {self._what} {self.path} {why}, or let {self._variable} name another."
        return VoxbridgeError(Code.UNAVAILABLE, message, field=self._variable, retryable=False)

    def _make(self) -> None:
        self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        part = self.path.with_name(f".{self.path.name}.{secrets.token_hex(8)}.part")
        try:
            with os.fdopen(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600), "w", encoding="ascii") as file:
                file.write(new_secret())
                file.flush()
                os.fsync(file.fileno())
            # A link never replaces an existing file, so the second process uses the first one's secret.
            with suppress(FileExistsError):
                self.path.hardlink_to(part)
        finally:
            part.unlink(missing_ok=True)
        folder = os.open(self.path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


def vault_key_file(config: Config) -> SecretFile:
    """Return the file of the key that seals the keys of providers."""
    return SecretFile(config.vault_key_path, what="vault key", variable="VOXBRIDGE_VAULT_KEY_FILE")


def admin_token_file(config: Config) -> SecretFile:
    """Return the file of the administrators' token."""
    return SecretFile(config.admin_token_path, what="administrators' token", variable="VOXBRIDGE_ADMIN_TOKEN_FILE")


def _reason(error: OSError) -> str:
    return (error.strerror or str(error)).lower()
