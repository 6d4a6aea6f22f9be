"""`POST /api/tokens`: make an access token, as an administrator (docs/protocol.md, section 10).

Owns the route. Does not own the content of a token (`voxbridge.shared.secrets.access_tokens`). Nothing is kept, and nothing is lost in a
crash here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import msgspec
from fastapi import APIRouter, Depends, Request
from pydantic import BaseModel

from voxbridge.services.gateway.core.messages import MODES
from voxbridge.services.gateway.rest import bodies
from voxbridge.services.gateway.rest.errors import refused
from voxbridge.shared.errors import Code, VoxbridgeError
from voxbridge.shared.secrets import access_tokens
from voxbridge.shared.secrets.access_tokens import CALLS_LIMIT, LONGEST_S, NAMES_LIMIT, SHORTEST_S, USUAL_S, Wishes

if TYPE_CHECKING:
    from voxbridge.services.gateway.rest.context import Context

_NAMES: Final = {"type": "array", "items": {"type": "string"}, "maxItems": NAMES_LIMIT}
_BODY: Final = {
    "type": "object",
    "additionalProperties": False,
    "properties": {
        "account": {"type": "string", "pattern": f"^{access_tokens.ACCOUNT.pattern}$"},
        "agents": _NAMES,
        "modes": {"type": "array", "items": {"type": "string", "enum": list(MODES)}, "maxItems": NAMES_LIMIT},
        "models": _NAMES,
        "prompt": {"type": "boolean", "default": False},
        "calls": {"type": "integer", "minimum": 0, "maximum": CALLS_LIMIT, "default": 0},
        "seconds": {"type": "integer", "minimum": SHORTEST_S, "maximum": LONGEST_S, "default": USUAL_S},
    },
}
_ANSWERS: Final[dict[int | str, dict[str, Any]]] = {
    401: refused("An administrator's token is needed"),
    403: refused("This Host or Origin is not allowed, or an access token was shown"),
    422: refused("An argument is out of its range"),
    503: refused("The file of the administrators' token cannot be used"),
    504: refused("The body did not come in time"),
}


class Made(BaseModel):
    """A new access token."""

    token: str
    id: str
    account: str
    expires_at_ms: int


def router(gateway: Context) -> APIRouter:
    """Build the route of a gateway."""
    made = APIRouter(prefix="/api/tokens", tags=["tokens"], dependencies=[Depends(gateway.access.administrator)], responses=_ANSWERS)

    @made.post(
        "",
        response_model=Made,
        status_code=201,
        openapi_extra={"requestBody": {"required": True, "content": {"application/json": {"schema": _BODY}}}},
    )
    async def make(request: Request) -> Any:
        """Make an access token; the body is `{"account"?, "agents"?, "modes"?, "models"?, "prompt"?, "calls"?, "seconds"?}`."""
        try:
            wishes = msgspec.json.decode(await bodies.read(request), type=Wishes)
        except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
            raise VoxbridgeError(Code.INVALID_ARGUMENT, f"The body is not the expected JSON: {str(error)[:200]}.", field="body") from None
        now_s = gateway.resources.clock.now_us() // 1_000_000
        terms = access_tokens.terms(wishes, now_s=now_s, modes=MODES)
        token = access_tokens.sign(terms, gateway.access.secret())
        return {"token": token, "id": terms.id, "account": terms.account, "expires_at_ms": terms.expires_s * 1_000}

    return made
