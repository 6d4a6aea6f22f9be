"""A process that stalled holds back its output until its leases were checked."""

from __future__ import annotations

import asyncio

from tests.eventually import BOUND_S
from voxbridge.services.voice.session import stall_guard
from voxbridge.services.voice.session.stall_guard import StallGuard


async def test_a_running_process_is_steady_and_holds_nothing_back() -> None:
    one = StallGuard()
    assert one.steady()
    await asyncio.wait_for(one.hold(), BOUND_S)


async def test_after_a_stall_nothing_is_said_until_the_leases_were_looked_at() -> None:
    one, looking, looked = StallGuard(), asyncio.Event(), asyncio.Event()

    async def look() -> None:
        looking.set()
        await looked.wait()

    one._beat -= stall_guard.STALL_S + 1
    assert not one.steady()
    waiting = asyncio.create_task(one.hold())
    keeping = asyncio.create_task(one.keep(look))
    await asyncio.wait_for(looking.wait(), BOUND_S)
    assert not waiting.done()
    assert not one.steady()
    looked.set()
    await asyncio.wait_for(waiting, BOUND_S)
    assert one.steady()
    keeping.cancel()
