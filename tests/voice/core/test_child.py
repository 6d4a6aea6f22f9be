"""A child session in virtual time: it greets nobody, takes no word for a user's, and ends by its own rules."""

from __future__ import annotations

from typing import Any

import pytest

from tests.voice.conversation import Conversation
from voxbridge.services.voice.core import child, inputs
from voxbridge.services.voice.core import outputs as out
from voxbridge.shared.agents.functions import Function
from voxbridge.shared.events import gateway
from voxbridge.shared.events import voice as ev

KINDS: dict[str, Any] = {"look": "server", "later": "async", "page": "browser", "run_agent": "async", "chat_with_expert": "server"}
FUNCTIONS = tuple(
    Function(name=name, description="It.", parameters={"type": "object"}, kind=kind, effect="read") for name, kind in KINDS.items()
)


def made(kind: Any = "run", *, seconds: int = 60, tokens: int = 100, **settings: Any) -> Conversation:
    limits = gateway.Child(parent="f" * 32, call_id="c1", kind=kind, seconds=seconds, tokens=tokens)
    return Conversation(child=limits, functions=(), installed=FUNCTIONS, **settings)


def ends(conversation: Conversation) -> list[str]:
    return [one.reason for one in conversation.events(ev.SessionEnded)]


def asked(conversation: Conversation, text: str = "Do it.") -> None:
    conversation.log(gateway.TextReceived(text=text, text_id=text))


def test_it_greets_nobody_and_is_offered_what_answers_while_it_waits() -> None:
    conversation = made(greeting="Hello!", unheard=("task-1",))
    conversation.pass_ms(5_000)
    assert conversation.events(ev.AgentSaid) == []
    assert conversation.events(ev.TasksWanted) == []
    asked(conversation)
    _, request = conversation.last_effect(out.Complete)
    assert ([function.name for function in request.functions], request.background) == (["look"], True)


def test_a_run_ends_with_its_answer_and_marks_stay_in_it() -> None:
    conversation = made()
    asked(conversation)
    conversation.write("Thirty [1]. ", "**All** of them.")
    (said,) = conversation.events(ev.AgentSaid)
    assert said.text == "Thirty [1]. **All** of them."
    assert ends(conversation) == ["completed"]


def test_a_thread_goes_on_after_an_answer_and_while_nobody_asks_until_its_parent_is_over() -> None:
    conversation = made("expert", seconds=100_000)
    asked(conversation)
    conversation.write("Yes.")
    conversation.pass_ms(3_600_000)
    assert ends(conversation) == []
    conversation.take(inputs.ParentOver("parent_ended"))
    conversation.take(inputs.ParentOver("parent_ended"))
    assert ends(conversation) == ["parent_ended"]


def test_the_same_text_sent_again_is_one_text() -> None:
    conversation = made("expert")
    asked(conversation)
    asked(conversation)
    assert len(conversation.events(ev.UserSaid)) == 1


@pytest.mark.parametrize("after_s", [59, 60])
def test_its_time_is_over_at_its_limit_and_not_before(after_s: int) -> None:
    conversation = made(seconds=60)
    asked(conversation)
    conversation.pass_ms(after_s * 1_000)
    assert ends(conversation) == (["time_limit"] if after_s == 60 else [])


@pytest.mark.parametrize(("tokens", "reasons"), [(10, []), (9, ["token_limit"])])
def test_it_may_take_so_many_tokens_and_no_more(tokens: int, reasons: list[str]) -> None:
    conversation = made("expert", tokens=tokens)
    asked(conversation)
    effect, _ = conversation.last_effect(out.Complete)
    conversation.take(inputs.TextDelta(effect, "Yes."))
    conversation.take(inputs.Completed(effect=effect, input_tokens=7, output_tokens=3))
    assert ends(conversation) == reasons


def test_nobody_is_there_for_a_call_of_it() -> None:
    conversation = made()
    asked(conversation)
    effect, _ = conversation.last_effect(out.Complete)
    conversation.take(inputs.ToolRequested(effect=effect, name="look", arguments={}))
    (called,) = conversation.events(ev.ToolCalled)
    assert called.unattended


def test_a_session_of_a_client_is_none() -> None:
    conversation = Conversation()
    assert child.of(conversation.state) is None
    conversation.take(inputs.ParentOver("parent_ended"))
    assert ends(conversation) == []
