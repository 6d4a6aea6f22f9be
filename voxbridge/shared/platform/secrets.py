"""Secrets of accounts: written by administrators, sealed for the tools service, and shown to nobody.

Owns `vx:secret:{account}:<environment>` in Valkey, a hash of sealed records by name, and `vx:secretinfo:…` beside it, which says where each
may go and has no value. The rule of where a value may go is sealed together with it, so whoever can write these keys can replace a
secret, and can neither read one nor send it elsewhere. Does not own the sealing (`voxbridge.shared.secrets.sealed_box`) nor the exchange
for the value (`voxbridge.services.tools.sandbox`). A value is in no repr, log line or error. A crash here loses nothing.
"""

from __future__ import annotations

import asyncio
import base64
import logging
import re
from typing import Any, Final, Literal

import msgspec
from redis.asyncio import Redis
from redis.exceptions import RedisError

from voxbridge.shared.config import Config
from voxbridge.shared.errors import Code, Unavailable, VoxbridgeError
from voxbridge.shared.secrets.sealed_box import Sealer, WrongKey
from voxbridge.shared.secrets.secret_file import SecretFile
from voxbridge.shared.secrets.vault import Vault

Environment = Literal["live", "test"]
"""Kind of key with which a page came: a session of a test key has test secrets alone, one of a live key live ones alone."""

VALUE_LIMIT: Final = 1_024
"""Bytes of a value."""

LEAST: Final = 8
"""Characters that a value has at least: a shorter one could not be masked without masking ordinary words."""

SECRETS_LIMIT: Final = 32
"""Secrets of an account in one environment."""

HOSTS_LIMIT: Final = 16
HEADERS_LIMIT: Final = 16
ANSWER_S: Final = 1.0
"""Seconds that Valkey may take to answer."""

NAME: Final = re.compile(r"[A-Z][A-Z0-9_]{0,63}")
_LABEL: Final = r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?"
HOST: Final = re.compile(rf"(?:http://)?(?:\*\.(?={_LABEL}\.))?{_LABEL}(?:\.{_LABEL})*(?::\d{{1,5}})?")
"""A host that a secret may go to: `api.example.com`, `*.example.com`, `api.example.com:8443`; `http://` in front where it may go
unencrypted."""

_HEADER: Final = re.compile(r"[a-z0-9!#$%&'*+.^_`|~-]{1,64}")
_NEVER_HEADERS: Final = frozenset({"host", "content-length", "transfer-encoding", "connection", "cookie2", "te", "upgrade", "expect"})
_VALUE: Final = re.compile(r"[!-~](?:[ -~]*[!-~])?")

_log = logging.getLogger(__name__)


class Rule(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Places that a value may go to: these hosts, in these headers (lower case), and in the query or the body of a request where it is
    said. `signs`: handlers may have it sign with `ctx.hmac`."""

    hosts: tuple[str, ...] = ()
    headers: tuple[str, ...] = ("authorization", "x-api-key")
    query: bool = False
    body: bool = False
    signs: bool = False


class Info(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A secret as it is shown: its rule and when it was set (µs of the Unix clock), never its value."""

    name: str
    environment: Environment
    rule: Rule
    set_at: int


class Opened(msgspec.Struct, frozen=True, kw_only=True):
    """A secret that was opened, in the tools service alone."""

    name: str
    value: str
    rule: Rule

    def __repr__(self) -> str:
        return f"Opened({self.name!r})"


class _Record(msgspec.Struct, frozen=True, kw_only=True):
    value: str
    rule: Rule


class SealedSecrets:
    """The secrets for a process that may set and not read them."""

    def __init__(self, redis: Redis, sealer: Sealer | Vault) -> None:
        self._redis = redis
        self._sealer = sealer

    @classmethod
    def of(cls, config: Config, redis: Redis) -> SealedSecrets:
        """Build the secrets of the installation that this process belongs to."""
        return SealedSecrets(redis, Sealer(config.secrets_public_key_path, variable="VOXBRIDGE_SECRETS_PUBLIC_KEY_FILE"))

    async def set(self, account: str, environment: Environment, name: str, value: str, rule: Rule, *, now: int) -> Info:
        """Store a secret, sealed, in place of one of the same name; calls that begin from now on have it. `now` is in µs.

        Raises `INVALID_ARGUMENT` or `TOO_LARGE` naming the field, `UNAVAILABLE` while Valkey does not answer.
        """
        check_name(name)
        rule = checked(rule)
        _check_value(value)
        info = Info(name=name, environment=environment, rule=rule, set_at=now)
        known = await self.known(account, environment)
        if len(known) >= SECRETS_LIMIT and all(one.name != name for one in known):
            message = f"An account has at most {SECRETS_LIMIT} {environment} secrets; erase one first."
            raise VoxbridgeError(Code.TOO_LARGE, message, field="name", limit=SECRETS_LIMIT)
        record = msgspec.json.encode(_Record(value=value, rule=rule))
        sealed = base64.b64encode(self._sealer.seal(record, name=_bound(account, environment, name))).decode()
        async with self._redis.pipeline(transaction=True) as pipeline:
            pipeline.hset(_key(account, environment), name, sealed)
            pipeline.hset(_info_key(account, environment), name, msgspec.json.encode(info))
            await _answered(pipeline.execute())
        _log.info("The %s secret %s of account %s was set.", environment, name, account)
        return info

    async def erase(self, account: str, environment: Environment, name: str) -> None:
        """Erase a secret. Raises `NOT_FOUND`."""
        check_name(name)
        async with self._redis.pipeline(transaction=True) as pipeline:
            pipeline.hdel(_info_key(account, environment), name)
            pipeline.hdel(_key(account, environment), name)
            found = await _answered(pipeline.execute())
        if not any(found):
            message = f"There is no {environment} secret {name}; `voxbridge secrets ls` lists them."
            raise VoxbridgeError(Code.NOT_FOUND, message, field="name")
        _log.info("The %s secret %s of account %s was erased.", environment, name, account)

    async def known(self, account: str, environment: Environment | None = None) -> list[Info]:
        """Return the secrets of an account without their values, by name."""
        found: list[Info] = []
        for one in ("live", "test") if environment is None else (environment,):
            raw = await _answered(self._redis.hvals(_info_key(account, one)))
            found += [msgspec.json.decode(text, type=Info) for text in raw]
        return sorted(found, key=lambda info: (info.name, info.environment))


class Secrets(SealedSecrets):
    """The secrets for the process that opens them."""

    def __init__(self, redis: Redis, vault: Vault) -> None:
        super().__init__(redis, vault)
        self._vault = vault

    @classmethod
    def of(cls, config: Config, redis: Redis) -> Secrets:
        """Build the secrets of the installation that this process belongs to."""
        return cls(redis, Vault(secrets_key_file(config)))

    async def opened(self, account: str, environment: Environment) -> dict[str, Opened]:
        """Return the secrets of an account by name. One that does not open is left out and logged. Raises `UNAVAILABLE`."""
        raw = await _answered(self._redis.hgetall(_key(account, environment)))
        found: dict[str, Opened] = {}
        for name, sealed in raw.items():
            try:
                plain = self._vault.unseal(base64.b64decode(sealed, validate=True), name=_bound(account, environment, name))
                record = msgspec.json.decode(plain, type=_Record)
            except (WrongKey, ValueError):
                _log.warning("The %s secret %s of account %s does not open; set it again.", environment, name, account)
                continue
            found[name] = Opened(name=name, value=record.value, rule=record.rule)
        return found


def secrets_key_file(config: Config) -> SecretFile:
    """Return the file of the key that opens secrets, which the tools service alone has."""
    return SecretFile(config.secrets_key_path, what="key of secrets", variable="VOXBRIDGE_SECRETS_KEY_FILE")


def check_name(name: str) -> None:
    """Check a secret's name. Raises `INVALID_ARGUMENT`."""
    if not NAME.fullmatch(name):
        message = "A secret's name has 1 to 64 of A-Z, 0-9 and `_`, and begins with a letter."
        raise VoxbridgeError(Code.INVALID_ARGUMENT, message, field="name")


def checked(rule: Rule) -> Rule:
    """Return a rule in its normal form: lower case, each host and header once. Raises `INVALID_ARGUMENT` naming what is wrong."""
    hosts = tuple(dict.fromkeys(host.strip().lower() for host in rule.hosts))
    headers = tuple(dict.fromkeys(header.strip().lower() for header in rule.headers))
    if not hosts and not rule.signs:
        raise VoxbridgeError(Code.INVALID_ARGUMENT, "A secret names at least one host that it may go to, or signs.", field="hosts")
    if len(hosts) > HOSTS_LIMIT or len(headers) > HEADERS_LIMIT:
        field, limit = ("hosts", HOSTS_LIMIT) if len(hosts) > HOSTS_LIMIT else ("headers", HEADERS_LIMIT)
        raise VoxbridgeError(Code.TOO_LARGE, f"A secret names at most {limit} {field}.", field=field, limit=limit)
    for host in hosts:
        if not HOST.fullmatch(host):
            message = f"{host[:80]!r} is not a host; write `api.example.com`, `*.example.com` or `api.example.com:8443`."
            raise VoxbridgeError(Code.INVALID_ARGUMENT, message, field="hosts")
    for header in headers:
        if not _HEADER.fullmatch(header) or header in _NEVER_HEADERS:
            raise VoxbridgeError(Code.INVALID_ARGUMENT, f"{header[:64]!r} is not a header that a secret may go to.", field="headers")
    return msgspec.structs.replace(rule, hosts=hosts, headers=headers)


def may_go(rule: Rule, scheme: str, host: str, port: int) -> bool:
    """Tell whether a rule names a server."""
    usual = 443 if scheme == "https" else 80
    for one in rule.hosts:
        plain = one.startswith("http://")
        name, _, wanted = one.removeprefix("http://").partition(":")
        if plain != (scheme == "http") or port != (int(wanted) if wanted else usual):
            continue
        if host == name or (name.startswith("*.") and host.endswith(name[1:]) and len(host) > len(name) - 1):
            return True
    return False


def _check_value(value: str) -> None:
    if not _VALUE.fullmatch(value):
        message = "A secret is printable ASCII without a space at either end; this one is empty or has other characters."
        raise VoxbridgeError(Code.INVALID_ARGUMENT, message, field="value")
    if not LEAST <= len(value) <= VALUE_LIMIT:
        message = f"A secret has {LEAST} to {VALUE_LIMIT} characters; this one has {len(value)}."
        raise VoxbridgeError(Code.INVALID_ARGUMENT, message, field="value", limit=VALUE_LIMIT)


def _key(account: str, environment: str) -> str:
    return f"vx:secret:{{{account}}}:{environment}"


def _info_key(account: str, environment: str) -> str:
    return f"vx:secretinfo:{{{account}}}:{environment}"


def _bound(account: str, environment: str, name: str) -> str:
    return f"vx:secret:{account}:{environment}:{name}"


async def _answered(command: Any) -> Any:
    try:
        async with asyncio.timeout(ANSWER_S):
            return await command
    except (RedisError, OSError, TimeoutError) as error:
        raise Unavailable(f"Valkey does not serve the secrets ({type(error).__name__}).", retry_after_ms=1_000) from error
