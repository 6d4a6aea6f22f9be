"""The executor on real servers: what a caller hears."""

from __future__ import annotations

from shared.events.tools import ToolCompleted, ToolStarted
from tests.tools.conftest import Caller, Executors


async def test_a_call_is_started_and_completed_with_its_causes(executors: Executors, caller: Caller) -> None:
    async with executors.running():
        position = await caller.call("echo", text="hello")
        done, recorded = await caller.next(ToolCompleted)
        started, start = await caller.next(ToolStarted)
    assert done.result == {"text": "hello", "spoken": "hello"}
    assert started.attempt == 1
    assert start.seq < recorded.seq
    assert position < start.seq
    assert str(start.cause).startswith("tools#")
    assert recorded.cause == "tools#2"
