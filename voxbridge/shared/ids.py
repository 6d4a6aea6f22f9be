"""Identifiers: random ones for sessions, derived ones for everything inside a session.

An event's id is derived from its session, its writer and its number, so that a retry and a replay give the same id.
"""

from __future__ import annotations

import re
import secrets

from voxbridge.shared.errors import Code, VoxbridgeError

_SESSION_ID = re.compile(r"[0-9a-f]{32}")


def new_session_id() -> str:
    """Return a new session id: 128 random bits in lower-case hex, safe as a NATS subject token."""
    return secrets.token_hex(16)


def check_session_id(value: str) -> str:
    """Return `value` when it has the form of a session id; otherwise raise `NOT_FOUND`, as for an unknown session."""
    if _SESSION_ID.fullmatch(value) is None:
        raise VoxbridgeError(Code.NOT_FOUND, "There is no session with this id.", field="session_id")
    return value


def new_process_id(service: str) -> str:
    """Return a name for one running process of a service, used in leases and in `session.owned`."""
    return f"{service}-{secrets.token_hex(4)}"
