"""A process that stalled holds back its output until its leases were checked."""

from __future__ import annotations

import asyncio

import pytest

from tests.eventually import BOUND_S, eventually
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

    one.need()
    one._beat -= stall_guard.STALL_S + 1
    assert not one.steady()
    waiting = asyncio.create_task(one.hold())
    keeping = asyncio.create_task(one.keep(look, lambda: True))
    await asyncio.wait_for(looking.wait(), BOUND_S)
    assert not waiting.done()
    assert not one.steady()
    looked.set()
    await asyncio.wait_for(waiting, BOUND_S)
    assert one.steady()
    keeping.cancel()


async def test_a_process_without_sessions_is_not_watched_until_it_has_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stall_guard, "BEAT_S", 0.001)
    one, sessions, looked = StallGuard(), list[str](), asyncio.Event()

    async def look() -> None:
        looked.set()

    keeping = asyncio.create_task(one.keep(look, lambda: bool(sessions)))
    await asyncio.sleep(0)
    one._beat -= stall_guard.STALL_S + 1
    assert one.steady(), "it owns nothing that another process could have taken"
    sessions.append("s")
    one.need()
    assert one.steady(), "the time before it had a session is no stall"
    one._beat -= stall_guard.STALL_S + 1
    assert not one.steady()
    await asyncio.wait_for(looked.wait(), BOUND_S)
    sessions.clear()
    await eventually(lambda: not one._needed.is_set())
    keeping.cancel()
