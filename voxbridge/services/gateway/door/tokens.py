"""The token with which a client resumes its session. The log keeps only its hash, so that reading the log does not let anyone resume.

Owns how a token is made and compared. Nothing is kept here, and nothing is lost in a crash.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
from typing import Final

_BYTES: Final = 32
_NOBODY: Final = hashlib.sha256(secrets.token_bytes(_BYTES)).hexdigest()


def new_token() -> str:
    """Return a token of 256 random bits: 43 characters, safe in a URL."""
    return secrets.token_urlsafe(_BYTES)


def hash_of(token: str) -> str:
    """Return the hash of a token that the log keeps: SHA-256 in hex."""
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).hexdigest()


def fits(token: str, resume_hash: str) -> bool:
    """Tell whether the hash is that of this token; no token fits an empty hash. Takes constant time."""
    return hmac.compare_digest(hash_of(token), resume_hash or _NOBODY)
