"""Ends of tasks and of calls that were cut off: each is told once, to the user and to the model."""

from __future__ import annotations

import pytest

from tests.voice.conversation import Conversation
from voxbridge.services.voice.core import inputs
from voxbridge.services.voice.core import outputs as out
from voxbridge.services.voice.core.turns.open_calls import QUIET_MS
from voxbridge.shared import events
from voxbridge.shared.events import gateway, tools
from voxbridge.shared.events import voice as ev
from voxbridge.shared.events.voice import Failure

TASK = "task-c1"


def hears(call: Conversation) -> list[str]:
    """Have the client play all that the agent says. Return everything that it has said."""
    call.hear()
    return [said.text for said in call.events(ev.AgentSaid)]


def history(call: Conversation) -> str:
    return " ".join(message.text for message in call.state.conversation.history)


@pytest.mark.parametrize(
    ("event", "said"),
    [
        (tools.TaskCompleted(task_id=TASK, function="run_agent", result={"spoken": "Three vendors fit."}), "Three vendors fit."),
        (tools.TaskCompleted(task_id=TASK, function="run_agent", result={"n": 3}), "Run agent is done."),
        (tools.TaskCompleted(task_id=TASK, function="set_timer", result={"n": 3}, announce="Your tea is ready."), "Your tea is ready."),
        (tools.TaskFailed(task_id=TASK, function="run_agent", error=Failure(code="INTERNAL", message="No.")), "run agent failed: No."),
        (
            tools.TaskInterrupted(task_id=TASK, function="run_agent"),
            "Run agent was interrupted; whether it took effect is not known.",
        ),
        (tools.TaskCancelled(task_id=TASK, function="run_agent", reason="its server stopped"), "Run agent was cancelled."),
    ],
)
def test_every_end_of_a_task_is_said_when_nobody_speaks(event: events.Event, said: str) -> None:
    call = Conversation()
    call.speak("Hello?")
    call.log(event)
    call.write("Hi there.")
    assert hears(call) == ["Hi there.", said]


@pytest.mark.parametrize("reason", ["the user cancelled it", "the session ended"])
def test_an_end_that_the_user_wanted_is_not_said(reason: str) -> None:
    call = Conversation()
    call.log(tools.TaskCancelled(task_id=TASK, function="run_agent", reason=reason))
    assert hears(call) == []


def test_the_model_knows_the_whole_result() -> None:
    call = Conversation()
    call.log(tools.TaskCompleted(task_id=TASK, function="run_agent", result={"spoken": "Done.", "vendors": ["Ada", "Bo"]}))
    hears(call)
    call.speak("Which ones?")
    messages = call.last_effect(out.Complete)[1].messages
    assert any('"vendors":["Ada","Bo"]' in message.text for message in messages)


def cut_off(name: str) -> tuple[Conversation, ev.ToolCalled]:
    """Return a conversation whose user spoke while a function ran, and the call."""
    call = Conversation()
    call.speak("Do it.")
    effect = call.last_effect(out.Complete)[0]
    call.take(inputs.ToolRequested(effect=effect, name=name, arguments={}))
    call.take(inputs.Completed(effect=effect))
    call.pass_ms(QUIET_MS)
    call.speak("Are you there?")
    return call, call.events(ev.ToolCalled)[0]


def test_the_model_is_told_that_what_may_change_something_goes_on() -> None:
    for name, told in (("send_mail", '"status":"running"'), ("current_time", "CANCELLED")):
        call, _ = cut_off(name)
        results = [message.text for message in call.last_effect(out.Complete)[1].messages if message.role == "tool"]
        assert told in results[0]


def test_a_result_that_crossed_the_interruption_is_told_once_if_it_changed_something() -> None:
    for name, said in (("send_mail", ["Yes, I am.", "Sent."]), ("current_time", ["Yes, I am."])):
        call, called = cut_off(name)
        for _ in range(2):
            call.log(tools.ToolCompleted(call_id=called.call_id, name=name, result={"spoken": "Sent."}, ms=5))
        call.write("Yes, I am.")
        assert hears(call) == said
        assert [event.how for event in call.events(ev.ToolDelivered)] == ["content" if len(said) == 2 else "dropped"]


def test_a_call_that_was_cancelled_ahead_of_its_begin_is_told_to_the_model_only() -> None:
    call, called = cut_off("send_mail")
    error = Failure(code="CANCELLED", message="Cancelled: barge_in.")
    call.log(tools.ToolFailed(call_id=called.call_id, name="send_mail", error=error, ms=0))
    call.write("Yes, I am.")
    assert hears(call) == ["Yes, I am."]
    assert "(send_mail was cancelled before it began.)" in history(call)


def called_soon(*, pause_ms: int = 100) -> Conversation:
    """Return a conversation whose model has called a function that changes something, soon after the user's last word."""
    call = Conversation()
    call.speak("Write to Anna.")
    effect = call.last_effect(out.Complete)[0]
    call.pass_ms(pause_ms)
    call.take(inputs.ToolRequested(effect=effect, name="send_mail", arguments={}))
    call.take(inputs.Completed(effect=effect))
    return call


def test_what_may_change_something_begins_when_the_user_has_been_quiet_for_a_moment() -> None:
    call = called_soon()
    assert call.events(ev.ToolCalled) == []
    assert call.states()[-1] == "calling_tool"
    call.pass_ms(QUIET_MS)
    assert len(call.events(ev.ToolCalled)) == 1
    call.complete_tool({"spoken": "Sent."})
    call.write("Sent.")
    assert hears(call) == ["Sent."]


def test_it_begins_at_once_when_the_model_took_long_enough() -> None:
    assert len(called_soon(pause_ms=QUIET_MS).events(ev.ToolCalled)) == 1


def test_the_user_who_goes_on_takes_it_back_and_is_heard_as_a_whole() -> None:
    call = called_soon()
    call.speak("No, write to Ben.")
    assert call.events(ev.ToolCalled) == []
    assert call.events(ev.ToolCancelled) == []
    assert call.events(ev.UserSaid)[-1].continues
    assert call.last_effect(out.Complete)[1].messages[-1].text == "Write to Anna. No, write to Ben."
    effect = call.last_effect(out.Complete)[0]
    call.take(inputs.ToolRequested(effect=effect, name="send_mail", arguments={"to": "Ben"}))
    call.take(inputs.Completed(effect=effect))
    call.pass_ms(QUIET_MS)
    (called,) = call.events(ev.ToolCalled)
    assert called.arguments == {"to": "Ben"}
    assert call.state.pending.held == ()


@pytest.mark.parametrize("stop", ["typed", "end"])
def test_a_call_that_is_cut_off_before_it_began_never_begins(stop: str) -> None:
    call = called_soon()
    call.log(gateway.TextReceived(text="Stop!") if stop == "typed" else gateway.SessionEndRequested(by="client", reason="client_ended"))
    call.pass_ms(2 * QUIET_MS)
    assert call.events(ev.ToolCalled) == []
    assert call.events(ev.ToolCancelled) == []
    assert call.state.pending.held == ()
