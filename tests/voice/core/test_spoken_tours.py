"""Guided tours by voice: plain words start and steer one before a model is asked, and its words are said as they are."""

from __future__ import annotations

import pytest

from tests.voice.conversation import FUNCTIONS, Conversation
from voxbridge.services.voice.core import outputs as out
from voxbridge.services.voice.core.turns import spoken_tours
from voxbridge.shared.events import gateway, tools
from voxbridge.shared.events import voice as ev
from voxbridge.shared.store.store import Function

ANY = {"type": "object", "properties": {}}
START = Function(name=spoken_tours.START, description="Start a tour.", parameters=ANY)
STEER = Function(name=spoken_tours.STEER, description="Steer it.", parameters=ANY, kind="browser", timeout_s=5)


def conversation(*functions: Function) -> Conversation:
    return Conversation(installed=(*FUNCTIONS, *functions), functions=(STEER,) if functions else ())


def said(call: Conversation) -> list[str]:
    return [event.text for event in call.events(ev.AgentSaid)]


def types(call: Conversation, text: str) -> None:
    call.log(gateway.TextReceived(text=text))


def answers(call: Conversation, spoken: str, *, touring: bool = True) -> None:
    asked = call.events(ev.ToolCalled)[-1]
    result = {"success": True, "touring": touring, "spoken": spoken}
    call.log(gateway.BrowserCallAnswered(call_id=asked.call_id, name=asked.name, result=result))
    call.hear()


def begun() -> Conversation:
    call = conversation(START)
    types(call, "Show me around the tools page")
    call.log(tools.TourStarted(page="tools", tour={}, named=True))
    call.complete_tool({"action": "start_tour", "spoken": "Say next to begin."})
    call.hear()
    return call


def test_plain_words_start_a_tour_and_steer_it_to_its_end() -> None:
    call = begun()
    assert call.called == [("start_guided_tour", {"page": "tools"})]
    for words, action in (("Next.", "next"), ("Explain more.", "explain"), ("Go back.", "back"), ("Skip it", "skip")):
        types(call, words)
        assert call.called[-1] == ("steer_tour", {"action": action})
        answers(call, f"This is {action}.")
    types(call, "Stop the tour")
    answers(call, "The tour is over.", touring=False)
    assert said(call) == ["Say next to begin.", "This is next.", "This is explain.", "This is back.", "This is skip.", "The tour is over."]
    assert not call.effects(out.Complete)
    types(call, "next")
    assert call.called[-1] == ("steer_tour", {"action": "stop"}), "without a tour the words are the model's"
    assert len(call.effects(out.Complete)) == 1


def test_without_a_tour_or_a_page_plain_words_are_the_models() -> None:
    call = conversation(START)
    types(call, "Next")
    assert (call.called, len(call.effects(out.Complete))) == ([], 1)
    other = conversation()
    types(other, "Show me around")
    assert (other.called, len(other.effects(out.Complete))) == ([], 1)


@pytest.mark.parametrize("words", ["What does this button do?", "Next week I am away, note that."])
def test_other_words_in_a_tour_go_to_the_model(words: str) -> None:
    call = begun()
    types(call, words)
    assert (len(call.called), len(call.effects(out.Complete))) == (1, 1)


def test_a_page_that_fails_is_told_and_no_model_is_asked() -> None:
    call = begun()
    types(call, "next")
    call.complete_tool({"success": False, "error": "The page did not answer."})
    call.hear()
    assert said(call)[-1] == "The page did not answer."
    assert not call.effects(out.Complete)
