"""Prompts that are read while nothing is asked for."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from tests.eventually import eventually
from voxbridge.services.models.core.chatml import Prompt
from voxbridge.services.models.engines.admission import Line
from voxbridge.services.models.engines.background import Background
from voxbridge.services.models.engines.readings import TRIES, WANTED_LIMIT, Readings
from voxbridge.shared.cancellation import ended
from voxbridge.shared.errors import Code, VoxbridgeError


class Model:
    """A model that reads when it is told to. `begun` are the prompts that it began to read, `read` those that it read, with `keep`."""

    def __init__(self) -> None:
        self.begun: list[str] = []
        self.read: list[tuple[str, bool]] = []
        self.goes_on = asyncio.Event()
        self.fails = self.stopped = 0

    async def reads(self, family: str, keep: bool) -> None:
        self.begun.append(family)
        if self.fails:
            self.fails -= 1
            raise VoxbridgeError(Code.UNAVAILABLE, "The engine is gone.")
        try:
            await self.goes_on.wait()
        except asyncio.CancelledError:
            self.stopped += 1
            raise
        self.read.append((family, keep))

    async def reads_on(self, prompt: Prompt) -> None:
        await self.reads(prompt.text, False)


@asynccontextmanager
async def reading(model: Model, *lines: Line, wait_s: float = 30.0) -> AsyncIterator[Readings]:
    readings = Readings(Background(lines, quiet_s=0.01, wait_s=wait_s), model.reads, model.reads_on, pause_s=0.0)
    running = asyncio.create_task(readings.run())
    try:
        yield readings
    finally:
        await ended(running)


async def test_the_newest_wish_is_read_first_and_each_once() -> None:
    model = Model()
    model.goes_on.set()
    async with reading(model) as readings:
        readings.want("old", keep=True)
        readings.want("new", keep=False)
        readings.want("new", keep=True)
        readings.want("new", keep=False)
        await eventually(lambda: not readings.waiting)
    assert model.read == [("new", True), ("old", True)]


async def test_a_live_request_stops_it_and_it_goes_on_afterwards() -> None:
    model, line = Model(), Line("llm", 1)
    async with reading(model, line) as readings:
        readings.want("a", keep=False)
        await eventually(lambda: model.begun == ["a"])
        async with line.enter():
            await eventually(lambda: model.stopped == 1)
            model.goes_on.set()
            assert readings.waiting == 1
        await eventually(lambda: not readings.waiting)
    assert model.begun == ["a", "a"]
    assert model.read == [("a", False)]


async def test_calls_that_leave_no_moment_do_not_have_it_forgotten() -> None:
    model, line = Model(), Line("llm", 1)
    model.goes_on.set()
    async with reading(model, line, wait_s=0.01) as readings:
        async with line.enter():
            readings.want("a", keep=False)
            for _ in range(2 * TRIES):
                await asyncio.to_thread(lambda: None)
            assert (readings.waiting, model.begun) == (1, [])
        await eventually(lambda: model.read == [("a", False)])


async def test_one_that_cannot_be_read_is_forgotten_after_some_tries() -> None:
    model = Model()
    model.goes_on.set()
    model.fails = TRIES
    async with reading(model) as readings:
        readings.want("a", keep=False)
        await eventually(lambda: not readings.waiting)
        assert model.begun == ["a"] * TRIES
        readings.want("b", keep=False)
        await eventually(lambda: model.read == [("b", False)])


async def test_so_many_wait_and_the_oldest_is_forgotten() -> None:
    model = Model()
    readings = Readings(Background(()), model.reads, model.reads_on)
    for number in range(WANTED_LIMIT + 1):
        readings.want(str(number), keep=False)
    assert readings.waiting == WANTED_LIMIT
    model.goes_on.set()
    running = asyncio.create_task(readings.run())
    await eventually(lambda: not readings.waiting)
    await ended(running)
    assert [family for family, _ in model.read] == [str(number) for number in range(WANTED_LIMIT, 0, -1)]


async def test_a_conversation_is_read_before_what_conversations_share_and_only_as_it_was_last() -> None:
    model = Model()
    model.goes_on.set()
    async with reading(model) as readings:
        readings.want("a", keep=False)
        for text in ("one", "one two", "one two three"):
            readings.want_conversation(Prompt(family="a", text=text))
        assert readings.waiting == 2
        await eventually(lambda: not readings.waiting)
    assert model.read == [("one two three", False), ("a", False)]


async def test_a_conversation_of_which_the_model_is_asked_is_read_no_more() -> None:
    model, line = Model(), Line("llm", 1)
    async with reading(model, line) as readings:
        readings.want_conversation(Prompt(family="a", text="one"))
        readings.want_conversation(Prompt(family="b", text="two"))
        await eventually(lambda: model.begun == ["two"])
        async with line.enter():
            await eventually(lambda: model.stopped == 1)
            readings.forget_conversation("b")
            model.goes_on.set()
        await eventually(lambda: not readings.waiting)
    assert model.read == [("one", False)]


async def test_so_many_conversations_wait_and_the_oldest_is_forgotten() -> None:
    model = Model()
    readings = Readings(Background(()), model.reads, model.reads_on)
    for number in range(WANTED_LIMIT + 1):
        readings.want_conversation(Prompt(family=str(number), text=str(number)))
    assert readings.waiting == WANTED_LIMIT
