"""Keys of accounts: what a publishable key (`pk_`) and a secret key (`sk_`) may do, their text, and how one is checked.

Owns the terms, their limits and the checks. Does not own where keys are kept: the log of their account has them, by hash
(`voxbridge.shared.events.keys`). Pure: a new key is given its
randomness. Nothing is lost in a crash.
"""

from __future__ import annotations

import hashlib
import hmac
import re
from collections.abc import Sequence
from typing import Final, Literal
from urllib.parse import urlsplit

import msgspec

from voxbridge.shared.errors import Code, VoxbridgeError

Kind = Literal["public", "secret"]
Environment = Literal["live", "test"]
Mode = Literal["local", "gemini", "openai", "claude"]

ORIGINS_LIMIT: Final = 32
ORIGIN_LIMIT: Final = 256
NAME_LIMIT: Final = 64
FUNCTIONS_LIMIT: Final = 32
OVERLAP_LIMIT_S: Final = 30 * 86_400
KEYS_LIMIT: Final = 64
"""Keys of an account that are not revoked."""

KEY_LIMIT: Final = 128
"""Characters of a key."""

NULL: Final = "null"
"""Origin of a page that was opened from a file, or that runs in a sandboxed frame."""

_ACCOUNT: Final = re.compile(r"[a-z0-9][a-z0-9_.@-]{0,63}")
_FORM: Final = re.compile(r"(pk|sk)_(live|test)_([0-9a-f]{12})_([A-Za-z0-9_-]{32})")
_PREFIXES: Final[dict[str, Kind]] = {"pk": "public", "sk": "secret"}
_LOOPBACK: Final = frozenset({"localhost", "127.0.0.1", "::1"})


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """Limits of a key, in all gateways together: calls at a time, seconds and tokens in a day (UTC), and those of one call."""

    concurrent: int = 10
    seconds_a_day: int = 36_000
    tokens_a_day: int = 2_000_000
    seconds_a_call: int = 900
    tokens_a_call: int = 200_000


TEST_LIMITS: Final = Limits(concurrent=2, seconds_a_day=3_600, tokens_a_day=200_000, seconds_a_call=300, tokens_a_call=50_000)
"""Limits of a test key that names none."""

_BOUNDS: Final = {
    "concurrent": 1_000,
    "seconds_a_day": 10_000_000,
    "tokens_a_day": 1_000_000_000,
    "seconds_a_call": 21_600,
    "tokens_a_call": 10_000_000,
}


class Key(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The terms of a key. `origins` are the pages that may use it, `functions` those of the installation that its calls may use, and
    `expires_s` (Unix clock) its end, 0 for none."""

    id: str
    account: str
    kind: Kind = "public"
    environment: Environment = "test"
    name: str = ""
    origins: tuple[str, ...] = ()
    mode: Mode = "local"
    model: str = ""
    voice: str = ""
    agent: str = ""
    functions: tuple[str, ...] = ()
    expires_s: int = 0
    limits: Limits = TEST_LIMITS


class Wishes(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Request for a key. `seconds` is how long it counts, 0 for ever; limits that are not named are those of the environment."""

    account: str = "local"
    kind: Kind = "public"
    environment: Environment = "test"
    name: str = ""
    origins: tuple[str, ...] = ()
    mode: Mode = "local"
    model: str = ""
    voice: str = ""
    agent: str = ""
    functions: tuple[str, ...] = ()
    seconds: int = 0
    limits: dict[str, int] = {}


def terms(wishes: Wishes, *, now_s: int, key_id: str) -> Key:
    """Return the terms of a new key, whose id is 12 random digits of hex. Raises `INVALID_ARGUMENT` that names the field and its limit."""
    if _ACCOUNT.fullmatch(wishes.account) is None:
        raise _invalid("account", "has 1 to 64 characters of a-z, 0-9, `_`, `.`, `@` and `-`", _ACCOUNT.pattern)
    for field in ("name", "model", "voice", "agent"):
        if len(getattr(wishes, field)) > NAME_LIMIT:
            raise _invalid(field, f"has at most {NAME_LIMIT} characters", NAME_LIMIT)
    if len(wishes.functions) > FUNCTIONS_LIMIT or not all(0 < len(name) <= NAME_LIMIT for name in wishes.functions):
        raise _invalid("functions", f"names at most {FUNCTIONS_LIMIT}, each of 1 to {NAME_LIMIT} characters", FUNCTIONS_LIMIT)
    if wishes.seconds < 0:
        raise _invalid("seconds", "is 0, for a key without an end, or more", 0)
    origins = tuple(dict.fromkeys(map(origin_of, wishes.origins)))
    if len(origins) > ORIGINS_LIMIT:
        raise _invalid("origins", f"has at most {ORIGINS_LIMIT}", ORIGINS_LIMIT)
    live = wishes.environment == "live"
    if wishes.kind == "public" and live and not origins:
        raise _invalid("origins", "names the pages that may use a live key, such as `https://shop.example`", 1)
    if live and NULL in origins:
        raise _invalid("origins", "of a live key names no `null`: every file and every sandboxed frame has it", NULL)
    return Key(
        id=key_id,
        account=wishes.account,
        kind=wishes.kind,
        environment=wishes.environment,
        name=wishes.name,
        origins=origins,
        mode=wishes.mode,
        model=wishes.model,
        voice=wishes.voice,
        agent=wishes.agent,
        functions=wishes.functions,
        expires_s=now_s + wishes.seconds if wishes.seconds else 0,
        limits=_limits(wishes.limits, Limits() if live else TEST_LIMITS),
    )


def text_of(key: Key, secret: str) -> str:
    """Return a text of this key: it names the key, and ends in the `secret` of 192 random bits (32 characters of base64url)."""
    prefix = next(text for text, kind in _PREFIXES.items() if kind == key.kind)
    return f"{prefix}_{key.environment}_{key.id}_{secret}"


def id_in(text: str) -> str:
    """Return the id that the text of a key names; empty for what is not a key."""
    found = _FORM.fullmatch(text) if len(text) <= KEY_LIMIT else None
    return found[3] if found is not None else ""


def is_secret(text: str) -> bool:
    """Tell whether this has the form of a secret key."""
    found = _FORM.fullmatch(text) if len(text) <= KEY_LIMIT else None
    return found is not None and found[1] == "sk"


def hash_of(text: str) -> str:
    """Return the hash by which a key is kept: SHA-256 in hex. A key has 192 random bits, so that no slow hash is needed."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def fits(text: str, hashes: Sequence[str]) -> bool:
    """Tell whether one of the hashes is that of this text, each compared in constant time."""
    mine = hash_of(text)
    return any(hmac.compare_digest(mine, one) for one in hashes)


def allows(key: Key, origin: str) -> bool:
    """Tell whether a page of this origin may use the key. A test key also allows pages of this machine, and `null`."""
    if origin in key.origins:
        return True
    return key.environment == "test" and (origin == NULL or _is_loopback(origin))


def origin_of(text: str) -> str:
    """Return an origin in the form in which browsers send it. Raises `INVALID_ARGUMENT` for what is none, such as a URL with a path."""
    if text == NULL:
        return text
    found = text.strip().rstrip("/").lower()
    parts = urlsplit(found)
    try:
        port = parts.port
    except ValueError:
        port = -1
    known = parts.scheme in ("http", "https") and parts.hostname and not parts.username and port != -1
    if not known or f"{parts.scheme}://{parts.netloc}" != found or "*" in found or len(found) > ORIGIN_LIMIT:
        raise _invalid("origins", f"has exact origins such as `https://shop.example`, and {text[:64]!r} is none", ORIGIN_LIMIT)
    if port == (443 if parts.scheme == "https" else 80):  # browsers leave the usual port out
        return found.rpartition(":")[0]
    return found


def _is_loopback(origin: str) -> bool:
    parts = urlsplit(origin)
    return parts.scheme in ("http", "https") and parts.hostname in _LOOPBACK


def _limits(wanted: dict[str, int], usual: Limits) -> Limits:
    for name, value in wanted.items():
        most = _BOUNDS.get(name)
        if most is None:
            raise _invalid(f"limits.{name[:64]}", f"is unknown; there is {', '.join(_BOUNDS)}", ", ".join(_BOUNDS))
        if not 1 <= value <= most:
            raise _invalid(f"limits.{name}", f"is 1 to {most}", f"1..{most}")
    return msgspec.structs.replace(usual, **wanted)


def _invalid(field: str, what: str, limit: float | str) -> VoxbridgeError:
    return VoxbridgeError(Code.INVALID_ARGUMENT, f"`{field}` {what}.", field=field, limit=limit)
