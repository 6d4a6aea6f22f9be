"""The credentials of an installation whose services have users of their own: created once, kept as files, one folder for each reader.

Owns the files: nkey seeds, passwords of Valkey, the vault key of the users that seal and open, the administrators' token, and the two
servers' configurations, which hold no secret but digests and public keys. Does not own what each user may do
(`voxbridge.shared.bus.permissions`). A crash here leaves what was there: a file appears completely or not at all.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import Final

import nkeys
from nacl.utils import random

from voxbridge.shared.bus.accounts import ADMIN, RECORDINGS
from voxbridge.shared.bus.permissions import RIGHTS
from voxbridge.shared.bus.permissions import valkey_users as users_of_valkey
from voxbridge.shared.embedded.nats_configuration import Place, configuration
from voxbridge.shared.errors import Code, VoxbridgeError
from voxbridge.shared.log.streams import AUDIO_MEMORY
from voxbridge.shared.secrets import sealed_box
from voxbridge.shared.secrets.secret_file import SecretFile, new_secret

NAMES: Final = (ADMIN, *RIGHTS)
SEED_FILE: Final = "nats.seed"
PASSWORD_FILE: Final = "redis.password"  # noqa: S105 - the name of a file
VAULT_FILE: Final = "vault.key"
TOKEN_FILE: Final = "admin.token"  # noqa: S105 - the name of a file
VAULT_HOLDERS: Final = ("voice", RECORDINGS)
"""Users that open what is sealed: keys of providers and of recordings. Valkey gives the last of them only the sealed keys of recordings."""

PUBLIC_FILE: Final = "vault.pub"
SEALERS: Final = ("gateway",)
"""Users that seal keys of providers and open none; earlier releases gave them the vault key."""

SECRETS_FILE: Final = "secrets.key"
SECRETS_HOLDERS: Final = ("tools",)
"""Users that open the secrets of accounts; `SEALERS` seal them with the public half."""

SECRETS_PUBLIC_FILE: Final = "secrets.pub"
TOKEN_HOLDERS: Final = ("gateway",)
_SERVERS: Final = ("nats", "valkey")
_LISTEN: Final = "0.0.0.0:4222"
_STORE: Final = "/store"
_SEED_BYTES: Final = 32
_PRIVATE: Final = 0o400
_PUBLIC: Final = 0o444


def make(folder: Path, *, sync_interval: str, max_file_store: str) -> list[str]:
    """Create what is missing in `folder`, and rewrite the servers' configurations; return the names of users that are new.

    Raises `INTERNAL` when a folder cannot be written.
    """
    try:
        for name in (*NAMES, *_SERVERS):
            (folder / name).mkdir(mode=0o700, parents=True, exist_ok=True)
        fresh = [name for name in NAMES if not (folder / name / SEED_FILE).exists()]
        for name in fresh:
            _write(folder / name / SEED_FILE, new_seed())
        passwords = {name: _password(folder, name) for name in NAMES}
        _same(folder, (*VAULT_HOLDERS, *SEALERS), VAULT_FILE, VAULT_HOLDERS)
        _same(folder, SECRETS_HOLDERS, SECRETS_FILE)
        _publish(folder)
        _same(folder, TOKEN_HOLDERS, TOKEN_FILE)
        keys = {name: public_key(folder / name / SEED_FILE) for name in NAMES}
        place = Place(
            listen=_LISTEN, store=_STORE, sync_interval=sync_interval, max_file_store=max_file_store, max_memory_store=AUDIO_MEMORY
        )
        _write(folder / "nats" / "nats.conf", nats_configuration(keys, place), _PUBLIC)
        _write(folder / "valkey" / "users.acl", valkey_users(passwords), _PUBLIC)
        _write(folder / "valkey" / "valkey.conf", VALKEY_CONFIGURATION, _PUBLIC)
    except OSError as error:
        why = (error.strerror or str(error)).lower()
        raise VoxbridgeError(Code.INTERNAL, f"{error.filename or folder} cannot be written: {why}.", retryable=False) from error
    return fresh


def nats_configuration(keys: Mapping[str, str], place: Place, *, monitor: str = "127.0.0.1:8222") -> str:
    """Return nats-server's configuration for these public keys. The monitor is on loopback: only the container's own probe reaches it."""
    return configuration(replace(place, more=f'http: "{monitor}"\n'), {name: f"nkey: {key}" for name, key in keys.items()})


VALKEY_CONFIGURATION: Final = """bind * -::*
protected-mode no
port 6379
aclfile /etc/voxbridge/users.acl
dir /store
appendonly yes
appendfsync everysec
save ""
maxmemory 512mb
maxmemory-policy noeviction
"""


def valkey_users(passwords: Mapping[str, str]) -> str:
    """Return Valkey's users: the services with their passwords, and a probe that may only ping."""
    digests = {name: sha256(password.encode()).hexdigest() for name, password in passwords.items()}
    # Valkey reads its own file back as the user `default`, so that user needs all rights; no password for this digest is known.
    nobody = secrets.token_hex(32)
    return f"user default on #{nobody} ~* &* +@all\n{users_of_valkey(digests)}user health on nopass -@all +ping\n"


def _password(folder: Path, name: str) -> str:
    own = folder / name / PASSWORD_FILE
    others = {path.read_text().strip() for other in NAMES if other != name and (path := folder / other / PASSWORD_FILE).exists()}
    known = own.read_text().strip() if own.exists() else ""
    if known and known not in others:
        return known
    # Earlier releases had one password for all users, with which one service could act as another.
    password = secrets.token_hex(24)
    _write(own, password)
    return password


def _publish(folder: Path) -> None:
    vault = SecretFile(folder / VAULT_HOLDERS[0] / VAULT_FILE, what="vault key", variable="VOXBRIDGE_VAULT_KEY_FILE")
    own = SecretFile(folder / SECRETS_HOLDERS[0] / SECRETS_FILE, what="key of secrets", variable="VOXBRIDGE_SECRETS_KEY_FILE")
    for name in SEALERS:
        for key, file in ((vault, PUBLIC_FILE), (own, SECRETS_PUBLIC_FILE)):
            sealed_box.publish(key, folder / name / file)
            (folder / name / file).chmod(_PRIVATE)
        (folder / name / VAULT_FILE).unlink(missing_ok=True)


def _same(folder: Path, known_by: Sequence[str], file: str, holders: Sequence[str] = ()) -> None:
    holders = holders or known_by
    known = next((path.read_text().strip() for name in known_by if (path := folder / name / file).exists()), "")
    secret = known or new_secret()
    for name in holders:
        if not (folder / name / file).exists():
            _write(folder / name / file, secret)


def new_seed() -> str:
    """Return a new, random seed of a user."""
    return bytes(nkeys.encode_seed(random(_SEED_BYTES), nkeys.PREFIX_BYTE_USER)).decode()


def public_key(seed_file: Path) -> str:
    """Return the public nkey that belongs to a seed."""
    pair = nkeys.from_seed(bytearray(seed_file.read_text().strip().encode()))
    public = bytes(pair.public_key).decode()
    pair.wipe()
    return public


def _write(path: Path, text: str, mode: int = _PRIVATE) -> None:
    part = path.with_name(f".{path.name}.part")
    part.unlink(missing_ok=True)
    part.write_text(text)
    part.chmod(mode)
    part.replace(path)
