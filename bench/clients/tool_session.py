"""A session that calls functions one after the other as the voice service does, and notes when each event of the executor was heard.

Owns the calls and what was heard. Does not own the servers nor the executor (`bench.stack`).
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any, Final, NamedTuple

import nats
from nats.aio.client import Client
from nats.aio.msg import Msg

from voxbridge.shared import events
from voxbridge.shared.events.tools import ToolCompleted, ToolFailed
from voxbridge.shared.events.voice import ToolCalled, UserSaid
from voxbridge.shared.ids import new_session_id
from voxbridge.shared.log.reader import Log, decode
from voxbridge.shared.log.writer import SessionWriter

ACCOUNT: Final = "local"
WITHIN_S: Final = 30.0
AGAIN_S: Final = 0.2
DEADLINE_MS: Final = 60_000


class CallFailedError(ValueError):
    """A call that failed."""


class Heard(NamedTuple):
    """An event, and when it was heard, in s of `time.perf_counter`."""

    at: float
    event: events.Event


class ToolSession:
    """A session. Make it with `tool_session`."""

    def __init__(self, nc: Client) -> None:
        self.sid = new_session_id()
        self.heard: list[Heard] = []
        self._nc = nc
        self._voice = SessionWriter(Log(nc), self.sid, "voice")
        self._calls = 0
        self._changed = asyncio.Event()

    async def listen(self) -> None:
        """Hear what the executor tells of this session."""
        await self._nc.subscribe(f"vxc.{self.sid}.tools.c.>", cb=self._hear)
        await self._nc.flush()

    async def begin(self, function: str, **arguments: Any) -> tuple[str, float]:
        """Call a function. Return the id of the call, and when the log acknowledged it, in s."""
        self._calls += 1
        call_id = f"c{self._calls}"
        called = ToolCalled(
            call_id=call_id, name=function, arguments=arguments, kind="server", turn=1, deadline_ms=DEADLINE_MS, account=ACCOUNT
        )
        await self._append(called)
        return call_id, time.perf_counter()

    async def call(self, function: str, **arguments: Any) -> float:
        """Call a function, and return the ms from the acknowledgement to hearing its result. Raises `CallFailedError`."""
        call_id, began = await self.begin(function, **arguments)
        ended = await self.until(lambda one: isinstance(one, ToolCompleted | ToolFailed) and one.call_id == call_id)
        if isinstance(ended.event, ToolFailed):
            raise CallFailedError(f"{function} failed: {ended.event.error.message}")
        return max(0.0, ended.at - began) * 1_000

    async def there(self, function: str) -> None:
        """Wait until a function can be called. Raises `TimeoutError` after `WITHIN_S`."""
        async with asyncio.timeout(WITHIN_S):
            while True:
                try:
                    await self.call(function)
                except CallFailedError:
                    await asyncio.sleep(AGAIN_S)
                else:
                    return

    async def append_ms(self) -> float:
        """Append an event that nobody waits for, and return the ms until the log acknowledged it."""
        began = time.perf_counter()
        await self._append(UserSaid(text="What time is it in Tokyo?", turn=1, source="speech"))
        return (time.perf_counter() - began) * 1_000

    async def until(self, wanted: Callable[[events.Event], bool], *, after: int = 0) -> Heard:
        """Return the first event that is wanted, of those heard after the first `after`. Raises `TimeoutError` after `WITHIN_S`."""
        async with asyncio.timeout(WITHIN_S):
            while True:
                for one in self.heard[after:]:
                    if wanted(one.event):
                        return one
                self._changed.clear()
                await self._changed.wait()

    async def _append(self, event: events.Event) -> None:
        await self._voice.append(event, ts=time.time_ns() // 1_000, cause=None)

    async def _hear(self, message: Msg) -> None:
        self.heard.append(Heard(time.perf_counter(), decode(message).event))
        self._changed.set()


@asynccontextmanager
async def tool_session(url: str) -> AsyncIterator[ToolSession]:
    """Yield a new session on the server at `url`."""
    nc = await nats.connect(url)
    try:
        session = ToolSession(nc)
        await session.listen()
        yield session
    finally:
        await nc.close()
