"""Sessions of agents are erased with the session whose function asked for them, and not while they work."""

from __future__ import annotations

import pytest
from redis.asyncio import Redis

from tests.agents.conftest import Installation, calls, says
from tests.voice.conftest import left
from tests.voice.model_server import Fault
from voxbridge.sessions.erase import erase
from voxbridge.shared import events
from voxbridge.shared.clock import SystemClock
from voxbridge.shared.errors import Code, VoxbridgeError
from voxbridge.shared.events import gateway, tools, voice
from voxbridge.shared.store.store import Store


async def test_a_child_is_erased_with_its_parent_and_not_while_it_works(installed: Installation, store: Store, redis_url: str) -> None:
    page = await installed.session()
    says(installed.model, calls("run_agent", '{"name": "helper", "input": "The secret is K-2317."}'), [Fault.HANG], [Fault.HANG])
    await page.says(gateway.TextReceived(text="Have it done"))
    await page.event(voice.ToolCalled, name="run_agent")
    child = await installed.child(page.sid)
    await installed.until(child, voice.SessionStarted)
    await installed.model.until_asked("llm", 3)
    await page.ends()
    await left(store, page)
    async with Redis.from_url(redis_url) as redis:
        with pytest.raises(VoxbridgeError) as caught:
            await erase(installed.log, redis, page.sid, by="test", now=SystemClock().now_us())
        assert caught.value.code == Code.CONFLICT
        installed.model.release()
        await installed.until(child, voice.SessionEnded)
        await installed.until(page.sid, tools.TaskCompleted)

        async def done() -> object:
            try:
                return await erase(installed.log, redis, page.sid, by="test", now=SystemClock().now_us())
            except VoxbridgeError:
                return None

        from tests.eventually import eventually

        await eventually(done)
    for sid in (page.sid, child):
        assert [type(one) for one in await installed.of(sid, events.Event)] == [events.operator.SessionErased]
