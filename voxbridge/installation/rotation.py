"""Rotation of the vault key: a new key, with which everything sealed for the previous one is sealed again.

Owns the order of the steps. First the new key replaces the old one where processes open, with the old one kept beside it. Then its public
half replaces the old one where processes seal. Then each record is opened and sealed again, unless it changed meanwhile. Only when none is
left is the old key removed. A crash in between leaves everything readable, and the next run continues. Does not own the form of what is
sealed (`voxbridge.shared.secrets.vault`).
"""

from __future__ import annotations

import base64
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from redis.asyncio import Redis
from redis.exceptions import RedisError

from voxbridge.installation.secret_copies import write_secret
from voxbridge.shared.errors import Code, Unavailable, VoxbridgeError
from voxbridge.shared.secrets.secret_file import SecretFile, new_secret
from voxbridge.shared.secrets.vault import OLD, Vault, WrongKey

PATTERNS: Final = ("vx:key:*", "vx:datakey:*")
LOOKS: Final = 20
"""Passes over all records before the rotation reports that some cannot be sealed again."""

_REPLACE: Final = """
if redis.call('GET', KEYS[1]) == ARGV[1] then
  redis.call('SET', KEYS[1], ARGV[2], 'KEEPTTL')
  return 1
end
return 0
"""


async def rotate(redis: Redis, opens: Sequence[Path], seals: Sequence[Path]) -> int:
    """Write a new key to the files in `opens` and its public half to those in `seals`; return how many records were sealed again.

    Raises `UNAVAILABLE` and `WrongKey`, with the old key still beside the new one.
    """
    files = [SecretFile(path, what="vault key", variable="VOXBRIDGE_VAULT_KEY_FILE") for path in opens]
    old = [one.beside(OLD) for one in files]
    if not any(one.path.exists() for one in old):  # otherwise an earlier run did not finish
        known, fresh = files[0].ensure(), new_secret()
        for one in old:
            write_secret(one.path, known)
        for one in files:
            write_secret(one.path, fresh)
    for one, two in zip(files, old, strict=True):
        # An interrupted run may have left some of the files unchanged.
        write_secret(one.path, files[0].ensure())
        write_secret(two.path, old[0].ensure())
    vault = Vault(files[0])
    for path in seals:
        vault.publish(path)
    try:
        sealed = await _seal_anew(redis, vault)
    except RedisError as error:
        raise Unavailable(f"Valkey does not serve what is sealed ({type(error).__name__}); run it again.") from error
    for one in old:
        one.path.unlink(missing_ok=True)
    return sealed


async def _seal_anew(redis: Redis, vault: Vault) -> int:
    done = 0
    for _ in range(LOOKS):
        stale = [(name, sealed) async for name, sealed in _sealed(redis) if not vault.is_current(_plain(sealed), name=name)]
        if not stale:
            return done
        for name, sealed in stale:
            try:
                plain = vault.unseal(_plain(sealed), name=name)
            except WrongKey as error:
                message = f"{error.message} Set that key again or forget it, and run this again; the key before this one is still there."
                raise VoxbridgeError(Code.INTERNAL, message, retryable=False) from error
            again = base64.b64encode(vault.seal(plain, name=name)).decode()
            done += int(await redis.eval(_REPLACE, 1, name, sealed, again))
    raise Unavailable("Records are sealed with the old key again and again: is there a gateway that does not see the new one?")


async def _sealed(redis: Redis) -> Any:
    for pattern in PATTERNS:
        async for name in redis.scan_iter(match=pattern, count=500):
            sealed = await redis.get(name)
            if sealed is not None:
                yield name, sealed


def _plain(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except ValueError:
        return b""
