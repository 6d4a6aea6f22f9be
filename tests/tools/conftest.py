"""A tool executor on real servers, and the voice service's side of its conversations."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import nats
import pytest
from nats.aio.client import Client
from redis.asyncio import Redis

from tests.eventually import BOUND_S
from voxbridge.services.tools.service import ToolService, build
from voxbridge.shared import events
from voxbridge.shared.clock import SystemClock
from voxbridge.shared.config import Config
from voxbridge.shared.events.gateway import TaskCancelRequested
from voxbridge.shared.events.voice import ToolCalled, ToolCancelled
from voxbridge.shared.ids import new_process_id, new_session_id
from voxbridge.shared.log.feed import Feed
from voxbridge.shared.log.reader import Log
from voxbridge.shared.log.writer import SessionWriter
from voxbridge.shared.service.process import connected
from voxbridge.shared.store.store import Store

E = TypeVar("E", bound=events.Event)


class Caller:
    """A session as the voice service sees it: it makes calls, and receives the executor's events."""

    def __init__(self, log: Log, sid: str) -> None:
        self.sid = sid
        self.log = log
        self.heard: list[events.Recorded] = []
        self._came = asyncio.Condition()
        self._clock = SystemClock()
        self._voice = SessionWriter(log, sid, "voice")
        self._feed = Feed(log, sid, self._hear, writer="tools")

    async def start(self) -> None:
        await self._feed.start()

    async def stop(self) -> None:
        await self._feed.stop()

    async def call(self, name: str, /, call_id: str = "c1", *, deadline_ms: int = 30_000, account: str = "local", **arguments: Any) -> int:
        """Call a function. Return the position of the call."""
        event = ToolCalled(call_id=call_id, name=name, arguments=arguments, kind="server", turn=1, deadline_ms=deadline_ms, account=account)
        return await self.say(event)

    async def cancel(self, call_id: str = "c1") -> int:
        return await self.say(ToolCancelled(call_id=call_id, name="any", reason="barge_in"))

    async def cancel_task(self, task_id: str) -> int:
        """Cancel a task as the user does in a client."""
        gateway = SessionWriter(self.log, self.sid, "gateway", stem=task_id, fenced=False)
        return await gateway.append(TaskCancelRequested(task_id=task_id), ts=self._clock.now_us(), cause=None)

    def now(self) -> int:
        return self._clock.now_us()

    async def say(self, event: events.Event) -> int:
        return await self._voice.append(event, ts=self._clock.now_us(), cause=None)

    async def next(self, type: type[E] | tuple[type[E], ...], call_id: str = "c1") -> tuple[E, events.Recorded]:
        """Wait for the event of this type about this call or its task, and return it."""

        def found() -> tuple[E, events.Recorded] | None:
            for recorded in self.heard:
                event = recorded.event
                if isinstance(event, type) and call_id in (
                    getattr(event, "call_id", ""),
                    getattr(event, "task_id", "").removeprefix("task-"),
                ):
                    return event, recorded
            return None

        async with asyncio.timeout(BOUND_S), self._came:
            await self._came.wait_for(lambda: found() is not None)
        answer = found()
        assert answer is not None
        return answer

    def told(self, *types: type[events.Event]) -> list[events.Event]:
        """Return the events received so far of these types, without the journal."""
        wanted = types or tuple(kind.cls for kind in events.KINDS.values() if not kind.name.endswith(".journal"))
        return [recorded.event for recorded in self.heard if isinstance(recorded.event, wanted)]

    async def _hear(self, recorded: events.Recorded) -> None:
        async with self._came:
            self.heard.append(recorded)
            self._came.notify_all()


class Executors:
    """Executors in this process, each with its own connections, on the servers of the test."""

    def __init__(self, config: Config) -> None:
        self.config = config

    @asynccontextmanager
    async def running(
        self, packs: str = "voxbridge.services.tools.packs.everyday.time,tests.tools.pack", **settings: Any
    ) -> AsyncIterator[ToolService]:
        config = replace(self.config, tool_packs=packs, **settings)
        async with connected(config, "tools", new_process_id("tools"), SystemClock()) as resources:
            service = await build(resources)
            resources.served.append(service)
            serving = asyncio.create_task(service.serve())
            try:
                yield service
            finally:
                await service.drain()
                await serving


@pytest.fixture
def config(nats_url: str, redis_url: str, tmp_path: Path) -> Config:
    return Config(nats_url=nats_url, redis_url=redis_url, workspace_dirs=str(tmp_path), data_dir=tmp_path / "data")


@pytest.fixture
def executors(config: Config) -> Executors:
    return Executors(config)


@pytest.fixture
async def connection(config: Config) -> AsyncIterator[Client]:
    client = await nats.connect(config.nats_url)
    yield client
    await client.close()


@pytest.fixture
async def log(connection: Client) -> Log:
    log = Log(connection)
    await log.ensure_streams(retention_days=1)
    return log


@pytest.fixture
async def store(config: Config) -> AsyncIterator[Store]:
    async with Redis.from_url(config.redis_url, decode_responses=True) as redis:
        yield Store(redis)


@pytest.fixture
async def callers(log: Log) -> AsyncIterator[Callable[[], Awaitable[Caller]]]:
    """Make sessions that call functions."""
    async with AsyncExitStack() as open_things:

        async def make() -> Caller:
            caller = Caller(log, new_session_id())
            await caller.start()
            open_things.push_async_callback(caller.stop)
            return caller

        yield make


@pytest.fixture
async def caller(callers: Callable[[], Awaitable[Caller]]) -> Caller:
    return await callers()
