"""A conversation that its model finds too long: it is sent by half, then by a quarter, and the turn continues."""

from __future__ import annotations

import pytest

from tests.voice.conversation import Conversation
from voxbridge.services.voice.core import inputs
from voxbridge.services.voice.core import outputs as out
from voxbridge.services.voice.core.cascade.speaking import HALVINGS
from voxbridge.services.voice.core.prompt.prompt import WINDOW_CHARACTERS
from voxbridge.shared.events import gateway
from voxbridge.shared.events import voice as ev

TOO_LONG = ev.Failure(code="TOO_LARGE", message="The language model finds the conversation too long.")


def _refuse(call: Conversation) -> None:
    call.take(inputs.EffectFailed(effect=call.last_effect(out.Complete)[0], error=TOO_LONG))


def _asked(call: Conversation) -> int:
    return sum(len(message.text) for message in call.last_effect(out.Complete)[1].messages[1:])


def _long_call() -> Conversation:
    call = Conversation()
    for number in range(12):
        call.log(gateway.TextReceived(text=f"Question {number}. " + "q" * 400))
        call.write(f"Answer {number}. " + "a" * 300)
        call.synthesize()
        call.play(60_000, "finished")
    call.log(gateway.TextReceived(text="And now?"))
    return call


def test_a_conversation_that_is_too_long_is_asked_again_with_half_of_it() -> None:
    call = _long_call()
    before = _asked(call)
    _refuse(call)
    assert 0 < _asked(call) <= WINDOW_CHARACTERS // 2 < before
    call.write("Now it is late.")
    call.synthesize()
    call.play(5_000, "finished")
    assert call.events(ev.AgentSaid)[-1].text == "Now it is late."
    assert call.events(ev.TurnCompleted)[-1].reason == "completed"
    assert [(one.part, one.error.code, one.handled) for one in call.events(ev.ProviderFailed)] == [("llm", "TOO_LARGE", True)]


def test_a_model_that_finds_everything_too_long_is_asked_without_functions_and_then_owned_up_to() -> None:
    call = _long_call()
    for _ in range(HALVINGS + 1):
        _refuse(call)
    _, last = call.last_effect(out.Complete)
    assert last.functions == ()
    _refuse(call)
    assert not call.events(ev.ProviderFailed)[-1].handled
    assert "can't answer" in call.last_effect(out.Synthesize)[1].text


@pytest.mark.parametrize("part", ["a sentence. ", ""])
def test_the_next_turn_is_tried_with_all_there_is_room_for(part: str) -> None:
    call = _long_call()
    _refuse(call)
    call.write(part or "Yes.")
    call.synthesize()
    call.play(5_000, "finished")
    call.log(gateway.TextReceived(text="Go on."))
    assert _asked(call) > WINDOW_CHARACTERS // 2
