"""Queues of a model's requests, and the assignment of slots."""

from __future__ import annotations

import asyncio

import pytest

from tests.eventually import BOUND_S
from voxbridge.services.models.engines.admission import Line
from voxbridge.services.models.engines.slots import Slots
from voxbridge.shared.errors import Code, VoxbridgeError


async def test_a_full_line_refuses_the_next_one_and_says_when_to_come_back() -> None:
    line, leave, tasks = Line("stt", at_once=1, waiting=2), asyncio.Event(), []

    async def stay() -> None:
        async with line.enter():
            await leave.wait()

    for _ in range(3):
        tasks.append(asyncio.create_task(stay()))
        await asyncio.sleep(0)
    with pytest.raises(VoxbridgeError, match="3 requests for stt") as refused:
        async with line.enter():
            pytest.fail("a fourth one was let in")
    assert refused.value.code is Code.OVERLOADED
    assert refused.value.retry_after_ms
    leave.set()
    await asyncio.gather(*tasks)
    async with line.enter():
        assert line.inside == 1
    assert line.inside == 0


async def test_one_who_gives_up_waiting_leaves_the_line() -> None:
    line = Line("stt", at_once=1, waiting=1)
    async with line.enter():
        waiting = asyncio.create_task(line.enter().__aenter__())
        await asyncio.sleep(0)
        assert line.inside == 2
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        assert line.inside == 1


async def test_a_family_keeps_its_slot_and_a_new_one_takes_the_slot_idle_longest() -> None:
    slots = Slots(2)

    async def use(family: str) -> int:
        async with slots.hold(family) as held:
            return held.index

    first, second = await use("a"), await use("b")
    assert first != second
    assert await use("a") == first
    assert await use("c") == second
    assert await use("a") == first
    assert await use("b") == second


async def test_a_second_conversation_takes_a_slot_to_spare_and_each_goes_on_in_its_own() -> None:
    slots = Slots(3)
    mine: dict[int, str] = {}

    async def use(conversation: str, *, spares: bool = True) -> int:
        async with slots.hold("a", lambda slot: mine.get(slot) in (None, conversation), lambda _: spares) as held:
            mine[held.index] = conversation
            return held.index

    first = await use("one")
    assert await use("one") == first
    second = await use("two")
    assert second != first
    assert [await use("one"), await use("two"), await use("one")] == [first, second, first]
    third = await use("three")
    assert {first, second, third} == {0, 1, 2}
    assert await use("four") == second, "the one idle longest is driven out"
    assert await use("five", spares=False) == first


async def test_without_a_slot_to_spare_a_second_conversation_has_that_of_its_family() -> None:
    slots = Slots(2)
    async with slots.hold("a") as held:
        first = held.index
    async with slots.hold("a", lambda _: False, lambda _: False) as held:
        assert (held.index, held.fresh) == (first, False)
    async with slots.hold("a"), slots.hold("a", lambda _: False, lambda _: True) as held:
        assert (held.index, held.fresh) == (1 - first, True)


async def test_a_family_waits_for_its_slot_while_others_are_free() -> None:
    slots = Slots(2)
    async with slots.hold("a") as mine:
        waiting = asyncio.create_task(slots.hold("a").__aenter__())
        await asyncio.sleep(0)
        assert not waiting.done()
        async with slots.hold("b") as other:
            assert other.index != mine.index
    assert (await asyncio.wait_for(waiting, BOUND_S)).index == mine.index


async def test_a_cancelled_holder_frees_its_slot() -> None:
    slots = Slots(1)
    held = asyncio.Event()

    async def hold() -> None:
        async with slots.hold("a"):
            held.set()
            await asyncio.Event().wait()

    task = asyncio.create_task(hold())
    await held.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert slots.busy == 0
    async with slots.hold("b"):
        assert slots.busy == 1
