"""`POST /api/chat`: a conversation in text for servers with a key (docs/platform.md).

Owns the route, and the two forms of an answer. Does not own the exchange (`voxbridge.services.gateway.platform.chat`). Nothing is lost in a
crash here: the log has what was said.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import aclosing
from typing import Final

import msgspec
from fastapi import APIRouter, Request, Response
from starlette.responses import StreamingResponse

from voxbridge.services.gateway.platform import chat
from voxbridge.services.gateway.platform.chat import Answer, Exchange
from voxbridge.services.gateway.platform.messages import CONFIGURE_LIMIT
from voxbridge.services.gateway.rest import bodies
from voxbridge.services.gateway.rest.context import Context
from voxbridge.shared.errors import VoxbridgeError

STREAM: Final = "text/event-stream"
_JSON: Final = "application/json"


def router(gateway: Context) -> APIRouter:
    """Build the route of a gateway. Its key is judged as at `/session`."""
    made = APIRouter(include_in_schema=False)

    @made.post("/api/chat")
    async def answer(request: Request) -> Response:
        """Answer a message, as JSON or, where `Accept` names it, as a stream of events."""
        asked = chat.asked(await bodies.read(request, limit=CONFIGURE_LIMIT))
        serve = await gateway.enter(request.scope, v1=True)
        told = Exchange(asked).run(serve)
        if STREAM in request.headers.get("accept", ""):
            return StreamingResponse(_events(told), media_type=STREAM, headers={"Cache-Control": "no-store"})
        async with aclosing(told):
            async for one in told:
                if isinstance(one, Answer):
                    return Response(msgspec.json.encode(one), media_type=_JSON)
        raise AssertionError("an exchange ends with its answer, or raises")

    return made


async def _events(told: AsyncIterator[str | Answer]) -> AsyncIterator[bytes]:
    """Yield `text` with all of the answer so far, then `answer`, or `error`."""
    try:
        async for one in told:
            kind, data = ("answer", one) if isinstance(one, Answer) else ("text", {"text": one})
            yield b"event: %s\ndata: %s\n\n" % (kind.encode(), msgspec.json.encode(data))
    except VoxbridgeError as error:
        yield b"event: error\ndata: %s\n\n" % msgspec.json.encode(error.as_dict())
