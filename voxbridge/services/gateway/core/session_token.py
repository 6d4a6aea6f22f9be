"""The one string that plain VOX has for resuming: the session, its token (`voxbridge.services.gateway.vox.tokens`), and how far it was
told.

Owns how it is written and read. Pure.
"""

from __future__ import annotations

import re
from typing import Final

import msgspec

_FORM: Final = re.compile(r"([0-9a-f]{32})\.([A-Za-z0-9_-]{43})\.(0|[1-9][0-9]{0,15})")


class SessionToken(msgspec.Struct, frozen=True):
    """What a plain VOX client is given and gives back: its session, the token, and the position up to which it was told."""

    sid: str
    token: str
    last_seq: int

    def __str__(self) -> str:
        return f"{self.sid}.{self.token}.{self.last_seq}"


def read(session_token: str) -> SessionToken | None:
    """What a `session_token` says; nothing when it is none that a gateway gives. Whether it is true is for `tokens.fits` to say."""
    found = _FORM.fullmatch(session_token)
    return SessionToken(found[1], found[2], int(found[3])) if found is not None else None
