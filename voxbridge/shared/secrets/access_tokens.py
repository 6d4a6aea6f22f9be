"""Access tokens: what a user who is not an administrator may do here, signed with the administrators' token.

Owns the form, the signature and the terms. Does not own where one is required (`voxbridge.services.gateway.door.access`). A token is made
without a request to any service and is stored nowhere; a new administrators' token makes all of them void. Pure.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Sequence
from typing import Final

import msgspec

from voxbridge.shared.errors import Code, VoxbridgeError

LENGTH_LIMIT: Final = 4_096
"""Characters of a token."""
SHORTEST_S: Final = 60
LONGEST_S: Final = 7 * 86_400
USUAL_S: Final = 3_600
NAMES_LIMIT: Final = 16
"""Agents, modes or models that a token may name."""
NAME_LIMIT: Final = 64
CALLS_LIMIT: Final = 1_000_000
LOCAL: Final = "local"
"""Account of this machine's owner and of administrators."""

ACCOUNT: Final = re.compile(r"[a-z0-9][a-z0-9_.@-]{0,63}")
_FORM: Final = re.compile(r"vxt1\.([A-Za-z0-9_-]+)\.([A-Za-z0-9_-]{43})")
_PURPOSE: Final = b"voxbridge access tokens 1"


class Terms(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """Permissions of a token until `expires_s` (s of the Unix clock). Calls may be with any of `agents` or in any of `modes`; if neither
    names any, with all. `models` and `prompt` say what its holder may choose beyond that, `calls` how many it may start, 0 for any
    number."""

    id: str
    account: str
    expires_s: int
    agents: tuple[str, ...] = ()
    modes: tuple[str, ...] = ()
    models: tuple[str, ...] = ()
    prompt: bool = False
    calls: int = 0


class Wishes(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Request for a token; if it names no account, the token gets an account of its own."""

    account: str = ""
    agents: tuple[str, ...] = ()
    modes: tuple[str, ...] = ()
    models: tuple[str, ...] = ()
    prompt: bool = False
    calls: int = 0
    seconds: int = USUAL_S


def terms(wishes: Wishes, *, now_s: int, modes: Sequence[str]) -> Terms:
    """Return the terms of a new token; raises `INVALID_ARGUMENT` that names the field and its limit. `modes` are the existing modes."""
    if wishes.account and ACCOUNT.fullmatch(wishes.account) is None:
        raise _invalid("account", "has 1 to 64 characters of a-z, 0-9, `_`, `.`, `@` and `-`", ACCOUNT.pattern)
    for field in ("agents", "modes", "models"):
        names: tuple[str, ...] = getattr(wishes, field)
        if len(names) > NAMES_LIMIT or not all(0 < len(name) <= NAME_LIMIT for name in names):
            raise _invalid(field, f"names at most {NAMES_LIMIT}, each of 1 to {NAME_LIMIT} characters", NAMES_LIMIT)
    unknown = [mode for mode in wishes.modes if mode not in modes]
    if unknown:
        raise _invalid("modes", f"are of {', '.join(modes)}", ", ".join(modes))
    if not 0 <= wishes.calls <= CALLS_LIMIT:
        raise _invalid("calls", f"is 0, for any number, to {CALLS_LIMIT}", f"0..{CALLS_LIMIT}")
    if not SHORTEST_S <= wishes.seconds <= LONGEST_S:
        raise _invalid("seconds", f"is {SHORTEST_S} to {LONGEST_S}", f"{SHORTEST_S}..{LONGEST_S}")
    token_id = secrets.token_hex(8)
    return Terms(
        id=token_id,
        account=wishes.account or f"guest-{token_id}",
        expires_s=now_s + wishes.seconds,
        agents=wishes.agents,
        modes=wishes.modes,
        models=wishes.models,
        prompt=wishes.prompt,
        calls=wishes.calls,
    )


def sign(terms: Terms, secret: str) -> str:
    """Return the token for these terms."""
    body = _text(msgspec.json.encode(terms))
    return f"vxt1.{body}.{_signature(body, secret)}"


def is_one(token: str) -> bool:
    """Return whether this has the form of an access token; an administrators' token never has."""
    return len(token) <= LENGTH_LIMIT and _FORM.fullmatch(token) is not None


def read(token: str, secret: str, *, now_s: int) -> Terms:
    """Return the terms of a token that was signed with this secret; raises `UNAUTHENTICATED`."""
    found = _FORM.fullmatch(token) if len(token) <= LENGTH_LIMIT else None
    if found is None or not hmac.compare_digest(found[2], _signature(found[1], secret)):
        raise _refused("This access token was not made here, or the administrators' token has changed since.")
    try:
        terms = msgspec.json.decode(urlsafe_b64decode(found[1] + "=" * (-len(found[1]) % 4)), type=Terms)
    except (msgspec.DecodeError, ValueError):
        raise _refused("This access token is of another release.") from None
    if now_s >= terms.expires_s:
        raise _refused("This access token has expired. Ask for a new one.")
    return terms


def _signature(body: str, secret: str) -> str:
    key = hmac.digest(secret.encode(), _PURPOSE, hashlib.sha256)
    return _text(hmac.digest(key, body.encode(), hashlib.sha256))


def _text(data: bytes) -> str:
    return urlsafe_b64encode(data).rstrip(b"=").decode()


def _refused(message: str) -> VoxbridgeError:
    return VoxbridgeError(Code.UNAUTHENTICATED, message, field="token")


def _invalid(field: str, what: str, limit: float | str) -> VoxbridgeError:
    return VoxbridgeError(Code.INVALID_ARGUMENT, f"`{field}` {what}.", field=field, limit=limit)
