"""The token with which a client resumes its session. The log has its hash only, so whoever reads the log cannot resume.

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
    """A token of 256 random bits: 43 characters, safe in a URL."""
    return secrets.token_urlsafe(_BYTES)


def hash_of(token: str) -> str:
    """What the log keeps of a token: SHA-256 in hex."""
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).hexdigest()


def fits(token: str, resume_hash: str) -> bool:
    """Whether this is the token; an empty hash has none. Takes the same time whatever the answer is."""
    return hmac.compare_digest(hash_of(token), resume_hash or _NOBODY)
