"""The rights of a caller: the machine's owner and administrators may do everything, others what their access token allows.

Owns the rule for requests and sockets, and the count of calls that a token has started, which is in Valkey. Does not own the decision who
is an administrator (`admin_auth`) nor the form of tokens (`voxbridge.shared.secrets.access_tokens`). Keeps no other state.
"""

from __future__ import annotations

from typing import Final

import msgspec
from starlette.requests import Request

from voxbridge.services.gateway.door.admin_auth import Admins
from voxbridge.services.gateway.door.forwarded import Headers, forwarded
from voxbridge.shared.clock import Clock
from voxbridge.shared.config import Config
from voxbridge.shared.errors import Code, VoxbridgeError
from voxbridge.shared.events.gateway import SessionRequested
from voxbridge.shared.secrets import access_tokens
from voxbridge.shared.secrets.access_tokens import Terms
from voxbridge.shared.secrets.secret_file import admin_token_file, new_secret
from voxbridge.shared.store.store import Store

_SCHEME: Final = "bearer"


class Arrival(msgspec.Struct, frozen=True):
    """The sender of a request, according to its headers."""

    authorization: str | None
    forwarded: bool

    @property
    def bearer(self) -> str:
        """The token of the `Authorization` header; empty without one."""
        scheme, _, given = (self.authorization or "").partition(" ")
        return given.strip() if scheme.lower() == _SCHEME else ""


def arrival(headers: Headers) -> Arrival:
    """Read the sender from the headers. If there is more than one `Authorization` header, none is used: another server might pick a
    different one."""
    found, through = [], forwarded(headers)
    for name, value in headers:
        if name == b"authorization":
            found.append(value.decode("latin-1"))
    return Arrival(found[0] if len(found) == 1 else None, through)


class Access:
    """The access rule of one gateway."""

    def __init__(self, config: Config, store: Store, clock: Clock) -> None:
        self.admins = Admins(config)
        self._file = admin_token_file(config)
        self._store = store
        self._clock = clock

    def admit(self, came: Arrival, token: str = "") -> Terms | None:
        """Return the caller's terms, or None for an administrator. `token` takes precedence over the token of the headers. Raises
        `UNAUTHENTICATED`, or `UNAVAILABLE` when the administrators' token file cannot be used."""
        given = token or came.bearer
        if access_tokens.is_one(given):
            return access_tokens.read(given, self._file.read() or new_secret(), now_s=self._now_s())
        self.admins.check(f"Bearer {token}" if token else came.authorization, through=came.forwarded)
        return None

    async def caller(self, request: Request) -> Terms | None:
        """Return the terms of a request's caller, for a route."""
        return self.admit(arrival(request.headers.raw))

    async def administrator(self, request: Request) -> None:
        """Check that a request comes from an administrator, for a route. Raises `PERMISSION_DENIED` for the holder of an access token."""
        if await self.caller(request) is not None:
            raise VoxbridgeError(
                Code.PERMISSION_DENIED, "This needs the administrators' token; an access token does not do.", field="token"
            )

    async def begin(self, terms: Terms | None, asked: SessionRequested) -> SessionRequested:
        """Count the session among the calls of its token, and return it with the token's account. Raises `PERMISSION_DENIED` that names the
        field."""
        if terms is None:
            return asked
        check(terms, asked)
        if terms.calls:
            started = await self._store.count_call(terms.id, keep_s=max(1, terms.expires_s - self._now_s()))
            if started > terms.calls:
                made = "one call, and it was made" if terms.calls == 1 else f"{terms.calls} calls, and they were made"
                raise _denied("token", f"This access token was for {made}", terms.calls)
        return msgspec.structs.replace(asked, account=terms.account)

    def secret(self) -> str:
        """Return the secret that signs tokens; make it if there is none yet. Raises `UNAVAILABLE`."""
        return self._file.ensure()

    def _now_s(self) -> int:
        return self._clock.now_us() // 1_000_000


def check(terms: Terms, asked: SessionRequested) -> None:
    """Raise `PERMISSION_DENIED` unless the terms allow this session."""
    if terms.agents or terms.modes:
        if asked.agent:
            if asked.agent not in terms.agents:
                raise _denied("agent", f"This access token is not for {asked.agent!r}", ", ".join(terms.agents))
        elif asked.mode not in terms.modes:
            field, limit = ("mode", ", ".join(terms.modes)) if terms.modes else ("agent", ", ".join(terms.agents))
            raise _denied(field, f"This access token is for {limit} alone", limit)
    if asked.model and asked.model not in terms.models:
        raise _denied("model", "This access token does not allow this model", ", ".join(terms.models))
    if asked.system_prompt and not terms.prompt:
        raise _denied("systemPrompt", "This access token allows no prompt", 0)


def owns(terms: Terms | None, account: str | None) -> bool:
    """Tell whether the caller may read what belongs to `account`. What has no account is for administrators alone."""
    return terms is None or account == terms.account


def _denied(field: str, what: str, limit: float | str) -> VoxbridgeError:
    return VoxbridgeError(Code.PERMISSION_DENIED, f"{what}.", field=field, limit=limit)
