"""Answers that nobody listens to: made while nothing else is asked for, stopped for a live call, and refused in the end."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator

import pytest

from tests.eventually import eventually
from voxbridge.services.models.engines.admission import Line
from voxbridge.services.models.engines.background import WAITING, Background, collected
from voxbridge.shared.errors import Code, VoxbridgeError


class Model:
    """A model that goes on when it is told to; `begun` and `stopped` count its answers."""

    def __init__(self) -> None:
        self.begun = self.stopped = 0
        self.goes_on = asyncio.Event()

    async def generate(self) -> AsyncGenerator[str]:
        self.begun += 1
        try:
            yield "one"
            await self.goes_on.wait()
            yield "two"
        except (asyncio.CancelledError, GeneratorExit):
            self.stopped += 1
            raise


async def test_an_answer_comes_whole_where_nothing_else_is_asked_for() -> None:
    model, background = Model(), Background((Line("llm", 1),), quiet_s=0.01)
    model.goes_on.set()
    assert await background.made(lambda: collected(model.generate())) == ["one", "two"]
    assert (model.begun, model.stopped) == (1, 0)


async def test_a_live_request_stops_it_at_once_and_it_is_made_anew_afterwards() -> None:
    model, line = Model(), Line("stt", 1)
    background = Background((Line("llm", 1), line), quiet_s=0.02)
    making = asyncio.create_task(background.made(lambda: collected(model.generate())))
    await eventually(lambda: model.begun == 1)
    async with line.enter():
        await eventually(lambda: model.stopped == 1)
        model.goes_on.set()
        assert model.begun == 1, "it is not begun again beside a live request"
    assert await making == ["one", "two"]
    assert (model.begun, model.stopped) == (2, 1)


async def test_it_is_refused_when_live_calls_leave_no_moment() -> None:
    model, line = Model(), Line("llm", 1)
    background = Background((line,), quiet_s=0.01, wait_s=0.05)
    async with line.enter():
        with pytest.raises(VoxbridgeError) as caught:
            await background.made(lambda: collected(model.generate()))
    assert (caught.value.code, caught.value.retryable, caught.value.limit) == (Code.OVERLOADED, True, 0.05)
    assert model.begun == 0


async def test_an_error_of_the_model_is_the_answers() -> None:
    async def broken() -> AsyncGenerator[str]:
        yield "one"
        raise VoxbridgeError(Code.UNAVAILABLE, "The engine is gone.")

    with pytest.raises(VoxbridgeError, match="The engine is gone"):
        await Background((), quiet_s=0.0).made(lambda: collected(broken()))


async def test_so_many_wait_and_no_more() -> None:
    background = Background(())
    entered = [background.line.enter() for _ in range(1 + WAITING)]
    tasks = [asyncio.create_task(one.__aenter__()) for one in entered]
    await eventually(lambda: background.line.inside == 1 + WAITING)
    with pytest.raises(VoxbridgeError) as caught:
        async with background.line.enter():
            pass
    assert (caught.value.code, caught.value.limit) == (Code.OVERLOADED, 1 + WAITING)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
