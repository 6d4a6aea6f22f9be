"""JSON Web Tokens: reading one, and checking its signature where the key is given."""

from __future__ import annotations

import hashlib
import hmac
from datetime import UTC, datetime
from typing import Any, Final

from voxbridge.services.tools.packs.utilities.bounds import plain, refused
from voxbridge.services.tools.packs.utilities.encodings import unpack
from voxbridge.services.tools.packs.utilities.json_text import NotJson, parse

TOKEN_LIMIT: Final = 16_384
"""Characters of a token."""
ALGORITHM: Final = "HS256"
_LATEST: Final = 253_402_300_799
"""The last second of the year 9999."""


def read(token: str, key: str, *, now: float) -> dict[str, Any]:
    """Return what a token says, whether its times are over, and whether its signature was checked and is right. Without a key it was not,
    and nothing that the token says is proven."""
    token = token.strip().removeprefix("Bearer ").strip()
    parts = token.split(".")
    if len(parts) != 3:
        raise refused(f"A token has three parts between dots, and this has {len(parts)}.", "token")
    header, claims = _object(parts[0], "header"), _object(parts[1], "claims")
    algorithm = str(header.get("alg", ""))
    signature = _signature(token, algorithm, key)
    result: dict[str, Any] = {
        "header": plain(header),
        "claims": plain(claims),
        "algorithm": algorithm[:40],
        "signature": signature,
        "verified": signature == "valid",
        "times": {name: said for name in ("iat", "nbf", "exp") if (said := _time(claims.get(name)))},
        "expired": _passed(claims.get("exp"), now),
        "not_yet_valid": _passed(claims.get("nbf"), now) is False,
    }
    state = {
        "valid": "Its signature is right for this key",
        "wrong": "Its signature is wrong for this key",
        "none": "It is not signed, so anybody may have written it",
        "not checked": "Its signature was not checked, so nothing in it is proven",
    }[signature]
    over = ", and it has expired" if result["expired"] else ", and it is not valid yet" if result["not_yet_valid"] else ""
    return result | {"spoken": f"{state}{over}."}


def _signature(token: str, algorithm: str, key: str) -> str:
    """Return `valid`, `wrong`, `none` for a token that is not signed, or `not checked`."""
    signed, _, signature = token.rpartition(".")
    if algorithm.lower() == "none" or not signature:
        return "none"
    if not key:
        return "not checked"
    if algorithm != ALGORITHM:
        raise refused(f"A key checks {ALGORITHM} alone, and this token says {algorithm[:40]!r}. Leave the key out to read it.", "key")
    made = hmac.new(key.encode(), signed.encode(), hashlib.sha256).digest()
    try:
        return "valid" if hmac.compare_digest(made, unpack(signature)) else "wrong"
    except ValueError:
        return "wrong"


def _object(part: str, what: str) -> dict[str, Any]:
    try:
        value = parse(unpack(part).decode()).value
    except (ValueError, NotJson) as error:
        raise refused(f"The {what} of this token cannot be read: they are no JSON in base64url.", "token") from error
    if not isinstance(value, dict):
        raise refused(f"The {what} of this token are no JSON object.", "token")
    return value


def _time(value: object) -> str:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= _LATEST:
        return ""
    return datetime.fromtimestamp(value, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


def _passed(value: object, now: float) -> bool | None:
    """Return whether a time is over, or None where there is none."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return now >= value
