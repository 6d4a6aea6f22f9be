"""`GET /session`: why a page was refused the socket there, since a browser tells its page nothing of a refused handshake.

Owns the route. Does not own the judgement (`voxbridge.services.gateway.platform.admittance`), which is that of a handshake. Nothing is lost
in a crash here.
"""

from __future__ import annotations

from typing import Final

import msgspec
from fastapi import APIRouter, Request, Response

from voxbridge.services.gateway.rest.context import Context
from voxbridge.shared.errors import HTTP_STATUS, VoxbridgeError

_HEADERS: Final = {"Access-Control-Allow-Origin": "*", "Cache-Control": "no-store"}
"""Pages of any origin may read it: the key is in their own address."""


def router(gateway: Context) -> APIRouter:
    """Build the route of a gateway. It stands in no schema that is served: a socket is asked for there."""
    made = APIRouter(include_in_schema=False)

    @made.get("/session")
    async def judged(request: Request) -> Response:
        """Answer 200 where a socket would be opened now, else the error that refuses it."""
        try:
            await gateway.platform.judge(request.scope)
        except VoxbridgeError as error:
            body = msgspec.json.encode(error.as_dict())
            return Response(body, HTTP_STATUS.get(error.code, 500), headers=_HEADERS, media_type="application/json")
        return Response(b"{}", headers=_HEADERS, media_type="application/json")

    return made
