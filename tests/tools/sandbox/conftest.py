"""Sandboxes as the tools service has them, without the service."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from typing import Any

import msgspec
import pytest

from tests.tools.sandbox.servers import Server, serving
from voxbridge.services.tools.sandbox.outside import Outside
from voxbridge.services.tools.sandbox.sandboxes import Outcome, Sandboxes, Wanted
from voxbridge.shared.fetch import Fetcher
from voxbridge.shared.platform.secrets import Opened


@dataclass
class Room:
    """Calls of handlers in sandboxes."""

    sandboxes: Sandboxes
    fetcher: Fetcher

    async def call(
        self,
        source: str,
        arguments: Any = None,
        *,
        secrets: Mapping[str, Opened] | None = None,
        hosts: tuple[str, ...] = (),
        sid: str = "s1",
        account: str = "a1",
        within_s: float = 20.0,
    ) -> Outcome:
        """Call a handler. Raises `TimeoutError` when it does not end in time."""
        outside = Outside(self.fetcher, secrets or {}, hosts)
        given = msgspec.json.encode({} if arguments is None else arguments).decode()
        wanted = Wanted(account=account, sid=sid, name="tool", source=source, arguments=given, secrets=outside.stand_ins)
        async with asyncio.timeout(within_s):
            return await self.sandboxes.call(wanted, outside.answer)

    async def value(self, source: str, arguments: Any = None, **more: Any) -> Any:
        """Return what a handler returns."""
        outcome = await self.call(source, arguments, **more)
        assert outcome.error is None, outcome.error
        return msgspec.json.decode(outcome.value)

    async def failure(self, source: str, arguments: Any = None, **more: Any) -> str:
        """Return the message with which a handler fails."""
        outcome = await self.call(source, arguments, **more)
        assert outcome.error is not None, outcome.value
        return outcome.error.message


@pytest.fixture
async def web() -> AsyncIterator[Server]:
    async with serving() as server:
        yield server


@pytest.fixture
async def room(web: Server) -> AsyncIterator[Room]:
    """Sandboxes that may ask `web`, by an exception for its address and port."""
    sandboxes = Sandboxes()
    yield Room(sandboxes, Fetcher(f"127.0.0.1:{web.port},localhost:{web.port}"))
    await sandboxes.close()
    assert len(sandboxes) == 0
