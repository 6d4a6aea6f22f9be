"""Order of responses where two messages cross: a recording wire, and no service at all."""

from __future__ import annotations

from typing import Any, cast

import pytest

from voxbridge.services.voice.providers.realtime.openai.responses import Responses
from voxbridge.services.voice.providers.realtime.openai.wire import Wire


class Recorded:
    def __init__(self) -> None:
        self.sent: list[Any] = []

    async def send(self, event: Any) -> None:
        self.sent.append(event)

    @property
    def kinds(self) -> list[str]:
        return [event["type"].removeprefix("response.") for event in self.sent]


@pytest.fixture
def wire() -> Recorded:
    return Recorded()


@pytest.fixture
def responses(wire: Recorded) -> Responses:
    return Responses(cast("Wire", wire))


async def test_a_response_asked_for_before_the_user_spoke_and_begun_after_is_stopped(wire: Recorded, responses: Responses) -> None:
    await responses.take_turn()
    responses.user_speaks = True
    responses.mute()
    await responses.begun("resp_1")
    assert (wire.kinds, wire.sent[1]["response_id"], responses.muted) == (["create", "cancel"], "resp_1", "resp_1")
    await responses.ended("resp_1")
    await responses.begun("resp_2")
    assert (wire.kinds, responses.muted, responses.busy) == (["create", "cancel"], "resp_1", True)


async def test_a_response_that_was_refused_has_nothing_to_stop(wire: Recorded, responses: Responses) -> None:
    await responses.take_turn()
    responses.mute()
    responses.refused(wire.sent[0]["event_id"], because_busy=False)
    assert not responses.busy
    await responses.begun("resp_1")
    assert (wire.kinds, responses.muted) == (["create"], "")


async def test_an_error_of_another_event_changes_nothing(wire: Recorded, responses: Responses) -> None:
    await responses.take_turn()
    responses.refused("", because_busy=False)
    responses.refused("ask_9", because_busy=False)
    assert responses.busy


async def test_a_response_the_vendor_began_itself_comes_before_the_one_that_was_asked_for(wire: Recorded, responses: Responses) -> None:
    await responses.take_turn()
    await responses.begun("resp_of_the_detector")
    responses.refused(wire.sent[0]["event_id"], because_busy=True)
    assert wire.kinds == ["create"]
    await responses.ended("resp_of_the_detector")
    assert wire.kinds == ["create", "create"]


async def test_a_response_that_was_due_is_not_asked_for_once_it_was_stopped(wire: Recorded, responses: Responses) -> None:
    await responses.begun("resp_1")
    responses.refused("", because_busy=True)
    await responses.stop()
    await responses.ended("resp_1")
    assert wire.kinds == ["cancel"]


async def test_results_of_two_responses_are_gone_on_from_with_one(wire: Recorded, responses: Responses) -> None:
    await responses.begun("resp_1")
    responses.called("call_1", "resp_1")
    await responses.ended("resp_1")
    await responses.begun("resp_2")
    responses.called("call_2", "resp_2")
    responses.answered("call_1")
    responses.answered("call_2")
    assert not responses.waits_for("call_1")
    await responses.go_on()
    assert wire.kinds == []
    await responses.ended("resp_2")
    await responses.go_on()
    assert (wire.kinds, responses.calls) == (["create"], 0)


async def test_a_response_waits_for_all_of_its_calls(wire: Recorded, responses: Responses) -> None:
    await responses.begun("resp_1")
    responses.called("call_1", "resp_1")
    responses.called("call_2", "resp_1")
    responses.answered("call_1")
    await responses.ended("resp_1")
    assert wire.kinds == []
    responses.answered("call_2")
    await responses.go_on()
    assert wire.kinds == ["create"]


async def test_a_response_is_stopped_once(wire: Recorded, responses: Responses) -> None:
    await responses.stop()
    await responses.begun("resp_1")
    await responses.stop()
    await responses.stop()
    assert wire.kinds == ["cancel"]
    await responses.ended("resp_1")
    await responses.stop()
    assert wire.kinds == ["cancel"]


async def test_while_the_user_speaks_nothing_is_asked_for(wire: Recorded, responses: Responses) -> None:
    await responses.begun("resp_1")
    responses.user_speaks = True
    await responses.take_turn()
    assert wire.kinds == ["cancel"]
    await responses.ended("resp_1")
    responses.called("call_1", "resp_1")
    responses.answered("call_1")
    await responses.go_on()
    assert wire.kinds == ["cancel"]


async def test_the_end_of_a_response_that_is_not_the_active_one_frees_nothing(wire: Recorded, responses: Responses) -> None:
    await responses.begun("resp_1")
    await responses.ended("resp_0")
    assert responses.busy
