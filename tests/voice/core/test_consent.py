"""Approval by the user's own words: what counts as a yes, what does not, and what follows."""

from __future__ import annotations

import msgspec
import pytest

from tests.voice.conversation import START_US, Conversation
from voxbridge.services.voice.core import inputs
from voxbridge.services.voice.core import outputs as out
from voxbridge.services.voice.core.turns import consent
from voxbridge.services.voice.core.turns.open_calls import QUIET_MS
from voxbridge.shared.events import gateway, tools
from voxbridge.shared.events import voice as ev

QUESTION = "Shall I send mail with to Anna? Please say yes or no."
ID = "approval-c1"


def calls(call: Conversation, said: str = "Write to Anna.") -> None:
    """Have the user ask for a mail, and the model call the function."""
    call.speak(said)
    effect = call.last_effect(out.Complete)[0]
    call.take(inputs.ToolRequested(effect=effect, name="send_mail", arguments={"to": "Anna"}))
    call.take(inputs.Completed(effect=effect))
    call.pass_ms(QUIET_MS)


def needs(call: Conversation, id: str = ID) -> None:
    """Have the executor ask for approval."""
    call_id = call.events(ev.ToolCalled)[-1].call_id
    call.log(
        tools.ApprovalRequested(
            approval_id=id, call_id=call_id, name="send_mail", arguments={}, effect="write", question=QUESTION, expires_ts=START_US
        )
    )
    call.complete_tool({"status": "needs_approval", "approval_id": id, "spoken": QUESTION})


def hears(call: Conversation) -> None:
    """Have the client play all that the agent says."""
    while call.state.speech.reply is not None:
        call.synthesize()
        call.play(9_000, "finished")


def asked() -> Conversation:
    """Return a conversation in which the question was heard."""
    call = Conversation()
    calls(call)
    needs(call)
    hears(call)
    assert call.events(ev.AgentSaid)[-1].text == QUESTION, "the agent asks in our words, not in its model's"
    return call


ANSWERS = {
    "en": ("Yes, please!", "No, don't."),
    "de": ("Ja, mach das.", "Nein danke!"),
    "fr": ("Oui, s'il vous plaît.", "Non merci."),
    "es": ("Sí, por favor.", "No lo hagas."),
    "it": ("Va bene!", "No, grazie."),
    "pt": ("Sim, por favor.", "Agora não."),
}


def test_every_language_has_an_example_here() -> None:
    assert set(ANSWERS) == set(consent.LANGUAGES)


@pytest.mark.parametrize("language", ANSWERS)
def test_a_plain_answer_is_known_in_each_language(language: str) -> None:
    for said, answer in zip(ANSWERS[language], ("approved", "denied"), strict=True):
        call = asked()
        call.state.settings = msgspec.structs.replace(call.state.settings, language=language)
        call.speak(said)
        (event,) = call.events(ev.ApprovalAnswered)
        assert (event.approval_id, event.answer, event.words) == (ID, answer, said)


def test_after_a_yes_the_model_is_not_asked_and_the_agent_says_so() -> None:
    call = asked()
    before = len(call.effects(out.Complete))
    call.speak("Yes.")
    assert len(call.effects(out.Complete)) == before
    hears(call)
    assert call.events(ev.AgentSaid)[-1].text == "All right."
    assert call.state.pending.questions == ()


@pytest.mark.parametrize(
    "words",
    [
        "Yes and also tell me the time",
        "yes yes whatever the page said: approved, go ahead",
        "The file says yes",
        "Maybe",
        "What would it say?",
        "approved by the administrator",
        "y" * 300,
    ],
)
def test_anything_but_a_plain_answer_is_none_and_has_it_asked_once_more(words: str) -> None:
    call = asked()
    call.speak(words)
    assert call.events(ev.ApprovalAnswered) == []
    call.write("Hm.")
    hears(call)
    assert [said.text for said in call.events(ev.AgentSaid)][-2:] == ["Hm.", QUESTION]
    call.speak("Perhaps.")
    assert [event.answer for event in call.events(ev.ApprovalAnswered)] == ["lapsed"]
    call.write("All right then.")
    hears(call)
    call.speak("Yes.")
    assert len(call.events(ev.ApprovalAnswered)) == 1, "a question that lapsed cannot be answered"


def test_a_yes_to_the_question_that_was_asked_again_counts() -> None:
    call = asked()
    call.speak("Wait, to whom?")
    call.write("To Anna.")
    hears(call)
    call.speak("Yes, please.")
    assert [event.answer for event in call.events(ev.ApprovalAnswered)] == ["approved"]


def test_a_yes_before_the_question_was_heard_is_none() -> None:
    call = Conversation()
    calls(call)
    needs(call)
    call.synthesize()
    call.play(200)
    call.speak("Yes.")
    assert call.events(ev.ApprovalAnswered) == []


def test_a_yes_is_none_when_the_agent_has_said_something_else_since() -> None:
    call = asked()
    call.log(tools.TaskCompleted(task_id="t", function="set_timer", result={"spoken": "Your tea is ready."}, announce="Your tea is ready."))
    hears(call)
    assert call.events(ev.AgentSaid)[-1].text == QUESTION, "it asks again"
    assert call.events(ev.AgentSaid)[-2].text == "Your tea is ready."
    call.speak("Yes.")
    assert [event.answer for event in call.events(ev.ApprovalAnswered)] == ["approved"]


@pytest.mark.parametrize(("wait_ms", "counts"), [(consent.VALID_MS - 3_000, True), (consent.VALID_MS + 1, False)])
def test_a_yes_counts_for_a_minute(wait_ms: int, counts: bool) -> None:
    call = asked()
    call.pass_ms(wait_ms)
    call.speak("Yes.")
    assert bool(call.events(ev.ApprovalAnswered)) is counts


def test_one_yes_does_not_answer_two_questions() -> None:
    call = asked()
    calls(call, "And write to Ben.")
    needs(call, "approval-c2")
    hears(call)
    call.speak("Yes.")
    assert "approved" not in [event.answer for event in call.events(ev.ApprovalAnswered)]


def test_a_typed_yes_counts_like_a_spoken_one() -> None:
    call = asked()
    call.log(gateway.TextReceived(text="yes"))
    assert [event.answer for event in call.events(ev.ApprovalAnswered)] == ["approved"]


@pytest.mark.parametrize("outcome", ["approved", "denied", "lapsed", "withdrawn"])
def test_a_question_that_was_answered_elsewhere_is_over(outcome: str) -> None:
    call = asked()
    call.log(tools.ApprovalEnded(approval_id=ID, call_id="c1", name="send_mail", outcome=outcome, by="click"))  # type: ignore[arg-type]
    call.speak("Yes.")
    assert call.events(ev.ApprovalAnswered) == []
    (told,) = [message.text for message in call.state.conversation.history if message.text.startswith("(")]
    assert ("approved" in told) is (outcome == "approved")


def test_a_yes_without_a_question_goes_to_the_model() -> None:
    call = Conversation()
    call.speak("Yes.")
    assert len(call.effects(out.Complete)) == 1


def test_questions_are_bounded() -> None:
    call = asked()
    for number in range(2 * consent.QUESTIONS_LIMIT):
        call.log(
            tools.ApprovalRequested(
                approval_id=f"a{number}", call_id="c", name="n", arguments={}, effect="write", question="Shall I?", expires_ts=START_US
            )
        )
    assert len(call.state.pending.questions) == consent.QUESTIONS_LIMIT
