"""Encodings of text, hashes, the parts of a URL, and random identifiers and passwords."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import html
import math
import random
import secrets
import string
import time
import uuid
import zlib
from typing import Any, Final, Literal
from urllib.parse import parse_qsl, quote, unquote_to_bytes, urlsplit

from voxbridge.services.tools.packs.utilities.bounds import LISTED_LIMIT, given, refused, storable

Encoding = Literal["base64", "base64url", "hex", "url", "html"]
Algorithm = Literal["sha256", "sha512", "sha1", "md5", "sha3_256", "blake2b", "crc32"]
Namespace = Literal["dns", "url", "oid", "x500"]

BROKEN: Final = frozenset({"md5", "sha1"})
"""Hashes for which two texts with the same hash can be made."""
SIMILAR: Final = frozenset("Il1O0o")
SYMBOLS: Final = "!#$%&*+-=?@^_~"
_PORTS: Final = {"http": 80, "https": 443, "ftp": 21, "ssh": 22, "ws": 80, "wss": 443}


def encode(text: str, encoding: Encoding) -> str:
    """Return a text in an encoding, by way of UTF-8."""
    raw = text.encode()
    match encoding:
        case "base64":
            return given(base64.b64encode(raw).decode())
        case "base64url":
            return given(base64.urlsafe_b64encode(raw).decode().rstrip("="))
        case "hex":
            return given(raw.hex())
        case "url":
            return given(quote(text, safe=""))
        case "html":
            return given(html.escape(text))


def decode(text: str, encoding: Encoding) -> bytes:
    """Return what a text in an encoding stands for. Raises `INVALID_ARGUMENT`."""
    try:
        match encoding:
            case "base64" | "base64url":
                return unpack(text)
            case "hex":
                return bytes.fromhex(text.strip().removeprefix("0x").replace(":", " "))
            case "url":
                return unquote_to_bytes(text.replace("+", " "))
            case "html":
                return html.unescape(text).encode("utf-8", "replace")
    except (ValueError, binascii.Error) as error:
        raise refused(f"This is not {encoding}: {str(error).lower()[:100]}.") from error


def unpack(text: str) -> bytes:
    """Return what base64 stands for, in either alphabet, with or without its padding. Raises `ValueError`."""
    packed = "".join(text.split()).rstrip("=").replace("-", "+").replace("_", "/")
    return base64.b64decode(packed + "=" * (-len(packed) % 4), validate=True)


def decoded(text: str, encoding: Encoding) -> dict[str, Any]:
    """Return what a text stands for as text, or in hexadecimal digits where it is none."""
    raw = decode(text, encoding)
    try:
        shown = raw.decode()
    except UnicodeDecodeError:
        return {"hex": given(raw.hex()), "bytes": len(raw), "spoken": f"It holds {len(raw):,} bytes that are no text."}
    said = shown if len(shown) <= 100 and shown.isprintable() else f"a text of {len(shown):,} characters"
    return {"text": given(shown), "bytes": len(raw), "spoken": f"It says: {said}." if said is shown else f"It is {said}."}


def digest(text: str, algorithm: Algorithm, key: str = "") -> str:
    """Return the hash of a text in hexadecimal digits; with a key, its HMAC."""
    raw = text.encode()
    if algorithm == "crc32":
        if key:
            raise refused("crc32 takes no key; choose sha256.", "key")
        return f"{zlib.crc32(raw):08x}"
    if key:
        return hmac.new(key.encode(), raw, algorithm).hexdigest()
    return hashlib.new(algorithm, raw, usedforsecurity=False).hexdigest()


def parts_of(url: str) -> dict[str, Any]:
    """Return the parts of a URL, decoded. A password is not shown."""
    if any(character.isspace() or not character.isprintable() for character in url.strip()):
        raise refused("A URL has no spaces or control characters.", "url")
    try:
        split = urlsplit(url.strip())
        host, port = split.hostname or "", split.port
    except ValueError as error:
        raise refused(f"This URL cannot be taken apart: {str(error)[:100]}.", "url") from error
    if not split.scheme:
        raise refused("This is not a whole URL: it begins with no scheme such as https://.", "url")
    try:
        shown = host.encode("ascii").decode("idna") if "xn--" in host else host
    except UnicodeError:
        shown = host
    try:
        pairs = parse_qsl(split.query, keep_blank_values=True, max_num_fields=TEXT_FIELDS)
    except ValueError as error:
        raise refused(f"Its query has more than {TEXT_FIELDS} fields.", "url") from error
    result: dict[str, Any] = {
        "scheme": split.scheme,
        "host": shown,
        "port": port or _PORTS.get(split.scheme),
        "path": storable(unquote_to_bytes(split.path).decode("utf-8", "replace")),
        "query": [{"name": storable(name), "value": storable(value)} for name, value in pairs[:LISTED_LIMIT]],
        "query_count": len(pairs),
        "fragment": split.fragment,
        "user": split.username or "",
        "has_password": split.password is not None,
    }
    given(str(result))
    about = f"path {result['path'][:60]}" if split.path not in ("", "/") else "no path"
    return result | {"spoken": f"It leads to {shown or 'no host'} by {split.scheme}, with {about}."}


TEXT_FIELDS: Final = 1_000
"""Fields of a query."""


def new_uuid(version: Literal[4, 5, 7], name: str = "", namespace: Namespace = "dns", *, now_ms: int | None = None) -> str:
    """Return a UUID: random (4), made of a name (5), or random and sorted by time (7, RFC 9562)."""
    if version == 5:
        if not name:
            raise refused("A UUID of version 5 is made of a name; give one.", "name")
        return str(uuid.uuid5(getattr(uuid, f"NAMESPACE_{namespace.upper()}"), name))
    if version == 4:
        return str(uuid.uuid4())
    stamp = time.time_ns() // 1_000_000 if now_ms is None else now_ms
    bits = stamp << 80 | secrets.randbits(80)
    bits = bits & ~(0xF << 76) & ~(0x3 << 62) | 0x7 << 76 | 0x2 << 62
    return str(uuid.UUID(int=bits))


def password(length: int, *, symbols: bool, similar: bool) -> tuple[str, int]:
    """Return a random password that holds each kind of character, and its entropy in bits."""
    kinds = [string.ascii_lowercase, string.ascii_uppercase, string.digits, *([SYMBOLS] if symbols else [])]
    kinds = ["".join(one for one in kind if similar or one not in SIMILAR) for kind in kinds]
    alphabet = "".join(kinds)
    chance: random.Random = secrets.SystemRandom()
    while True:
        made = "".join(chance.choices(alphabet, k=length))
        if all(set(kind) & set(made) for kind in kinds):
            return made, math.floor(length * math.log2(len(alphabet)))
