"""The session token of plain VOX: one string with the session, its token (`voxbridge.services.gateway.door.tokens`) and the client's
position.

Owns the format. Pure.
"""

from __future__ import annotations

import re
from typing import Final

import msgspec

_FORM: Final = re.compile(r"([0-9a-f]{32})\.([A-Za-z0-9_-]{43})\.(0|[1-9][0-9]{0,15})")


class SessionToken(msgspec.Struct, frozen=True):
    """The token that a plain VOX client gets and sends back: its session, the resume token, and the position of its last event."""

    sid: str
    token: str
    last_seq: int

    def __str__(self) -> str:
        return f"{self.sid}.{self.token}.{self.last_seq}"


def read(session_token: str) -> SessionToken | None:
    """Parse a `session_token`; None when it has not the gateway's format. `tokens.fits` checks the token itself."""
    found = _FORM.fullmatch(session_token)
    return SessionToken(found[1], found[2], int(found[3])) if found is not None else None
