"""The keys of the providers that agents talk to: stored by an administrator, sealed, or given by the environment.

Owns `vx:key:<provider>` in Valkey and which environment variables count. Does not own the sealing (`voxbridge.shared.secrets.vault`) nor
who may set a key (`voxbridge.services.gateway.door.admin_auth`). A key never appears in a repr, a log line or an error. A crash here loses
the last known values, which are read again.
"""

from __future__ import annotations

import asyncio
import base64
import logging
import os
import re
import time
from collections.abc import Callable, Collection, Mapping
from typing import Any, Final, Literal

import msgspec
from redis.asyncio import Redis
from redis.exceptions import RedisError

from voxbridge.shared.agents.providers import PROVIDERS, variables
from voxbridge.shared.config import Config
from voxbridge.shared.errors import Code, Unavailable, VoxbridgeError
from voxbridge.shared.secrets.sealed_box import Sealer
from voxbridge.shared.secrets.secret_file import vault_key_file
from voxbridge.shared.secrets.vault import Vault, WrongKey

Source = Literal["stored", "environment", "none"]

KEY_LIMIT: Final = 512
"""Characters of a key."""

KEPT_S: Final = 60.0
"""Seconds that a stored key is used after it was last read, while Valkey does not answer."""

ANSWER_S: Final = 1.0
"""Seconds that Valkey may take to answer."""

TELL_S: Final = 20.0
TOLD_KEPT_S: Final = 60
_TOLD: Final = "vx:provided"

_log = logging.getLogger(__name__)


class Told(msgspec.Struct, frozen=True):
    """Report of a voice worker on the keys, which only it can read: the providers and endpoints with a key in its environment, and those
    whose stored key it cannot open."""

    environment: tuple[str, ...] = ()
    unusable: tuple[str, ...] = ()


class SealedKeys:
    """The keys for a process that may set and not read them. `endpoints` are the names of endpoints that have keys besides the
    providers."""

    def __init__(self, redis: Redis, sealer: Sealer | Vault, *, endpoints: Collection[str] = ()) -> None:
        self.names: Final = (*PROVIDERS, *sorted(set(endpoints)))
        self._redis = redis
        self._sealer = sealer

    @classmethod
    def of(cls, config: Config, redis: Redis) -> SealedKeys:
        """Build the keys of the installation that this process belongs to."""
        sealer = Sealer(config.vault_public_key_path, variable="VOXBRIDGE_VAULT_PUBLIC_KEY_FILE")
        return SealedKeys(redis, sealer, endpoints=config.named_endpoints)

    async def set(self, provider: str, key: str) -> None:
        """Store a key, sealed. Raises `INVALID_ARGUMENT` for one that is empty, too long or not printable ASCII without spaces."""
        self._check(provider)
        if len(key) > KEY_LIMIT:
            raise VoxbridgeError(
                Code.INVALID_ARGUMENT, f"A key has {KEY_LIMIT} characters at most; this one has {len(key)}.", field="key", limit=KEY_LIMIT
            )
        if not _is_key(key):
            message = "A key is made of printable ASCII characters without spaces; this one is empty or has others."
            raise VoxbridgeError(Code.INVALID_ARGUMENT, message, field="key")
        sealed = base64.b64encode(self._sealer.seal(key.encode(), name=_name(provider))).decode()
        await _answered(self._redis.set(_name(provider), sealed))
        _log.info("The key of %s was set.", provider)

    async def forget(self, provider: str) -> None:
        """Remove the stored key, if there is one; the key of the environment counts again."""
        self._check(provider)
        await _answered(self._redis.delete(_name(provider)))
        _log.info("The stored key of %s was forgotten.", provider)

    async def known(self) -> dict[str, Source]:
        """Return the source of each provider's and endpoint's key, as a voice worker last reported it; raises `UNAVAILABLE` while Valkey
        does not answer."""
        told = await self._told()
        return {one: "stored" if there else "environment" if one in told.environment else "none" for one, there in await self._there()}

    async def usable(self) -> dict[str, bool]:
        """Return whether each provider and endpoint has a usable key, as a voice worker last reported it."""
        try:
            told = await self._told()
            return {one: one not in told.unusable if there else one in told.environment for one, there in await self._there()}
        except Unavailable as error:
            _log.warning("%s", error.message)
            return dict.fromkeys(self.names, False)

    async def _there(self) -> list[tuple[str, bool]]:
        found = await _answered(self._redis.mget([_name(one) for one in self.names]))
        return [(one, raw is not None) for one, raw in zip(self.names, found, strict=True)]

    async def _told(self) -> Told:
        raw = await _answered(self._redis.get(_TOLD))
        try:
            return Told() if raw is None else msgspec.json.decode(raw, type=Told)
        except msgspec.DecodeError:
            return Told()

    def _check(self, provider: str) -> None:
        if provider not in self.names:
            known = ", ".join(self.names)
            message = f"Nobody has the name {provider[:64]!r}; keys are kept for {known}. Endpoints are named in VOXBRIDGE_ENDPOINTS."
            raise VoxbridgeError(Code.INVALID_ARGUMENT, message, field="provider", limit=known)


class Keys(SealedKeys):
    """The keys for a process that uses them: with the vault that opens stored keys, and with an environment."""

    def __init__(
        self,
        redis: Redis,
        vault: Vault,
        env: Mapping[str, str],
        *,
        endpoints: Collection[str] = (),
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        super().__init__(redis, vault, endpoints=endpoints)
        self._vault = vault
        self._env = env
        self._clock = clock
        self._last: dict[str, tuple[float, str]] = {}
        self._said: set[str] = set()

    @classmethod
    def of(cls, config: Config, redis: Redis) -> Keys:
        """Build the keys of the installation that this process belongs to."""
        return cls(redis, Vault(vault_key_file(config)), os.environ, endpoints=config.named_endpoints)

    async def tell(self) -> None:
        """Report which keys the environment holds and which stored ones cannot be opened, for processes that can see neither."""
        stored = await self._there()
        usable = await self.usable()
        unusable = tuple(one for one, there in stored if there and not usable[one])
        told = Told(tuple(one for one in self.names if self._of_environment(one)), unusable)
        await _answered(self._redis.set(_TOLD, msgspec.json.encode(told), ex=TOLD_KEPT_S))

    async def keep_telling(self) -> None:
        """Repeat the report forever."""
        while True:
            try:
                await self.tell()
            except VoxbridgeError as error:
                self._warn(error.message)
            await asyncio.sleep(TELL_S)

    async def get(self, provider: str) -> str:
        """Return the key as it is now: the stored one, otherwise that of the environment, otherwise an empty string.

        While Valkey does not answer, a stored key that was last read at most `KEPT_S` ago still counts, and the key of the environment
        counts where no stored one was known. Raises `UNAVAILABLE` when neither helps, `WrongKey` when the stored key cannot be opened, and
        `INVALID_ARGUMENT` for an unknown name.
        """
        self._check(provider)
        try:
            stored = await self._stored(provider)
        except Unavailable:
            known_at, stored = self._last.get(provider, (0.0, ""))
            found = stored if stored and self._clock() - known_at <= KEPT_S else "" if stored else self._of_environment(provider)
            if not found:
                raise
            return found
        self._last[provider] = (self._clock(), stored)
        return stored or self._of_environment(provider)

    async def known(self) -> dict[str, Source]:
        """Return the source of each provider's and endpoint's key; raises `UNAVAILABLE` while Valkey does not answer."""
        found = await _answered(self._redis.mget([_name(one) for one in self.names]))
        return {one: self._source(one, stored=raw is not None) for one, raw in zip(self.names, found, strict=True)}

    async def usable(self) -> dict[str, bool]:
        """Return whether each provider and endpoint has a usable key, as `get` would find now."""

        async def has(provider: str) -> bool:
            try:
                return bool(await self.get(provider))
            except VoxbridgeError as error:
                self._warn(error.message)
                return False

        return dict(zip(self.names, await asyncio.gather(*(has(one) for one in self.names)), strict=True))

    async def _stored(self, provider: str) -> str:
        raw = await _answered(self._redis.get(_name(provider)))
        if raw is None:
            return ""
        try:
            return self._vault.unseal(base64.b64decode(raw, validate=True), name=_name(provider)).decode()
        except (WrongKey, ValueError) as error:
            why = error.message if isinstance(error, WrongKey) else "It is damaged."
            raise WrongKey(
                f"The stored key of {provider} cannot be used. {why} Set it again; the public key must be that of the vault key."
            ) from None

    def _source(self, provider: str, *, stored: bool) -> Source:
        if stored:
            return "stored"
        return "environment" if self._of_environment(provider) else "none"

    def _of_environment(self, provider: str) -> str:
        for name in variables(provider):
            value = self._env.get(name, "").strip()
            if _is_key(value):
                return value
            if value:
                # A client would put it into a header and quote it in its error.
                self._warn(f"{name} is not used: a key is printable ASCII without spaces, of {KEY_LIMIT} characters at most.")
        return ""

    def _warn(self, message: str) -> None:
        if message not in self._said:
            self._said.add(message)
            _log.warning("%s", message)


def _is_key(text: str) -> bool:
    return re.fullmatch(f"[!-~]{{1,{KEY_LIMIT}}}", text) is not None


def _name(provider: str) -> str:
    return f"vx:key:{provider}"


async def _answered(command: Any) -> Any:
    try:
        async with asyncio.timeout(ANSWER_S):
            return await command
    except (RedisError, OSError, TimeoutError) as error:
        # The text of the error is Valkey's or the system's; what was sent is sealed in any case.
        raise Unavailable(f"Valkey does not serve the keys of providers ({type(error).__name__}).", retry_after_ms=1_000) from error
