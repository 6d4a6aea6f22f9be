"""Timers and tasks of a shell: replaced, cancelled, held, and waited for."""

from __future__ import annotations

import asyncio

import pytest

from tests.virtual_time import VirtualTimers, in_virtual_time
from voxbridge.shared.step import effects
from voxbridge.shared.step.effects import LOOK_S, Tasks, Timers


@in_virtual_time
async def test_timers_fire_once_in_order_and_are_replaced_and_cancelled() -> None:
    fired = list[str]()
    timers, twin = Timers[str](fired.append), VirtualTimers()
    for name, ms in (("b", 200), ("a", 100), ("c", 50), ("a", 300), ("late", -5)):
        timers.set(name, ms / 1_000)
        twin.set(name, ms)
    timers.cancel("c")
    twin.cancel("c")
    timers.cancel("unknown")
    assert len(timers) == 3
    await asyncio.sleep(0.25)
    assert fired == ["late", "b"]
    await asyncio.sleep(0.25)
    order = list[str]()
    while name := twin.first(1_000):
        order.append(name)
        twin.cancel(name)
    assert fired == order == ["late", "b", "a"]
    assert not timers


@in_virtual_time
async def test_held_timers_fire_when_they_are_released_unless_they_were_replaced() -> None:
    fired = list[str]()
    timers = Timers[str](fired.append)
    timers.hold()
    for name in ("a", "b", "c", "d"):
        timers.set(name, 0.1)
    await asyncio.sleep(0.2)
    timers.set("b", 5)
    timers.cancel("c")
    assert fired == []
    timers.release()
    assert fired == ["a", "d"]
    await asyncio.sleep(6)
    assert fired == ["a", "d", "b"]


@in_virtual_time
async def test_what_was_slept_through_counts_for_timers(monkeypatch: pytest.MonkeyPatch) -> None:
    slept = [100.0]
    monkeypatch.setattr(effects, "suspended_s", lambda: slept[0])
    fired = list[str]()
    timers = Timers[str](fired.append)
    for name, after_s in (("due", 90), ("later", 600), ("soon", 2)):
        timers.set(name, after_s)
    timers.cancel("soon")
    await asyncio.sleep(8)
    slept[0] += 90
    await asyncio.sleep(LOOK_S + 0.1)
    assert fired == ["due"]
    await asyncio.sleep(480)
    assert fired == ["due"]
    await asyncio.sleep(20)
    assert fired == ["due", "later"]
    assert timers._look is None or len(timers) == 0
    timers.set("again", 60)
    timers.cancel_all()
    assert timers._look is None, "nothing wakes a service without timers"


@in_virtual_time
async def test_an_effect_is_found_by_its_key_until_it_ends_and_waited_for_when_it_is_cancelled() -> None:
    tasks, ended = Tasks[int]("a test"), list[str]()

    async def effect(name: str) -> None:
        try:
            await asyncio.sleep(10)
        finally:
            await asyncio.sleep(1)
            ended.append(name)

    tasks.start(1, effect("one"))
    tasks.start(2, effect("two"))
    assert (1 in tasks, 3 in tasks, len(tasks)) == (True, False, 2)
    await asyncio.sleep(0)
    tasks.cancel(1)
    tasks.cancel(3)
    await tasks.idle(0.5)
    assert ended == []
    await asyncio.sleep(2)
    assert (ended, 1 in tasks) == (["one"], False)
    tasks.cancel_all()
    await tasks.idle()
    assert ended == ["one", "two"]


@in_virtual_time
async def test_an_effect_that_is_started_again_under_its_key_is_not_forgotten_with_the_first() -> None:
    tasks = Tasks[int]("a test")
    tasks.start(1, asyncio.sleep(1))
    tasks.start(1, asyncio.sleep(5))
    await asyncio.sleep(2)
    assert 1 in tasks
    await tasks.idle()
    assert 1 not in tasks


@in_virtual_time
async def test_work_in_the_background_is_waited_for_and_its_fault_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    tasks, done = Tasks[None]("a test"), list[str]()

    async def work(name: str, *, more: bool = False) -> None:
        await asyncio.sleep(1)
        done.append(name)
        if more:
            tasks.background(work("more"))

    async def fault() -> None:
        raise ValueError("no such note")

    tasks.background(work("first", more=True))
    tasks.background(fault())
    await tasks.background_idle(0.5)
    assert done == []
    await tasks.background_idle()
    assert done == ["first", "more"]
    assert "a test: work in the background failed: no such note" in caplog.text
    tasks.background(work("cancelled"))
    tasks.cancel_background()
    await tasks.background_idle()
    assert done == ["first", "more"]
