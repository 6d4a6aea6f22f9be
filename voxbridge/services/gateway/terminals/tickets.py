"""Tickets: who holds one opens one socket to terminals, once, soon, and in the role that it was made for.

A browser cannot send an `Authorization` header with a WebSocket, and a token in an address stays in logs. A ticket is in Valkey by the hash
of its text, for `TICKET_S`, and is taken away as it is used.
"""

from __future__ import annotations

import hashlib
import secrets
from typing import Annotated, Any, Final, Literal

import msgspec
from msgspec import Meta
from redis.exceptions import RedisError

from voxbridge.shared.errors import Code, VoxbridgeError

TICKET_S: Final = 30
ROLES: Final = ("view", "type", "control", "admin")
"""Roles, each with the rights of those before it: see, type, start and steer, and close, define and hand out tickets."""

Role = Literal["view", "type", "control", "admin"]


class Ticket(msgspec.Struct, frozen=True, kw_only=True):
    """A right to open one socket: as whom, in which role, and to which workspace alone (empty: to all)."""

    by: Annotated[str, Meta(min_length=1, max_length=64)] = "owner"
    role: Role = "view"
    workspace: Annotated[str, Meta(max_length=64)] = ""

    def may(self, role: Role) -> bool:
        """Tell whether the ticket's role has the rights of another."""
        return ROLES.index(self.role) >= ROLES.index(role)


def _key(text: str) -> str:
    return f"vx:gateway:ticket:{hashlib.sha256(text.encode()).hexdigest()}"


async def make(redis: Any, ticket: Ticket) -> str:
    """Make a ticket; return its text. Raises `UNAVAILABLE`."""
    text = secrets.token_urlsafe(32)
    try:
        await redis.set(_key(text), msgspec.json.encode(ticket), ex=TICKET_S)
    except RedisError as error:
        raise _away(error) from error
    return text


async def take(redis: Any, text: str) -> Ticket:
    """Take a ticket, so that nobody takes it again. Raises `UNAUTHENTICATED` for one that was used, is too old, or never was."""
    try:
        found = await redis.getdel(_key(text))
    except RedisError as error:
        raise _away(error) from error
    if found is None:
        message = "This ticket was used, is too old, or was never made. Ask for a new one with `POST /api/terminals/tickets`."
        raise VoxbridgeError(Code.UNAUTHENTICATED, message, field="ticket")
    return msgspec.json.decode(found, type=Ticket)


def _away(error: RedisError) -> VoxbridgeError:
    return VoxbridgeError(Code.UNAVAILABLE, f"Valkey does not answer: {error}.", retry_after_ms=1_000)
