"""Requests of several wishes: each is a call of its own, in order, and what each came to is said."""

from __future__ import annotations

from typing import Any

from tests.voice.conversation import Conversation
from tests.voice.core.test_consent import QUESTION, needs
from voxbridge.services.voice.core import inputs
from voxbridge.services.voice.core import outputs as out
from voxbridge.services.voice.core.turns import rounds
from voxbridge.services.voice.core.turns.open_calls import QUIET_MS
from voxbridge.shared.events import voice as ev


def calls(call: Conversation, name: str, *, more: bool = False) -> None:
    """Have the model call a function; `more`: the user's words hold another wish."""
    effect = call.last_effect(out.Complete)[0]
    call.take(inputs.ToolRequested(effect=effect, name=name, arguments={}))
    call.take(inputs.Completed(effect=effect, more=more))
    call.pass_ms(QUIET_MS)


def hears(call: Conversation) -> str:
    """Have the client play all that is said; return it."""
    call.hear()
    return call.events(ev.AgentSaid)[-1].text


def two(result: dict[str, Any]) -> Conversation:
    """Return a conversation in which the first of two wishes came to this result."""
    call = Conversation(speak_results=True)
    call.speak("Write to Anna, and tell me the time.")
    calls(call, "send_mail", more=True)
    call.complete_tool(result)
    return call


def test_the_model_is_asked_for_the_next_wish_and_each_result_is_said() -> None:
    call = two({"spoken": "I wrote to Anna."})
    assert len(call.effects(out.Complete)) == 2
    assert [effect.text for _, effect in call.effects(out.Synthesize)] == ["I wrote to Anna."], "it is said while the model is asked"
    calls(call, "current_time")
    call.complete_tool({"spoken": "It is nine."})
    assert len(call.effects(out.Complete)) == 2
    assert hears(call) == "I wrote to Anna. It is nine."
    assert [event.name for event in call.events(ev.ToolCalled)] == ["send_mail", "current_time"]
    assert [event.reason for event in call.events(ev.TurnCompleted)] == ["completed"]
    roles = [(message.role, len(message.uses)) for message in call.state.conversation.history]
    assert roles == [("user", 0), ("assistant", 1), ("tool", 0), ("assistant", 1), ("tool", 0), ("assistant", 0)]


def test_what_became_of_a_wish_that_failed_is_said_before_the_next_one() -> None:
    call = two({"error": "There is no such address.", "success": False})
    calls(call, "current_time")
    call.complete_tool({"spoken": "It is nine."})
    assert hears(call) == "There is no such address. It is nine."


def test_a_question_is_the_last_thing_that_is_said_and_the_other_wish_is_left_in_words() -> None:
    call = Conversation(speak_results=True)
    call.speak("Write to Anna, and tell me the time.")
    calls(call, "send_mail", more=True)
    needs(call)
    assert len(call.effects(out.Complete)) == 1
    assert hears(call) == f"{rounds.LEFT} {QUESTION}"
    call.speak("Yes.")
    assert [event.answer for event in call.events(ev.ApprovalAnswered)] == ["approved"]


def test_a_barge_in_between_two_wishes_ends_both() -> None:
    call = two({"spoken": "I wrote to Anna."})
    call.synthesize()
    call.play(300)
    call.speak("Stop.")
    assert call.events(ev.AgentSaid)[-1].interrupted
    call.write("All right.")
    assert hears(call) == "All right."
    assert [event.name for event in call.events(ev.ToolCalled)] == ["send_mail"]
