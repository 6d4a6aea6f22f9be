"""Admittance of sockets at `/session`: the key, its page's origin, and the limits of the key. Judged before the upgrade.

Owns the order of the checks and their errors. Does not own keys (`registry`) nor counts (`voxbridge.shared.store.usage`). Nothing is lost
in a crash here: a place in Valkey is free again after some seconds.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final
from urllib.parse import parse_qs

import msgspec
from starlette.types import Scope

from voxbridge.services.gateway.door.access import arrival
from voxbridge.services.gateway.platform.registry import Registry
from voxbridge.shared.errors import Code, VoxbridgeError
from voxbridge.shared.platform import keys
from voxbridge.shared.platform.keys import KEY_LIMIT, Key, Limits
from voxbridge.shared.store.usage import Full, UsageStore

QUERY_LIMIT: Final = 1_024
"""Bytes of the query of the socket's address."""


class Pass(msgspec.Struct, frozen=True):
    """Proof that a socket may be opened. `full` is a limit that was reached: only a call that was admitted may be resumed."""

    key: Key
    origin: str
    full: Full = ""


class Admittance:
    """The checks of one gateway. `now_s` is the time on the Unix clock."""

    def __init__(self, registry: Registry, usage: UsageStore, now_s: Callable[[], int]) -> None:
        self._registry = registry
        self._usage = usage
        self._now_s = now_s

    async def admit(self, scope: Scope, place: str, *, resumes: bool) -> Pass:
        """Return the pass of a handshake, and take a place for it. With `resumes`, its client may resume a call that was admitted although
        a limit is reached since. Raises `UNAUTHENTICATED`, `FORBIDDEN_ORIGIN`, `RATE_LIMITED` and `UNAVAILABLE`."""
        key = self.key_of(_text_of(scope))
        origin = _origin_of(scope)
        check_origin(key, origin)
        full = await self._usage.enter(key.id, place, key.limits)
        if full and (not resumes or await self._usage.enter(key.id, place, key.limits, resumes=True)):
            raise reached(full, key.limits)
        return Pass(key, origin or "", full)

    def key_of(self, text: str) -> Key:
        """Return the terms of a key that counts now. Raises `UNAUTHENTICATED` and `UNAVAILABLE`."""
        found = self._registry.find(keys.id_in(text))
        now_s = self._now_s()
        if found is None or not keys.fits(text, found.counting(now_s)):
            message = "This key is not known here, was revoked, or was replaced by another one. Keys begin with `pk_` or `sk_`."
            raise VoxbridgeError(Code.UNAUTHENTICATED, message, field="key")
        if found.key.expires_s and now_s >= found.key.expires_s:
            raise VoxbridgeError(Code.UNAUTHENTICATED, f"The key {found.key.id} has expired. Make another one.", field="key")
        return found.key


def check_origin(key: Key, origin: str | None) -> None:
    """Check the origin of a page, None for a program without one. Raises `FORBIDDEN_ORIGIN`."""
    if key.kind == "secret":
        if origin is not None:
            message = "A secret key is for servers: a page shows it to everybody. Use a publishable key (`pk_`) here."
            raise VoxbridgeError(Code.FORBIDDEN_ORIGIN, message, field="Origin")
        return
    if origin is None:
        message = "A publishable key is for pages, whose browser sends `Origin`. A server uses a secret key (`sk_`)."
        raise VoxbridgeError(Code.FORBIDDEN_ORIGIN, message, field="Origin")
    if not keys.allows(key, origin):
        listed = ", ".join(key.origins) or "none"
        kind = (
            "A live key is for its origins alone" if key.environment == "live" else "A test key is for its origins and this machine's pages"
        )
        message = f"{kind} ({listed}); this page has {origin[:128]!r}."
        raise VoxbridgeError(Code.FORBIDDEN_ORIGIN, message, field="Origin")


def reached(full: Full, limits: Limits) -> VoxbridgeError:
    """Return the error of a limit that is reached."""
    if full == "concurrent":
        message = f"This key allows {limits.concurrent} calls at a time, and there are as many. Try again when one has ended."
        return VoxbridgeError(Code.RATE_LIMITED, message, field="concurrent", limit=limits.concurrent, retry_after_ms=5_000)
    name = "seconds_a_day" if full == "seconds" else "tokens_a_day"
    limit: int = getattr(limits, name)
    message = f"This key allows {limit} {full} a day, and they are used up. The next day begins at midnight UTC."
    return VoxbridgeError(Code.RATE_LIMITED, message, field=name, limit=limit, retry_after_ms=3_600_000)


def _text_of(scope: Scope) -> str:
    """Return the key of a handshake: of the query, or, for a server, of the `Authorization` header."""
    query = scope["query_string"][:QUERY_LIMIT].decode("latin-1")
    try:
        given = parse_qs(query, max_num_fields=16, keep_blank_values=True).get("key", [])
    except ValueError:  # more fields than that
        given = ["", ""]
    if len(given) > 1:
        raise VoxbridgeError(Code.UNAUTHENTICATED, "The address of the socket names one key.", field="key")
    text = given[0] if given else arrival(scope["headers"]).bearer
    if not text:
        message = "The address of this socket ends in `?key=pk_…`: a publishable key of the account. `voxbridge platform make` makes one."
        raise VoxbridgeError(Code.UNAUTHENTICATED, message, field="key")
    if given and keys.is_secret(text):
        message = "A secret key goes into the `Authorization` header, not into an address, which servers write into their logs."
        raise VoxbridgeError(Code.UNAUTHENTICATED, message, field="key")
    return text[: KEY_LIMIT + 1]


def _origin_of(scope: Scope) -> str | None:
    found = [value.decode("latin-1").lower() for name, value in scope["headers"] if name == b"origin"]
    if len(found) > 1:
        raise VoxbridgeError(Code.FORBIDDEN_ORIGIN, "A request has one Origin.", field="Origin")
    return found[0] if found else None
