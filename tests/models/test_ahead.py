"""Requests that may follow, and conversations whose last answers took no model: what of them is read, and what it must not drive out."""

from __future__ import annotations

from typing import Any

import pytest

from tests.models.test_choice import _asked, _Engine, _plan, _request, _unread
from voxbridge.services.models.api import chat
from voxbridge.services.models.api.bodies import ChatRequest
from voxbridge.services.models.core import chatml
from voxbridge.services.models.engines.admission import Line
from voxbridge.services.models.engines.readings import Readings
from voxbridge.shared.errors import Code, VoxbridgeError


class Engine(_Engine):
    """An engine that notes which beginnings it read."""

    def __init__(self, known: str = "") -> None:
        super().__init__(known)
        self.read_only: list[tuple[str, bool]] = []
        self.read_up_to: list[str] = []

    async def read(self, family: str, *, keep: bool = False) -> None:
        self.read_only.append((family, keep))

    async def read_on(self, prompt: chatml.Prompt) -> None:
        self.read_up_to.append(prompt.text)


def instructions(**more: Any) -> ChatRequest:
    body = _request("x", **more).model_dump(exclude_none=True)
    return ChatRequest.model_validate({**body, "messages": [{"role": "system", "content": "Be kind."}]})


async def answered(request: ChatRequest, engine: Engine, readings: Readings) -> None:
    answer = chat.Answer(engine, request, _plan(request), readings)  # type: ignore[arg-type]  # it has what an answer uses
    await answer.begin()
    await answer.close()


@pytest.mark.parametrize("background", [True, False])
async def test_instructions_alone_are_read_and_nothing_is_written_behind_them(background: bool) -> None:
    request, engine = instructions(ahead=True, background=background, keep_prompt=True), Engine()
    await answered(request, engine, _unread())
    assert engine.read_only == [(_plan(request).prompt.family, True)]
    assert engine.asked == ""


async def test_a_conversation_is_read_in_the_background_behind_what_it_begins_with() -> None:
    request, engine = _request("thank you so much", ahead=True, background=True), Engine()
    await answered(request, engine, _unread())
    plan = _plan(request)
    assert (engine.read_only, engine.read_up_to) == ([(plan.prompt.family, False)], [plan.prompt.text])
    assert engine.asked == ""


async def test_what_may_be_asked_is_read_as_it_will_be_asked() -> None:
    said = "set a timer for ten minutes and call it tea"
    plan = _plan(_request(said))
    assert plan.short is not None
    assert await _asked(_request(said, ahead=True), Engine(), _unread()) == plan.short.text
    assert await _asked(_request(said, ahead=True), Engine(plan.prompt.family), _unread()) == plan.prompt.text


async def test_a_conversation_of_which_an_answer_took_no_model_is_read_until_the_model_is_asked() -> None:
    readings, request = _unread(), _request("what are you working on right now")
    family = _plan(request).prompt.family
    await answered(request, Engine(family), readings)
    assert readings.waiting == 1
    await answered(_request("thank you so much", ahead=True), Engine(family), readings)
    assert readings.waiting == 0


async def test_an_answer_that_may_never_be_asked_for_has_nothing_read() -> None:
    readings = _unread()
    await answered(_request("what are you working on right now", ahead=True), Engine(), readings)
    assert readings.waiting == 0


async def test_who_does_not_wait_is_refused_while_there_is_no_place() -> None:
    line = Line("llm", 1)
    async with line.enter(waits=False):
        with pytest.raises(VoxbridgeError) as caught:
            async with line.enter(waits=False):
                pass
    assert caught.value.code == Code.OVERLOADED
    async with line.enter(waits=False):
        assert line.inside == 1
