"""`/api/config`: settings that an administrator changes at runtime (docs/protocol.md, section 8).

Owns the routes and the answers, which never contain a key. Does not own the keys (`voxbridge.shared.secrets.provider_keys`) nor the check
for administrators (`voxbridge.services.gateway.door.access`). Nothing is lost in a crash here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Literal

import msgspec
from fastapi import APIRouter, Depends, Path, Request, Response
from pydantic import BaseModel

from voxbridge.services.gateway.rest import bodies
from voxbridge.services.gateway.rest.errors import refused
from voxbridge.shared.agents.providers import variables
from voxbridge.shared.errors import Code, VoxbridgeError
from voxbridge.shared.secrets.provider_keys import KEY_LIMIT

if TYPE_CHECKING:
    from voxbridge.services.gateway.rest.context import Context

_ANSWERS: Final[dict[int | str, dict[str, Any]]] = {
    401: refused("An administrator's token is needed"),
    403: refused("This Host or Origin is not allowed"),
    422: refused("An argument is out of its range"),
    503: refused("Something the answer needs is away"),
    504: refused("The body did not come in time"),
}


class KeySource(BaseModel):
    """The source of the key of a provider or of a named endpoint."""

    source: Literal["stored", "environment", "none"]
    variables: list[str]
    """The environment variables that may hold the key."""


class KeySources(BaseModel):
    """Every provider and named endpoint. No key is ever shown."""

    keys: dict[str, KeySource]


class _Setting(msgspec.Struct, frozen=True):
    provider: str
    key: str

    def __repr__(self) -> str:
        return f"_Setting({self.provider!r})"


def router(gateway: Context) -> APIRouter:
    """Build the routes of a gateway."""
    keys = gateway.keys
    names = {"type": "string", "enum": list(keys.names)}

    made = APIRouter(prefix="/api/config", tags=["configuration"], dependencies=[Depends(gateway.access.administrator)], responses=_ANSWERS)

    @made.get("/keys", response_model=KeySources)
    async def known() -> Any:
        """The keys that are set, and whether they are stored or from the environment."""
        return {"keys": {name: {"source": source, "variables": variables(name)} for name, source in (await keys.known()).items()}}

    @made.post("/keys", status_code=204, openapi_extra=_body(names))
    async def set_key(request: Request) -> Response:
        """Store the key of a provider or of a named endpoint; the body is `{"provider", "key"}`. It counts from now on."""
        setting = await _setting(request)
        await keys.set(setting.provider, setting.key)
        return Response(status_code=204)

    @made.delete("/keys/{provider}", status_code=204)
    async def forget_key(provider: str = Path(json_schema_extra=names)) -> Response:
        """Remove a stored key; that of the environment, if there is one, counts again."""
        await keys.forget(provider)
        return Response(status_code=204)

    return made


async def _setting(request: Request) -> _Setting:
    body = await bodies.read(request)
    try:
        return msgspec.json.decode(body, type=_Setting)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        # The decoder's message may quote the body, which holds the key.
        raise VoxbridgeError(Code.INVALID_ARGUMENT, 'The body must be JSON: `{"provider": "…", "key": "…"}`.', field="body") from None


def _body(names: dict[str, Any]) -> dict[str, Any]:
    """Return the body's schema for OpenAPI. The body is not read by FastAPI, so that its size is limited and no error repeats it."""
    key = {"type": "string", "minLength": 1, "maxLength": KEY_LIMIT, "pattern": "^[!-~]+$", "format": "password", "writeOnly": True}
    schema = {"type": "object", "required": ["provider", "key"], "properties": {"provider": names, "key": key}}
    return {"requestBody": {"required": True, "content": {"application/json": {"schema": schema}}}}
