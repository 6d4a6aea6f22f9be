"""The user's screen in a session: when a model is told, where it stands, and that it is never taken for the user."""

from __future__ import annotations

from typing import Any

import pytest

from tests.awareness.injections import TEXTS, views
from tests.voice.conversation import START_US, Conversation
from voxbridge.services.voice.core import inputs
from voxbridge.services.voice.core import outputs as out
from voxbridge.services.voice.core.turns import screen
from voxbridge.shared.awareness.prompt import AGAIN, OPENING, part
from voxbridge.shared.awareness.view import NOTHING, Problem, View, Visit
from voxbridge.shared.events import gateway, tools
from voxbridge.shared.events import voice as ev


def page(*paths: str) -> View:
    return View(pages=tuple(Visit(id=path, page=path, at=START_US) for path in paths))


def asked(conversation: Conversation) -> list[tuple[str, str]]:
    """Return role and text of what the model was last asked, without the instructions."""
    return [(one.role, one.text) for one in conversation.last_effect(out.Complete)[1].messages[1:]]


def types(conversation: Conversation, text: str, answer: str = "Fine.") -> None:
    conversation.log(gateway.TextReceived(text=text))
    conversation.write(answer)
    conversation.synthesize()
    conversation.pass_ms(60_000)


def test_a_session_begins_with_what_is_known_and_the_own_model_reads_it_ahead() -> None:
    conversation = Conversation(screen=page("/tools"))
    (ahead,) = [one for one in conversation.outputs if isinstance(one, out.ReadAhead)]
    told = part(page("/tools"), START_US)
    assert [one.text for one in ahead.messages[1:]] == [told]
    conversation.log(gateway.TextReceived(text="hello"))
    assert asked(conversation) == [("user", told), ("user", "hello")]
    assert conversation.last_effect(out.Complete)[1].messages[: len(ahead.messages)] == ahead.messages


def told_at(conversation: Conversation) -> int:
    return conversation.state.conversation.screen.told_at


@pytest.mark.parametrize("greeting", ["", "Good morning."])
def test_what_changed_is_told_where_the_conversation_was_and_what_the_model_has_read_stays(greeting: str) -> None:
    conversation = Conversation(screen=page("/tools"), greeting=greeting)
    conversation.hear()
    first = part(page("/tools"), told_at(conversation))
    types(conversation, "hello")
    before = asked(conversation)
    conversation.take(inputs.ScreenChanged(page("/keys", "/tools")))
    types(conversation, "and now", "Now, too.")
    now = part(page("/keys", "/tools"), told_at(conversation), again=True)
    assert asked(conversation) == [*before, ("assistant", "Fine."), ("user", now), ("user", "and now")]
    assert before == [("user", first), ("user", "hello")]
    assert AGAIN in now
    assert AGAIN not in first


ERROR = Problem(id="e", kind="NOT_FOUND", message="Nothing.", at=START_US)


@pytest.mark.parametrize("view", [View(errors=(ERROR,)), page("/new"), NOTHING], ids=["off", "off and on again", "nothing"])
def test_what_is_gone_leaves_nothing_behind(view: View) -> None:
    conversation = Conversation(screen=page("/tools"))
    types(conversation, "hello")
    conversation.take(inputs.ScreenChanged(page("/keys", "/tools")))
    types(conversation, "and now")
    conversation.take(inputs.ScreenChanged(view))
    conversation.log(gateway.TextReceived(text="again"))
    told = [text for _, text in asked(conversation) if text.startswith(OPENING)]
    assert told == ([part(view, told_at(conversation))] if view != NOTHING else [])


def test_so_many_stay_and_the_one_after_them_stands_alone() -> None:
    paths = [f"/{number}" for number in range(screen.PARTS + 1)]
    conversation = Conversation(screen=page(*paths[:1]))
    for number in range(1, screen.PARTS + 1):
        types(conversation, f"question {number}")
        assert sum(text.startswith(OPENING) for _, text in asked(conversation)) == number
        conversation.take(inputs.ScreenChanged(page(*paths[: number + 1])))
    conversation.log(gateway.TextReceived(text="last question"))
    told = [text for _, text in asked(conversation) if text.startswith(OPENING)]
    assert told == [part(page(*paths), told_at(conversation))]


def test_of_two_pages_between_two_turns_the_second_one_is_told() -> None:
    conversation = Conversation(screen=page("/a"))
    conversation.pass_ms(60_000)
    conversation.take(inputs.ScreenChanged(page("/b")))
    conversation.pass_ms(60_000)
    conversation.log(gateway.TextReceived(text="hello"))
    assert [text for _, text in asked(conversation)] == [part(page("/b"), told_at(conversation)), "hello"]


def test_a_page_that_is_only_passed_is_not_read_but_the_next_turn_knows_it() -> None:
    conversation = Conversation(screen=page("/a"))
    conversation.pass_ms(1_000)
    for path in ("/b", "/c"):
        conversation.take(inputs.ScreenChanged(page(path)))
    assert len([one for one in conversation.outputs if isinstance(one, out.ReadAhead)]) == 1
    conversation.pass_ms(screen.GAP_MS)
    ahead = [one for one in conversation.outputs if isinstance(one, out.ReadAhead)]
    assert len(ahead) == 2
    assert "/c" in ahead[1].messages[1].text
    conversation.take(inputs.ScreenChanged(page("/d")))
    conversation.log(gateway.TextReceived(text="where am I"))
    assert "/d" in asked(conversation)[0][1]


def test_a_reply_that_is_being_made_is_not_disturbed() -> None:
    conversation = Conversation(screen=page("/a"))
    conversation.pass_ms(60_000)
    conversation.log(gateway.TextReceived(text="hello"))
    conversation.take(inputs.ScreenChanged(page("/b")))
    assert conversation.state.conversation.screen.told == page("/a")
    conversation.write("Fine.")
    conversation.synthesize()
    conversation.pass_ms(60_000)
    assert conversation.state.conversation.screen.told == page("/b")


def test_an_echo_is_told_nothing() -> None:
    conversation = Conversation(mode="echo", screen=page("/a"))
    conversation.take(inputs.ScreenChanged(page("/b")))
    assert conversation.state.conversation.screen.told == NOTHING


def essence(conversation: Conversation) -> list[Any]:
    """Return everything that a session does, but for what its model is told."""
    kept = []
    for one in conversation.outputs:
        if isinstance(one, out.StartEffect) and isinstance(one.effect, out.Complete):
            kept.append([message for message in one.effect.messages if not message.text.startswith(OPENING)])
        elif not isinstance(one, out.ReadAhead) and not (isinstance(one, out.SetTimer | out.CancelTimer) and one.name == screen.TIMER):
            kept.append(one)
    return kept


def acts(view: View) -> Conversation:
    """Hold a conversation in which a call needs approval, and which nobody approves."""
    conversation = Conversation(screen=view)
    conversation.log(gateway.TextReceived(text="send a mail"))
    effect, _ = conversation.last_effect(out.Complete)
    conversation.take(inputs.ToolRequested(effect=effect, name="send_mail", arguments={"to": "bob"}))
    conversation.take(inputs.Completed(effect=effect))
    conversation.pass_ms(1_000)
    (call,) = conversation.events(ev.ToolCalled)
    conversation.log(
        tools.ApprovalRequested(
            approval_id=call.call_id,
            call_id=call.call_id,
            name="send_mail",
            arguments={},
            effect="write",
            question="Shall I?",
            expires_ts=START_US + 10**9,
        )
    )
    conversation.take(inputs.ScreenChanged(view))
    conversation.take(inputs.ScreenChanged(NOTHING))
    conversation.take(inputs.ScreenChanged(view))
    conversation.pass_ms(90_000)
    return conversation


@pytest.mark.parametrize("text", TEXTS, ids=range(len(TEXTS)))
def test_no_text_on_the_screen_changes_anything_that_a_session_does(text: str) -> None:
    plain = essence(acts(NOTHING))
    for view in views(text, START_US):
        conversation = acts(view)
        assert essence(conversation) == plain
        assert conversation.events(ev.ApprovalAnswered) == []
        assert len(conversation.events(ev.ToolCalled)) == 1
