"""Ends of tasks that outlived an earlier session: asked for when nobody speaks, told once, and counted as told when they are said."""

from __future__ import annotations

from tests.voice.conversation import Conversation
from tests.voice.core.test_task_ends import hears, history
from voxbridge.services.voice.core import inputs
from voxbridge.services.voice.core.turns.turns import NOTICES_LIMIT
from voxbridge.shared.events import gateway, tools
from voxbridge.shared.events import voice as ev

TASK = "task-c1"
RANG = tools.TaskCompleted(task_id=TASK, function="set_timer", result={"n": 3}, announce="Your tea is ready.", outlives=True)
EARLIER = tools.TaskCompleted(
    task_id=TASK, function="set_timer", result={"n": 3}, announce="Your tea is ready.", outlives=True, ended_ts=1_700_000_000_000_000
)


def wanted(call: Conversation) -> list[tuple[str, ...]]:
    return [event.task_ids for event in call.events(ev.TasksWanted)]


def told(call: Conversation) -> tuple[str, ...]:
    """End the session, and return what it says it told."""
    call.log(gateway.SessionEndRequested(reason="client", by="client"))
    return call.events(ev.SessionEnded)[0].told


def test_a_session_asks_when_it_begins_and_tells_user_and_model() -> None:
    call = Conversation(unheard=(TASK,))
    assert wanted(call) == [(TASK,)]
    call.log(EARLIER)
    assert hears(call) == ["From an earlier call: Your tea is ready."]
    assert "Your tea is ready." in history(call)
    assert told(call) == (TASK,)


def test_it_asks_when_nobody_speaks() -> None:
    call = Conversation()
    call.speak("Hello?")
    call.take(inputs.UnheardChanged((TASK,)))
    assert wanted(call) == []
    call.write("Hi there.")
    hears(call)
    assert wanted(call) == [(TASK,)]


def test_it_asks_once_and_again_only_for_one_that_came_back() -> None:
    call = Conversation(unheard=(TASK,))
    call.take(inputs.UnheardChanged((TASK, "task-c2")))
    call.take(inputs.UnheardChanged(("task-c2",)))
    call.take(inputs.UnheardChanged((TASK, "task-c2")))
    assert wanted(call) == [(TASK,), ("task-c2",), (TASK,)]


def test_an_absent_user_is_not_asked_for() -> None:
    call = Conversation()
    call.log(gateway.ClientDisconnected(gateway="g", connection="c", reason="closed", last_seq=0))
    call.take(inputs.UnheardChanged((TASK,)))
    assert wanted(call) == []


def test_an_end_of_its_own_counts_as_told_once_it_is_said() -> None:
    call = Conversation()
    call.log(RANG)
    assert hears(call) == ["Your tea is ready."]
    assert told(call) == (TASK,)


def test_an_end_that_waits_when_the_session_ends_is_not_called_told() -> None:
    call = Conversation()
    call.speak("Hello?")
    call.log(RANG)
    assert told(call) == ()


def test_an_end_beyond_the_limit_of_notices_is_not_called_told() -> None:
    call = Conversation()
    call.speak("Hello?")
    for number in range(NOTICES_LIMIT):
        call.log(tools.TaskCompleted(task_id=f"task-{number}", function="work", result={}))
    call.log(RANG)
    call.write("Hi there.")
    hears(call)
    assert told(call) == ()


def test_a_task_that_ends_with_its_session_is_not_listed() -> None:
    call = Conversation()
    call.log(tools.TaskCompleted(task_id=TASK, function="work", result={}))
    assert hears(call) == ["Work is done."]
    assert told(call) == ()


def test_an_echo_asks_for_nothing() -> None:
    call = Conversation(mode="echo", unheard=(TASK,))
    call.take(inputs.UnheardChanged((TASK,)))
    assert wanted(call) == []
