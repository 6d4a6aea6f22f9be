"""Encryption at rest: AES-256-GCM under the installation's key, or under a key of its own for one record.

Owns the form of what is sealed: a version byte, a random nonce of 12 bytes, the ciphertext with its tag. The name of a record is
authenticated with it, so that one record cannot be put in the place of another. Owns nothing that is sealed. Losing the key's file
loses what was sealed with it, and nothing else.
"""

from __future__ import annotations

import base64
import binascii
import os
from typing import Final

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from shared.errors import Code, VoxbridgeError
from shared.secret_file import SecretFile

KEY_BYTES: Final = 32
VERSION: Final = 1
_NONCE_BYTES: Final = 12
OVERHEAD: Final = 1 + _NONCE_BYTES + 16
"""Bytes that sealing adds: version, nonce, tag. With random nonces a key is good for 2^32 records."""


class WrongKey(VoxbridgeError):
    """What was sealed does not open: it was sealed with another key or under another name, or it was changed."""

    def __init__(self, message: str) -> None:
        super().__init__(Code.INTERNAL, message, retryable=False)


def new_key() -> bytes:
    """A key for the records of one session: 32 random bytes. Whoever forgets it has erased them."""
    return os.urandom(KEY_BYTES)


def seal(key: bytes, data: bytes, *, name: str) -> bytes:
    """Encrypt `data`, `OVERHEAD` bytes longer, to be opened under the same name only."""
    nonce = os.urandom(_NONCE_BYTES)
    return bytes((VERSION,)) + nonce + AESGCM(key).encrypt(nonce, data, _bound(name))


def open(key: bytes, sealed: bytes, *, name: str) -> bytes:
    """What was sealed; raises `WrongKey`."""
    if len(sealed) < OVERHEAD or sealed[0] != VERSION:
        raise WrongKey(f"{name} cannot be opened: it is damaged, or was sealed by a newer release.")
    try:
        return AESGCM(key).decrypt(sealed[1 : 1 + _NONCE_BYTES], sealed[1 + _NONCE_BYTES :], _bound(name))
    except InvalidTag:
        raise WrongKey(f"{name} cannot be opened: it was sealed with another key, or changed since.") from None


class Vault:
    """The installation's key in its file. The file is read when it is first needed, and made when something is first sealed."""

    def __init__(self, file: SecretFile) -> None:
        self._file = file
        self._key = b""

    def seal(self, data: bytes, *, name: str) -> bytes:
        """Encrypt; raises `UNAVAILABLE` in one line when the key's file cannot be used."""
        if not self._key:
            self._key = self._decoded(self._file.ensure())
        return seal(self._key, data, name=name)

    def open(self, sealed: bytes, *, name: str) -> bytes:
        """Decrypt; raises `WrongKey`, or `UNAVAILABLE` when the key's file cannot be used."""
        if not self._key:
            found = self._file.read()
            if found is None:
                raise WrongKey(f"{name} cannot be opened: there is no vault key at {self._file.path}.")
            self._key = self._decoded(found)
        return open(self._key, sealed, name=name)

    def _decoded(self, text: str) -> bytes:
        try:
            key = base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
        except binascii.Error:
            key = b""
        if len(key) != KEY_BYTES:
            raise self._file.broken(f"does not hold {KEY_BYTES} bytes in base64. Put the right file back")
        return key


def _bound(name: str) -> bytes:
    return b"voxbridge:%d:%s" % (VERSION, name.encode())
