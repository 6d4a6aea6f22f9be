"""The modes of a bridge: without a model, what is said is typed, or is the name of a key, until another mode is asked for."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from tests.voice.conversation import FUNCTIONS, Conversation
from tests.voice.core.test_consent import needs
from voxbridge.services.voice.core import outputs as out
from voxbridge.services.voice.core.turns import spoken_modes
from voxbridge.shared.agents.model import Agent, AgentTeam
from voxbridge.shared.events import gateway, tools
from voxbridge.shared.events import voice as ev
from voxbridge.shared.spoken_modes import Mode
from voxbridge.shared.store.store import Function

ANY = {"type": "object", "properties": {}}
NAMES = (spoken_modes.SWITCH, spoken_modes.TYPE, spoken_modes.PRESS)
BRIDGE = tuple(Function(name=name, description="Of a bridge.", parameters=ANY) for name in NAMES)


def bridge() -> Conversation:
    return Conversation(installed=(*FUNCTIONS, *BRIDGE))


def says(call: Conversation, words: str, **result: Any) -> None:
    """Say something that makes a call, which has this result."""
    before = len(call.called)
    call.speak(words)
    call.pass_ms(1_000)  # what writes begins after a moment of quiet
    assert len(call.called) == before + 1
    call.complete_tool({"spoken": "Done.", **result})
    call.hear()


def in_mode(mode: str) -> Conversation:
    call = bridge()
    says(call, f"Switch to {mode} mode.", mode=mode)
    return call


def test_words_are_typed_as_they_are_until_another_mode_is_asked_for() -> None:
    call = in_mode("chat")
    for words in ("Don't touch the tests.", "escape", "What is the capital of France?", "delete everything, and then stop"):
        says(call, words)
        assert call.called[-1] == ("type_into_terminal", {"text": words})
    says(call, "AI mode", mode="ai", auto=True)
    assert not call.effects(out.Complete), "no model was asked"
    call.speak("What is the capital of France?")
    assert len(call.effects(out.Complete)) == 1


def test_a_name_of_a_key_presses_it_and_other_words_press_nothing() -> None:
    call = in_mode("key")
    says(call, "Down three times.")
    assert call.called[-1] == ("send_key", {"key": "down", "times": 3})
    call.speak("What does it say?")
    call.hear()
    assert len(call.called) == 2
    assert call.events(ev.AgentSaid)[-1].text == spoken_modes.NO_KEY
    assert not call.effects(out.Complete)


def test_with_auto_off_what_is_said_is_a_draft_that_the_user_sends() -> None:
    call = in_mode("chat")
    says(call, "Auto off.", mode="chat", auto=False)
    assert call.called[-1] == ("switch_mode", {"mode": "chat", "auto": False})
    turns = len(call.events(ev.UserSaid))
    call.speak("Write the tests.")
    call.pass_ms(1_000)
    assert call.partials("user")[-1] == "Write the tests."
    assert len(call.events(ev.UserSaid)) == turns, "nobody has sent it"
    assert len(call.called) == 2
    call.log(gateway.TextReceived(text="Write all the tests."))
    assert call.partials("user")[-1] == "", "the draft is not shown any more"
    assert call.called[-1] == ("type_into_terminal", {"text": "Write all the tests."})
    call.complete_tool({"spoken": "Claude has it."})
    call.hear()
    says(call, "Turn auto on.", mode="chat", auto=True)
    says(call, "And run them.")
    assert call.called[-1] == ("type_into_terminal", {"text": "And run them."})


@pytest.mark.parametrize("mode", ["key", "ai"])
def test_with_auto_off_a_key_and_an_order_wait_for_the_user_too(mode: str) -> None:
    call = in_mode(mode)
    says(call, "Auto off.", mode=mode, auto=False)
    call.speak("Press down.")
    call.pass_ms(1_000)
    assert call.partials("user")[-1] == "Press down."
    assert len(call.called) == 2, "nobody has sent it"
    assert not call.effects(out.Complete)
    call.log(gateway.TextReceived(text="Press up."))
    call.pass_ms(1_000)
    if mode == "key":
        assert call.called[-1] == ("send_key", {"key": "up", "times": 1})
    else:
        assert [one.text for one in call.last_effect(out.Complete)[1].messages][-1] == "Press up."


@pytest.mark.parametrize("mode", ["chat", "key", "ai"])
def test_with_auto_off_an_answer_to_a_question_is_one(mode: Mode) -> None:
    call = in_mode("chat")
    says(call, "auto off", mode="chat", auto=False)
    call.log(gateway.TextReceived(text="rm notes"))
    needs(call)
    call.state.pending.steered = msgspec.structs.replace(call.state.pending.steered, mode=mode)
    call.hear()
    call.speak("Yes.")
    assert [event.answer for event in call.events(ev.ApprovalAnswered)] == ["approved"]


@pytest.mark.parametrize(("length", "typed"), [(spoken_modes.TEXT_LIMIT, True), (spoken_modes.TEXT_LIMIT + 1, False)])
def test_a_text_that_is_too_long_is_not_typed(length: int, typed: bool) -> None:
    call = in_mode("chat")
    call.speak("a" * length)
    call.pass_ms(1_000)
    assert (call.called[-1][0] == "type_into_terminal") is typed
    if not typed:
        call.hear()
        assert call.events(ev.AgentSaid)[-1].text == spoken_modes.TOO_LONG


def test_a_switch_that_failed_changes_nothing() -> None:
    call = bridge()
    call.speak("Chat mode.")
    call.pass_ms(1_000)
    asked = call.events(ev.ToolCalled)[-1]
    error = ev.Failure(code="UNAVAILABLE", message="The terminals service does not answer.", retryable=True)
    call.log(tools.ToolFailed(call_id=asked.call_id, name=asked.name, error=error, ms=5))
    assert call.state.pending.steered.mode == "ai"


def test_without_terminals_the_words_are_the_models() -> None:
    call = Conversation()
    call.speak("Chat mode.")
    assert not call.called
    assert len(call.effects(out.Complete)) == 1


def test_the_next_agent_begins_with_its_own_ears() -> None:
    names = tuple(function.name for function in (*FUNCTIONS, *BRIDGE))
    agents = (Agent(name="officer", tools=names, handoffs=("second",)), Agent(name="second", tools=names))
    call = Conversation(installed=(*FUNCTIONS, *BRIDGE), team=AgentTeam(agents=agents))
    says(call, "chat mode", mode="chat")
    call.log(gateway.HandoffRequested(target="second", reason="as asked"))
    call.write("Here I am.")
    call.hear()
    assert call.state.team.agent.name == "second"
    assert call.state.pending.steered.mode == "ai"
