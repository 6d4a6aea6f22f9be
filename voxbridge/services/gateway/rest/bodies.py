"""The body of a request, limited in size and time.

Owns the two limits. Does not own what a body means. Nothing is lost in a crash here.
"""

from __future__ import annotations

import asyncio
from typing import Final

from fastapi import Request
from starlette.requests import ClientDisconnect

from voxbridge.shared.errors import Code, VoxbridgeError

BODY_LIMIT: Final = 4_096
"""Bytes of a body, unless a route allows more."""

BODY_S: Final = 5.0
"""Seconds that a body may take to arrive."""


async def read(request: Request, *, limit: int = BODY_LIMIT) -> bytes:
    """Return the whole body. Raises `TOO_LARGE`, `TIMED_OUT`, or `CANCELLED` when the client is gone."""
    body = bytearray()
    try:
        async with asyncio.timeout(BODY_S):
            async for part in request.stream():
                body += part
                if len(body) > limit:
                    raise VoxbridgeError(Code.TOO_LARGE, f"The body has more than {limit} bytes.", field="body", limit=limit)
    except TimeoutError:
        raise VoxbridgeError(Code.TIMED_OUT, f"The body did not come within {BODY_S:g} s.", field="body") from None
    except ClientDisconnect:
        raise VoxbridgeError(Code.CANCELLED, "The client is gone.") from None
    return bytes(body)
