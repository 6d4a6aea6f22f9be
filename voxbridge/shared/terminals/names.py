"""Tokens of terminals: what stands in subjects for a name in any script."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Container
from hashlib import blake2s
from typing import Final

_OTHER: Final = re.compile(r"[^a-z0-9]+")
_WORD_LIMIT: Final = 24
_HASH_BYTES: Final = 3


def token_of(name: str, taken: Container[str] = ()) -> str:
    """Return a token for a name: what of it is ASCII, and a hash that tells names apart. Names that are the same give the same token;
    one that is in `taken` gets a number behind it."""
    whole = unicodedata.normalize("NFKC", name).strip()
    word = _OTHER.sub("-", unicodedata.normalize("NFKD", whole).casefold()).strip("-")[:_WORD_LIMIT].strip("-")
    token = f"{word or 't'}-{blake2s(whole.encode(), digest_size=_HASH_BYTES).hexdigest()}"
    found, number = token, 2
    while found in taken:
        found, number = f"{token}-{number}", number + 1
    return found


def life_of(token: str, at: int) -> str:
    """Return the name of a terminal's life, from its token and the time of its start (µs): a token is used again once its terminal is
    closed, and the log of the one before is not gone on with."""
    return f"{token}-{at // 1_000:x}"
