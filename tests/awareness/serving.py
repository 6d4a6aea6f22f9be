"""An awareness service on real servers, and a gateway's recorder beside it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import NamedTuple

from voxbridge.services.awareness.service import AwarenessService, build
from voxbridge.services.gateway.awareness.recorder import Recorder
from voxbridge.shared.awareness_client import AskView, Known, ask
from voxbridge.shared.clock import SystemClock
from voxbridge.shared.config import Config
from voxbridge.shared.events.gateway import ContextSet, ErrorReported, PageVisited
from voxbridge.shared.ids import new_process_id
from voxbridge.shared.log.reader import Log
from voxbridge.shared.service.process import connected


class Serving(NamedTuple):
    """A service that runs, its log, and a recorder."""

    service: AwarenessService
    log: Log
    recorder: Recorder

    async def known(self, account: str = "local") -> Known:
        """Return what the service knows of an account."""
        return await ask(self.log.nc, AskView(account=account))


@asynccontextmanager
async def serving(config: Config) -> AsyncIterator[Serving]:
    """Run the service."""
    clock = SystemClock()
    async with connected(config, "awareness", new_process_id("awareness"), clock) as resources:
        service = await build(resources)
        running = asyncio.create_task(service.serve())
        await resources.log.nc.flush()  # so that another connection may ask at once
        try:
            yield Serving(service, resources.log, recorder(resources.log))
        finally:
            await service.drain()
            await running


def recorder(log: Log) -> Recorder:
    """Return a recorder whose clients may report as often as they like."""
    ticks = iter(range(0, 10**9, 10))
    return Recorder(log, SystemClock().now_us, lambda: None, clock=lambda: float(next(ticks)))


def visit(page: str, title: str = "", session: str = "") -> PageVisited:
    return PageVisited(visit_id="", page=page, title=title, session=session)


def error(message: str, kind: str = "TypeError", page: str = "") -> ErrorReported:
    return ErrorReported(error_id="", error_type=kind, message=message, page=page)


def fact(key: str, value: str) -> ContextSet:
    return ContextSet(key=key, value=value)
