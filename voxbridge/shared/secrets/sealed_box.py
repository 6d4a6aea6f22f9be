"""Sealed boxes (X25519, XSalsa20-Poly1305): any process with the public key seals, and only the holder of the vault key opens.

Owns the form: version byte 2, then the box, in which the name of the record precedes its bytes. Separate from
`voxbridge.shared.secrets.vault`, because a process that only seals, and the command that makes the files, needs no more than this. Owns
nothing that is sealed.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import os
from pathlib import Path
from typing import Final

from nacl.exceptions import CryptoError
from nacl.public import PrivateKey, PublicKey, SealedBox

from voxbridge.shared.errors import Code, VoxbridgeError
from voxbridge.shared.secrets.secret_file import SecretFile

KEY_BYTES: Final = 32
VERSION: Final = 2
_LENGTH: Final = 2


class WrongKey(VoxbridgeError):
    """Error of a sealed record that does not open: it was sealed with another key or under another name, or it was changed."""

    def __init__(self, message: str) -> None:
        super().__init__(Code.INTERNAL, message, retryable=False)


class Sealer:
    """Public key that seals for the holder of the vault key, and opens nothing. The file is read each time, since its key may have been
    replaced."""

    def __init__(self, path: Path, *, variable: str) -> None:
        self.path = path
        self._variable = variable

    def seal(self, data: bytes, *, name: str) -> bytes:
        """Encrypt, to be opened under the same name only; raises `UNAVAILABLE` in one line when the file cannot be used."""
        return _sealed(self._key(), data, name)

    def _key(self) -> PublicKey:
        try:
            key = _plain(self.path.read_text(encoding="ascii").strip())
        except FileNotFoundError:
            raise self._broken("is not there: `voxbridge up`, `voxbridge admin credentials` and voxbridge/services/voice make it") from None
        except (OSError, UnicodeError) as error:
            raise self._broken(f"cannot be read ({type(error).__name__}). Make it readable for the user of Voxbridge") from error
        if len(key) != KEY_BYTES:
            raise self._broken(f"does not hold {KEY_BYTES} bytes in base64. Put the right file back")
        return PublicKey(key)

    def _broken(self, why: str) -> VoxbridgeError:
        message = f"The public vault key {self.path} {why}, or let {self._variable} name another."
        return VoxbridgeError(Code.UNAVAILABLE, message, field=self._variable, retryable=False)


def is_one(sealed: bytes) -> bool:
    """Return whether this is a sealed box, by its first byte."""
    return sealed[:1] == bytes((VERSION,))


def seal(key: bytes, data: bytes, name: str) -> bytes:
    """Encrypt for the holder of this vault key."""
    return _sealed(_private(key).public_key, data, name)


def unseal(key: bytes, sealed: bytes, name: str) -> bytes:
    """Return the data that was sealed for this vault key under this name; raises `WrongKey`."""
    try:
        plain = SealedBox(_private(key)).decrypt(sealed[1:])
    except CryptoError:
        raise WrongKey(f"{name} cannot be opened: it was sealed with another key, or changed since.") from None
    end = _LENGTH + int.from_bytes(plain[:_LENGTH], "big")
    if plain[_LENGTH:end] != name.encode():
        raise WrongKey(f"{name} cannot be opened: it was sealed under another name.")
    return plain[end:]


def key_in(file: SecretFile, text: str) -> bytes:
    """Return the vault key in the text of this file; raises `UNAVAILABLE`."""
    key = _plain(text)
    if len(key) != KEY_BYTES:
        raise file.broken(f"does not hold {KEY_BYTES} bytes in base64. Put the right file back")
    return key


def publish(file: SecretFile, path: Path) -> None:
    """Write the public half of the vault key in `file` to `path`, for processes that only seal, unless it is there already; create the
    vault key if there is none. Raises `UNAVAILABLE`."""
    text = base64.b64encode(bytes(_private(key_in(file, file.ensure())).public_key)).decode()
    try:
        if path.exists() and path.read_text(encoding="ascii").strip() == text:
            return
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        part = path.with_name(f".{path.name}.{os.getpid()}.part")
        part.write_text(text, encoding="ascii")
        part.replace(path)
    except OSError as error:
        why = (error.strerror or str(error)).lower()
        raise VoxbridgeError(Code.UNAVAILABLE, f"The public vault key {path} cannot be written: {why}.", retryable=False) from error


def _sealed(public: PublicKey, data: bytes, name: str) -> bytes:
    bound = name.encode()
    return bytes((VERSION,)) + SealedBox(public).encrypt(len(bound).to_bytes(_LENGTH, "big") + bound + data)


def _private(key: bytes) -> PrivateKey:
    # The key in the file itself opens what earlier releases sealed with it, so the private key is derived from it.
    return PrivateKey(hashlib.blake2b(b"voxbridge vault", key=key, digest_size=KEY_BYTES, person=b"x25519").digest())


def _plain(text: str) -> bytes:
    try:
        return base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_" if set(text) & set("-_") else b"+/", validate=True)
    except binascii.Error:
        return b""
