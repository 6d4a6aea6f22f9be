"""`/api/secrets`: secrets of accounts for the handlers of their pages (docs/platform.md).

Owns the routes. Does not own the secrets (`voxbridge.shared.platform.secrets`): this process seals them, and can open none. Nothing is lost
in a crash here: what was answered is in Valkey.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Final

import msgspec
from fastapi import APIRouter, Depends, Path, Query, Request, Response

from voxbridge.services.gateway.rest.functions import decoded
from voxbridge.shared.platform.secrets import Environment, Rule, SealedSecrets
from voxbridge.shared.secrets.access_tokens import ACCOUNT, LOCAL

if TYPE_CHECKING:
    from voxbridge.services.gateway.rest.context import Context

BODY_LIMIT: Final = 16_384
"""Bytes of a body: a value, and where it may go."""

_Account = Annotated[str, Query(pattern=f"^{ACCOUNT.pattern}$")]
_Environment = Annotated[Environment, Path()]
_Name = Annotated[str, Path(max_length=64)]


class Wanted(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A value, and where it may go."""

    value: str
    rule: Rule = Rule()


def router(gateway: Context) -> APIRouter:
    """Build the routes of a gateway. They are for administrators and no page, and stand in no schema that is served."""
    administrator = [Depends(gateway.access.administrator)]
    made = APIRouter(prefix="/api/secrets", tags=["platform"], dependencies=administrator, include_in_schema=False)
    secrets = SealedSecrets.of(gateway.resources.config, gateway.resources.redis)

    @made.get("")
    async def known(account: _Account = LOCAL) -> Response:
        """The secrets of an account: names, rules and times, never a value."""
        return _json({"secrets": await secrets.known(account)})

    @made.put("/{environment}/{name}")
    async def put(request: Request, environment: _Environment, name: _Name, account: _Account = LOCAL) -> Response:
        """Store a secret in place of one of the same name."""
        wanted = await decoded(request, Wanted, limit=BODY_LIMIT)
        now = gateway.resources.clock.now_us()
        return _json(await secrets.set(account, environment, name, wanted.value, wanted.rule, now=now))

    @made.delete("/{environment}/{name}", status_code=204)
    async def erase(environment: _Environment, name: _Name, account: _Account = LOCAL) -> Response:
        """Erase a secret."""
        await secrets.erase(account, environment, name)
        return Response(status_code=204)

    return made


def _json(found: Any) -> Response:
    return Response(msgspec.json.encode(found), media_type="application/json")
