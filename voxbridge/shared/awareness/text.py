"""Cleaning of foreign text: on its way into the log, what looks secret is taken out; on its way into a prompt, what could be taken for
anything but text in a line.

Owns what counts as secret-looking and as invisible. Does not own lengths, which depend on the place. Pure.
"""

from __future__ import annotations

import re
import unicodedata
from typing import Final
from urllib.parse import SplitResult, unquote, urlsplit, urlunsplit

MORE: Final = "…"
GONE: Final = "[removed]"
"""Text in place of a secret within a sentence."""

_NAMES: Final = (
    r"access|account_?key|api_?key|assertion|auth(?:orization)?|bearer|client_?secret|code|credentials?|csrf|hash|hmac|id_?token|invite|"
    r"jwt|key|login|magic|nonce|otp|passphrase|passw(?:or)?d|pass|pin|private|pwd|refresh|reset|samlresponse|secret|session(?:_?id)?|"
    r"sid|sig(?:nature)?|state|ticket|token|verify"
)
_SECRET_NAME: Final = re.compile(
    rf"(?:^|[^a-z])(?:{_NAMES})(?:$|[^a-z])|(?:token|secret|password|passwd|signature|credential|apikey)", re.IGNORECASE
)
_HUMP: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_SECRET_VALUE: Final = re.compile(
    r"eyJ[\w-]{8,}\.[\w-]+(?:\.[\w-]*)?"  # a JSON web token
    r"|(?:sk|pk|rk|ghp|gho|ghs|ghu|glpat|xox[abprs]|AKIA|ASIA|AIza|vxt)[-_]?[\w-]{12,}"
    r"|(?=[\w+/-]*\d)(?=[\w+/-]*[A-Za-z])[\w+/-]{32,}={0,2}"
)
_ADDRESS: Final = re.compile(r"""[a-z][a-z0-9+.-]{1,20}://[^\s<>"'`]+|/[^\s<>"'`]*[?#][^\s<>"'`]+""", re.IGNORECASE)
_NAMED: Final = re.compile(
    r"\b((?:\w{0,40}[_-])?(?:api[_-]?key|token|secret|passw(?:or)?d|passphrase|pwd|authorization|signature|credential)s?)"
    r"""("?\s*[=:]\s*"?)(?:bearer\s+|basic\s+)?[^\s,;&"']+""",
    re.IGNORECASE,
)
_BEARER: Final = re.compile(r"\b(bearer|basic)\s+[\w.+/=-]{8,}", re.IGNORECASE)
_FENCES: Final = str.maketrans({"<": "‹", ">": "›", "`": "'", '"': "'", "\u201c": "'", "\u201d": "'", "\\": "/", "[": "(", "]": ")"})
_INVISIBLE: Final = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
_FILLERS: Final = frozenset("\u115f\u1160\u3164\uffa0\u034f\u2800\u17b4\u17b5")
"""Letters and marks that show nothing."""

_MARKS: Final = 2
"""Combining marks on one letter that are kept; more of them climb over other lines."""


def without_secrets(text: str) -> str:
    """Return a text without what looks secret: in the addresses within it, behind names such as `token=`, or by its own form."""
    text = _ADDRESS.sub(lambda found: address(found[0]), text)
    text = _NAMED.sub(rf"\1\2{GONE}", text)
    text = _BEARER.sub(rf"\1 {GONE}", text)
    return _SECRET_VALUE.sub(GONE, text)


def address(url: str) -> str:
    """Return an address, or a path, without user names, secret-looking parameters and secret-looking parts of its path. What cannot be read
    loses everything from its first `?` or `#` on."""
    try:
        parts = urlsplit(url)
        host = parts.netloc.rpartition("@")[2]
        made = SplitResult(parts.scheme, host, _path(parts.path), _parameters(parts.query), _fragment(parts.fragment))
        return urlunsplit(made)
    except ValueError:
        return re.split(r"[?#]", url.rpartition("@")[2], maxsplit=1)[0]


def _path(path: str) -> str:
    return "/".join(MORE if _SECRET_VALUE.fullmatch(unquote(part)) else part for part in path.split("/"))


def _fragment(fragment: str) -> str:
    """Return a fragment: one that has parameters is filtered as a query is; that of a router may have a path and a query."""
    path, mark, query = fragment.partition("?")
    if mark:
        kept = _parameters(query)
        return f"{_path(path)}?{kept}" if kept else _path(path)
    return _parameters(fragment) if "=" in fragment else _path(fragment)


def _parameters(query: str) -> str:
    return "&".join(part for part in re.split(r"[&;]", query) if part and not _secret(part))


def _secret(part: str) -> bool:
    name, _, value = part.partition("=")
    return bool(_SECRET_NAME.search(_HUMP.sub("_", unquote(name))) or _SECRET_VALUE.search(unquote(value)))


def plain(text: str, limit: int) -> str:
    """Return a foreign text as one line of at most `limit` characters, in which nothing is invisible, changes the direction of reading, or
    can end the block that it is quoted in."""
    seen: list[str] = []
    marks = 0
    for character in unicodedata.normalize("NFKC", text[: 4 * limit]):
        kind = unicodedata.category(character)
        marks = marks + 1 if kind in ("Mn", "Me") else 0
        if character.isspace() or kind in ("Zl", "Zp"):
            seen.append(" ")
        elif kind not in _INVISIBLE and character not in _FILLERS and not _selects(character) and marks <= _MARKS:
            seen.append(character)
    line = " ".join("".join(seen).translate(_FENCES).split())
    return line if len(line) <= limit else f"{line[: limit - 1].rstrip()}{MORE}"


def _selects(character: str) -> bool:
    """Check for the characters that choose another form of the one before, and can carry a hidden text."""
    return "\ufe00" <= character <= "\ufe0f" or "\U000e0100" <= character <= "\U000e01ef"
