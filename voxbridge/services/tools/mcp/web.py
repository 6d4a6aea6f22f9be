"""The HTTP client for MCP servers: a body has a bound, whatever the server says of its length.

An answer that is too long becomes the error of its own call; raised in the SDK's reader it would end all calls of the server.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Final

import httpx2

from voxbridge.services.tools.mcp.lines import CUT_CODE

CONNECT_S: Final = 10.0
READ_S: Final = 300.0
"""Seconds of silence on an open answer; a call's own time-out is nearer."""

CONNECTIONS: Final = 64
_EVENTS: Final = "text/event-stream"


def client(headers: Mapping[str, str], *, limit: int) -> httpx2.AsyncClient:
    """Return a client that reads at most `limit` bytes of an answer that is not a stream of events, and takes none that is compressed."""
    timeout = httpx2.Timeout(CONNECT_S, read=READ_S)
    transport = _Bounded(httpx2.AsyncHTTPTransport(limits=httpx2.Limits(max_connections=CONNECTIONS)), limit)
    return httpx2.AsyncClient(headers={**headers, "Accept-Encoding": "identity"}, timeout=timeout, transport=transport, trust_env=False)


class _Bounded(httpx2.AsyncBaseTransport):
    def __init__(self, inner: httpx2.AsyncBaseTransport, limit: int) -> None:
        self._inner = inner
        self._limit = limit

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        response = await self._inner.handle_async_request(request)
        if response.headers.get("content-encoding", "identity") != "identity":
            await response.aclose()
            return _refusal(request, "a compressed answer, which was not asked for")
        if response.headers.get("content-type", "").startswith(_EVENTS):
            return response
        body = bytearray()
        try:
            async for piece in response.stream:  # type: ignore[union-attr]
                body += piece
                if len(body) > self._limit:
                    return _refusal(request, f"an answer of more than {self._limit} bytes")
        finally:
            await response.aclose()
        headers = [(name, value) for name, value in response.headers.multi_items() if name not in ("content-length", "transfer-encoding")]
        return httpx2.Response(response.status_code, headers=headers, content=bytes(body), request=request)

    async def aclose(self) -> None:
        await self._inner.aclose()


def _refusal(request: httpx2.Request, what: str) -> httpx2.Response:
    """Return the answer that stands for one that was not read: the error of the call that was asked."""
    try:
        asked = json.loads(request.content)
    except ValueError:
        asked = {}
    answer = {"jsonrpc": "2.0", "id": asked.get("id"), "error": {"code": CUT_CODE, "message": what}}
    return httpx2.Response(200, json=answer, request=request)
