"""Cancellation of tasks that lose it."""

from __future__ import annotations

import asyncio
from contextlib import suppress

from tests.eventually import BOUND_S
from voxbridge.shared.cancellation import ended, ended_within


async def test_a_task_that_loses_a_cancellation_is_cancelled_again() -> None:
    lost = 0

    async def loops() -> None:
        nonlocal lost
        while True:
            with suppress(asyncio.CancelledError):
                await asyncio.Event().wait()
            lost += 1
            await asyncio.Event().wait()

    task = asyncio.create_task(loops())
    await asyncio.sleep(0)
    async with asyncio.timeout(BOUND_S):
        await ended(task)
    assert (lost, task.cancelled()) == (1, True)


async def test_what_a_task_raised_is_its_own() -> None:
    async def fails() -> None:
        raise ValueError

    done = asyncio.create_task(asyncio.sleep(0))
    failed = asyncio.create_task(fails())
    await asyncio.wait({done, failed})
    await ended(done, failed)
    await ended()
    assert isinstance(failed.exception(), ValueError)


async def test_who_never_ends_is_named_and_not_waited_for() -> None:
    over = asyncio.Event()

    async def deaf() -> None:
        while not over.is_set():
            with suppress(asyncio.CancelledError):
                await over.wait()

    never, soon = asyncio.create_task(deaf()), asyncio.create_task(asyncio.Event().wait())
    await asyncio.sleep(0)
    assert await ended_within(0.25, never, soon) == [never]
    over.set()
    assert await ended_within(10, never, soon) == []
    assert await ended_within(10) == []
