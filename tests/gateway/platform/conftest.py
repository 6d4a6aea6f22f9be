"""A page, or a stranger, at `/session` of a running gateway."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from websockets.asyncio.client import connect
from websockets.exceptions import InvalidStatus
from websockets.typing import Origin, Subprotocol

from tests.eventually import eventually
from tests.gateway.conftest import Client, Running
from voxbridge.shared.platform.keys import Key, Wishes

SHOP = "https://shop.example"
TOOL = {
    "name": "check_order",
    "description": "Look up order status by order ID",
    "parameters": {"order_id": {"type": "string", "description": "Order ID"}},
    "handler": "async (args, ctx) => ({ status: 'sent' })",
}
CONFIGURE: dict[str, Any] = {"type": "configure", "instructions": "You are a helpful weather assistant.", "greeting": "Hey!"}


async def make_key(running: Running, **wishes: Any) -> tuple[Key, str]:
    """Make a key of the account `shop`, a test key unless the wishes say otherwise."""
    platform = running.gateway.platform
    await eventually(lambda: platform.registry.whole)
    return await platform.accounts.make(Wishes(**{"account": "shop"} | wishes))


@asynccontextmanager
async def page(running: Any, text: str, *, origin: str | None = SHOP, v1: bool = False, **headers: str) -> AsyncIterator[Client]:
    """Open a socket as a page of this origin does."""
    protocols = [Subprotocol("voxbridge.v1")] if v1 else None
    address = f"ws://127.0.0.1:{running.port}/session?key={text}" if text else f"ws://127.0.0.1:{running.port}/session"
    given = None if origin is None else Origin(origin)
    async with connect(address, origin=given, subprotocols=protocols, compression=None, additional_headers=headers) as socket:
        yield Client(socket)


async def refused(running: Any, text: str, *, origin: str | None = SHOP, v1: bool = False, **headers: str) -> tuple[int, dict[str, Any]]:
    """Return the status and the error with which a handshake is refused."""
    try:
        async with page(running, text, origin=origin, v1=v1, **headers):
            pass
    except InvalidStatus as refusal:
        return refusal.response.status_code, json.loads(refusal.response.body or b"{}")
    raise AssertionError("the socket was opened")
