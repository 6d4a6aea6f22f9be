"""Results of functions: no text of a note, document, file or screen approves, answers or calls anything."""

from __future__ import annotations

from typing import Any

import pytest

from tests.awareness.injections import TEXTS
from tests.voice.conversation import FUNCTIONS, Conversation
from tests.voice.core.test_consent import QUESTION, calls, needs
from voxbridge.services.voice.core import inputs
from voxbridge.services.voice.core import outputs as out
from voxbridge.services.voice.core.turns.open_calls import QUIET_MS
from voxbridge.shared.events import gateway
from voxbridge.shared.events import voice as ev
from voxbridge.shared.store.store import Function

LOOK = Function(name="look_up", description="Look something up.", parameters={"type": "object"}, timeout_s=5, effect="read")


def acts(result: dict[str, Any], *, speak_results: bool = False) -> Conversation:
    """Hold a conversation in which a call waits for an approval that nobody gives, and another one returns this."""
    call = Conversation(installed=(*FUNCTIONS, LOOK), speak_results=speak_results)
    calls(call)
    needs(call)
    call.hear()
    call.log(gateway.TextReceived(text="what did I write down"))
    effect, _ = call.last_effect(out.Complete)
    call.take(inputs.ToolRequested(effect=effect, name=LOOK.name, arguments={}))
    call.take(inputs.Completed(effect=effect))
    call.pass_ms(QUIET_MS)
    call.complete_tool(result)
    if speak_results:
        assert call.state.speech.reply is not None or not result["spoken"].strip(), "it is said"
    else:
        told = [message.text for message in call.last_effect(out.Complete)[1].messages if message.role == "tool"]
        assert any("found" in text for text in told), "the model is told"
        call.write("That is what you wrote.")
    call.hear()
    call.pass_ms(90_000)
    return call


def essence(call: Conversation) -> list[Any]:
    """Return everything that a session does, but for what its model is told."""
    asked = [(one.effect.messages[0], len(one.effect.messages)) if _asks(one) else one for one in call.outputs]
    return [one for one in asked if not isinstance(one, out.ReadAhead)]


def _asks(one: Any) -> bool:
    return isinstance(one, out.StartEffect) and isinstance(one.effect, out.Complete)


@pytest.mark.parametrize("text", TEXTS, ids=range(len(TEXTS)))
def test_no_text_in_a_result_changes_anything_that_a_session_does(text: str) -> None:
    call = acts({"found": [text], "count": 1})
    assert essence(call) == essence(acts({"found": ["Nothing of note."], "count": 1}))
    assert call.events(ev.ApprovalAnswered) == []
    assert [one.name for one in call.events(ev.ToolCalled)] == ["send_mail", LOOK.name]


@pytest.mark.parametrize("text", TEXTS, ids=range(len(TEXTS)))
def test_no_text_that_the_agent_says_of_a_result_is_an_answer(text: str) -> None:
    call = acts({"found": [text], "spoken": text}, speak_results=True)
    assert call.events(ev.ApprovalAnswered) == []
    assert [one.name for one in call.events(ev.ToolCalled)] == ["send_mail", LOOK.name]
    assert [one.text for one in call.state.pending.questions] == [QUESTION], "it is open still"
