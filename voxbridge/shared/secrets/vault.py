"""Encryption at rest, in two forms: for the installation's key, with its public half; or under a key of its own for one record.

Owns the form of what is sealed. Under a key of its own: version byte 1, a random nonce of 12 bytes, AES-256-GCM with its tag; earlier
releases sealed under the installation's key like this, and that still opens. For the installation: version byte 2 and a sealed box (X25519,
XSalsa20-Poly1305). The name of a record is bound to it, so that one record cannot replace another. Owns nothing that is sealed. Losing the
key's file loses what was sealed for it, and nothing else.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from voxbridge.shared.secrets import sealed_box
from voxbridge.shared.secrets.sealed_box import WrongKey as WrongKey
from voxbridge.shared.secrets.secret_file import SecretFile

KEY_BYTES: Final = 32
VERSION: Final = 1
OLD: Final = ".old"
"""Suffix of the file with the previous key, while a rotation is under way."""

_NONCE_BYTES: Final = 12
OVERHEAD: Final = 1 + _NONCE_BYTES + 16
"""Bytes that sealing adds: version, nonce, tag. With random nonces a key is good for 2^32 records."""


def new_key() -> bytes:
    """Return a key for the records of one session: 32 random bytes. Deleting the key erases the records."""
    return os.urandom(KEY_BYTES)


def seal(key: bytes, data: bytes, *, name: str) -> bytes:
    """Encrypt `data`, `OVERHEAD` bytes longer, to be opened under the same name only."""
    nonce = os.urandom(_NONCE_BYTES)
    return bytes((VERSION,)) + nonce + AESGCM(key).encrypt(nonce, data, _bound(name))


def unseal(key: bytes, sealed: bytes, *, name: str) -> bytes:
    """Return the data that was sealed; raises `WrongKey`."""
    if len(sealed) < OVERHEAD or sealed[0] != VERSION:
        raise WrongKey(f"{name} cannot be opened: it is damaged, or was sealed by a newer release.")
    try:
        return AESGCM(key).decrypt(sealed[1 : 1 + _NONCE_BYTES], sealed[1 + _NONCE_BYTES :], _bound(name))
    except InvalidTag:
        raise WrongKey(f"{name} cannot be opened: it was sealed with another key, or changed since.") from None


class Vault:
    """The installation's key in its file, for processes that open. The file is read when it is first needed, and created when something is
    first sealed. When a record does not open, the file is read again, since it may have been replaced; then the previous key is tried while
    its file (`.old`) exists."""

    def __init__(self, file: SecretFile) -> None:
        self._file = file
        self._key = b""

    def seal(self, data: bytes, *, name: str) -> bytes:
        """Encrypt with the public key; raises `UNAVAILABLE` in one line when the key's file cannot be used."""
        return sealed_box.seal(sealed_box.key_in(self._file, self._file.ensure()), data, name)

    def unseal(self, sealed: bytes, *, name: str) -> bytes:
        """Decrypt; raises `WrongKey`, or `UNAVAILABLE` when the key's file cannot be used."""
        try:
            if self._key:
                return _opened(self._key, sealed, name)
        except WrongKey:
            pass  # the file may hold another key now
        found = self._file.read()
        if found is None:
            raise WrongKey(f"{name} cannot be opened: there is no vault key at {self._file.path}.")
        self._key = sealed_box.key_in(self._file, found)
        try:
            return _opened(self._key, sealed, name)
        except WrongKey:
            before = self._file.beside(OLD).read()
            if before is None:
                raise
            return _opened(sealed_box.key_in(self._file, before), sealed, name)

    def is_current(self, sealed: bytes, *, name: str) -> bool:
        """Return whether this opens with the key now in the file, and has the current form."""
        found = self._file.read()
        if found is None or not sealed_box.is_one(sealed):
            return False
        try:
            _opened(sealed_box.key_in(self._file, found), sealed, name)
        except WrongKey:
            return False
        return True

    def publish(self, path: Path) -> None:
        """Write the public key to `path` for processes that only seal; creates the vault key if there is none."""
        sealed_box.publish(self._file, path)


def _opened(key: bytes, sealed: bytes, name: str) -> bytes:
    return sealed_box.unseal(key, sealed, name) if sealed_box.is_one(sealed) else unseal(key, sealed, name=name)


def _bound(name: str) -> bytes:
    return b"voxbridge:%d:%s" % (VERSION, name.encode())
