"""Approval by the user's own words: what counts as a yes, what does not, and what follows."""

from __future__ import annotations

import msgspec
import pytest

from tests.voice.conversation import START_US, Conversation
from voxbridge.services.voice.core import inputs
from voxbridge.services.voice.core import outputs as out
from voxbridge.services.voice.core.transition import Transition
from voxbridge.services.voice.core.turns import consent
from voxbridge.services.voice.core.turns.open_calls import QUIET_MS
from voxbridge.shared.events import gateway, tools
from voxbridge.shared.events import voice as ev
from voxbridge.shared.language import yes_no

QUESTION = "Shall I send mail with to Anna? Please say yes or no."
ID = "approval-c1"
READY = "Your tea is ready."


def calls(call: Conversation, said: str = "Write to Anna.") -> None:
    """Have the user ask for a mail, and the model call the function."""
    call.speak(said)
    effect = call.last_effect(out.Complete)[0]
    call.take(inputs.ToolRequested(effect=effect, name="send_mail", arguments={"to": "Anna"}))
    call.take(inputs.Completed(effect=effect))
    call.pass_ms(QUIET_MS)


def needs(call: Conversation, id: str = ID, question: str = QUESTION) -> None:
    """Have the executor ask for approval."""
    call_id = call.events(ev.ToolCalled)[-1].call_id
    call.log(
        tools.ApprovalRequested(
            approval_id=id, call_id=call_id, name="send_mail", arguments={}, effect="write", question=question, expires_ts=START_US
        )
    )
    call.complete_tool({"status": "needs_approval", "approval_id": id, "spoken": question})


def asked() -> Conversation:
    """Return a conversation in which the question was heard."""
    call = Conversation()
    calls(call)
    needs(call)
    call.hear()
    assert call.events(ev.AgentSaid)[-1].text == QUESTION, "the agent asks in our words, not in its model's"
    return call


ANSWERS = {
    "en": ("Yes, please!", "No, don't."),
    "de": ("Ja, mach das.", "Nein danke!"),
    "fr": ("Oui, s'il vous plaît.", "Non merci."),
    "es": ("Sí, por favor.", "No lo hagas."),
    "it": ("Va bene!", "No, grazie."),
    "pt": ("Sim, por favor.", "Agora não."),
    "nl": ("Ja hoor, doe maar.", "Nee, dank je."),
    "pl": ("Tak, proszę.", "Nie, dziękuję."),
    "sv": ("Ja tack.", "Nej tack."),
    "ru": ("Да, пожалуйста.", "Нет, не надо."),
    "tr": ("Evet lütfen.", "Hayır."),
    "hi": ("जी हाँ, कर दीजिए।", "नहीं।"),
    "ja": ("はい。", "やめてください。"),
    "zh": ("好的。", "不要。"),
}


def test_every_language_has_an_example_here() -> None:
    assert set(ANSWERS) == set(yes_no.LANGUAGES)


@pytest.mark.parametrize("language", ANSWERS)
def test_a_plain_answer_is_known_in_each_language(language: str) -> None:
    for said, answer in zip(ANSWERS[language], ("approved", "denied"), strict=True):
        call = asked()
        call.state.settings = msgspec.structs.replace(call.state.settings, language=language)
        call.speak(said)
        (event,) = call.events(ev.ApprovalAnswered)
        assert (event.approval_id, event.answer, event.words) == (ID, answer, said)


@pytest.mark.parametrize(
    ("language", "rules", "told"),
    [("el", inputs.RULES, True), ("de-AT", inputs.RULES, False), ("", inputs.RULES, False), ("el", inputs.BY_CLICK - 1, False)],
)
def test_a_question_in_a_language_without_known_answers_says_how_to_answer(language: str, rules: int, told: bool) -> None:
    call = Conversation()
    call.state.settings = msgspec.structs.replace(call.state.settings, language=language, rules=rules)
    calls(call)
    needs(call)
    call.hear()
    put = f"{consent.BY_CLICK} {QUESTION}" if told else QUESTION
    assert call.events(ev.AgentSaid)[-1].text == put
    call.speak("Ναι.")
    call.write("Hm?")
    call.hear()
    assert call.events(ev.ApprovalAnswered) == []
    assert call.events(ev.AgentSaid)[-1].text == put, "it is asked once more"
    call.speak("Yes.")
    assert call.events(ev.ApprovalAnswered)[-1].answer == ("lapsed" if language == "de-AT" else "approved")


def test_after_a_yes_the_model_is_not_asked_and_the_agent_says_so() -> None:
    call = asked()
    before = len(call.effects(out.Complete))
    call.speak("Yes.")
    assert len(call.effects(out.Complete)) == before
    call.hear()
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
    call.hear()
    assert [said.text for said in call.events(ev.AgentSaid)][-2:] == ["Hm.", QUESTION]
    call.speak("Perhaps.")
    assert [event.answer for event in call.events(ev.ApprovalAnswered)] == ["lapsed"]
    call.write("All right then.")
    call.hear()
    call.speak("Yes.")
    assert len(call.events(ev.ApprovalAnswered)) == 1, "a question that lapsed cannot be answered"


def test_a_yes_to_the_question_that_was_asked_again_counts() -> None:
    call = asked()
    call.speak("Wait, to whom?")
    call.write("To Anna.")
    call.hear()
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


@pytest.mark.parametrize("heard_ms", [0, 200])
def test_a_question_that_is_cut_off_is_asked_once_more_and_lapses_when_it_is_cut_off_again(heard_ms: int) -> None:
    call = Conversation()
    calls(call)
    needs(call)
    for words in ("Wait.", "Hold on."):
        assert call.events(ev.ApprovalAnswered) == []
        call.synthesize()
        if heard_ms:
            call.play(heard_ms)
        call.speak(words)
        assert call.events(ev.AgentSaid)[-1].interrupted
        call.write("Of course.")
        call.synthesize()
        call.play(9_000, "finished")
    assert [(event.answer, event.words) for event in call.events(ev.ApprovalAnswered)] == [("lapsed", "")]
    assert call.state.pending.questions == ()
    assert not [said for said in call.events(ev.AgentSaid) if said.text == QUESTION]


def test_a_yes_to_a_question_that_was_cut_off_before_counts() -> None:
    call = Conversation()
    calls(call)
    needs(call)
    call.synthesize()
    call.play(200)
    call.speak("Wait.")
    call.write("Of course.")
    call.hear()
    assert call.events(ev.AgentSaid)[-1].text == QUESTION
    call.speak("Yes.")
    assert [event.answer for event in call.events(ev.ApprovalAnswered)] == ["approved"]


def ends(call: Conversation) -> None:
    """Have a task end."""
    call.log(tools.TaskCompleted(task_id="t", function="set_timer", result={"spoken": READY}, announce=READY))


def test_a_question_is_left_alone_for_a_moment() -> None:
    call = asked()
    ends(call)
    assert call.state.speech.reply is None, "the end of the task would come between the question and its answer"
    call.pass_ms(consent.ALONE_MS - 1)
    assert call.state.speech.reply is None
    call.pass_ms(1)
    assert call.state.speech.reply is not None


def test_what_waits_is_announced_after_the_answer() -> None:
    call = asked()
    ends(call)
    call.speak("Yes.")
    call.hear()
    assert [said.text for said in call.events(ev.AgentSaid)][-2:] == ["All right.", READY]


def test_what_waits_is_announced_when_a_click_answers() -> None:
    call = asked()
    ends(call)
    call.log(tools.ApprovalEnded(approval_id=ID, call_id="c1", name="send_mail", outcome="approved", by="click"))
    call.hear()
    assert call.events(ev.AgentSaid)[-1].text == READY


def test_older_journals_announce_at_once() -> None:
    call = Conversation()
    call.state.settings = msgspec.structs.replace(call.state.settings, rules=inputs.LEFT_ALONE - 1)
    calls(call)
    needs(call)
    call.hear()
    ends(call)
    assert call.state.speech.reply is not None


def test_a_yes_is_none_when_the_agent_has_said_something_else_since() -> None:
    call = asked()
    ends(call)
    call.pass_ms(consent.ALONE_MS)
    call.hear()
    assert [said.text for said in call.events(ev.AgentSaid)][-2:] == [READY, QUESTION], "it asks again"
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
    call.hear()
    call.speak("Yes.")
    assert "approved" not in [event.answer for event in call.events(ev.ApprovalAnswered)]


def test_a_typed_yes_counts_like_a_spoken_one() -> None:
    call = asked()
    call.log(gateway.TextReceived(text="yes"))
    assert [event.answer for event in call.events(ev.ApprovalAnswered)] == ["approved"]


def test_a_question_with_the_name_of_a_file_is_known_although_it_is_said_without_its_marks() -> None:
    call = Conversation()
    calls(call)
    needs(call, question="Shall I delete file notes/my_old_notes.md? Please say yes or no.")
    call.hear()
    assert "my old notes" in call.events(ev.AgentSaid)[-1].text
    call.speak("Yes.")
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


def step_needs(call: Conversation, question: str = QUESTION) -> None:
    """Have a step of a run need approval."""
    call.log(
        tools.ApprovalRequested(
            approval_id="approval-r.s.1", call_id="r.s.1", name="n", arguments={}, effect="write", question=question, expires_ts=START_US
        )
    )
    call.log(tools.RunWaiting(run_id="r", name="buy", reason="approval", step="s", question=question))


def test_what_a_step_of_a_run_needs_is_asked_and_answered_by_voice() -> None:
    call = Conversation()
    step_needs(call)
    call.hear()
    assert [said.text for said in call.events(ev.AgentSaid)] == [QUESTION]
    call.speak("Yes.")
    assert [(event.approval_id, event.answer) for event in call.events(ev.ApprovalAnswered)] == [("approval-r.s.1", "approved")]


def test_a_question_that_was_answered_before_it_could_be_said_is_not_said() -> None:
    call = Conversation()
    call.speak("Hello?")
    step_needs(call)
    call.log(tools.ApprovalEnded(approval_id="approval-r.s.1", call_id="r.s.1", name="n", outcome="approved", by="click"))
    call.write("Hi there.")
    call.hear()
    assert [said.text for said in call.events(ev.AgentSaid)] == ["Hi there."]


@pytest.mark.parametrize("words", ["Okay?", "Sure?", "yes?", "“Okay?”"])
def test_what_is_asked_in_return_is_no_yes(words: str) -> None:
    call = asked()
    call.speak(words)
    assert call.events(ev.ApprovalAnswered) == []


@pytest.mark.parametrize(("heard", "answer"), [("de", "approved"), ("en", "approved"), ("", "approved")])
def test_a_yes_in_the_language_of_the_call_counts_whatever_was_heard(heard: str, answer: str) -> None:
    call = asked()
    call.take(inputs.VoiceStarted(call.now_ms))
    call.pass_ms(600)
    call.take(inputs.VoiceStopped(call.now_ms, 256))
    call.pass_ms(50)
    call.take(inputs.TurnJudged(call.last_effect(out.JudgeTurn)[0], 0.9))
    call.take(inputs.Transcribed(effect=call.last_effect(out.Transcribe)[0], text="Yes.", language=heard))
    assert [event.answer for event in call.events(ev.ApprovalAnswered)] == [answer]


def test_of_two_open_questions_each_is_asked_and_answered_by_itself() -> None:
    call = asked()
    step_needs(call, "Shall I buy it? Please say yes or no.")
    assert call.state.speech.reply is None, "one question waits for its answer"
    call.speak("No.")
    call.hear()
    assert [said.text for said in call.events(ev.AgentSaid)][-2:] == ["All right, I won't.", "Shall I buy it? Please say yes or no."]
    call.speak("Yes.")
    assert [(one.approval_id, one.answer) for one in call.events(ev.ApprovalAnswered)] == [(ID, "denied"), ("approval-r.s.1", "approved")]


def test_what_a_program_asks_for_is_asked_by_that_program() -> None:
    call = Conversation()
    call.log(
        tools.ApprovalRequested(
            approval_id=ID, call_id="c", name="n", arguments={}, effect="write", question=QUESTION, expires_ts=START_US, by_program=True
        )
    )
    call.hear()
    call.speak("Yes.")
    assert (call.events(ev.AgentSaid), call.events(ev.ApprovalAnswered)) == ([], [])


def test_a_question_that_the_agents_answer_leaves_out_is_asked_after_it() -> None:
    call = Conversation()
    call.speak("Write to Anna, and what time is it?")
    effect = call.last_effect(out.Complete)[0]
    for name in ("current_time", "send_mail"):
        call.take(inputs.ToolRequested(effect=effect, name=name, arguments={}))
    call.take(inputs.Completed(effect=effect))
    call.pass_ms(QUIET_MS)
    clock, mail = (event.call_id for event in call.events(ev.ToolCalled))
    call.log(tools.ToolCompleted(call_id=clock, name="current_time", result={"time": "09:00"}, ms=1))
    assert call.events(ev.ToolCalled)[-1].call_id == mail
    needs(call)
    call.write("It is nine.")
    call.hear()
    assert [said.text for said in call.events(ev.AgentSaid)] == ["It is nine.", QUESTION]


def test_words_after_the_question_make_it_another_one() -> None:
    call = Conversation()
    calls(call)
    needs(call)
    call.synthesize()
    question = call.state.pending.questions[0]
    said = ev.AgentSaid(text=f"{QUESTION} Or shall I sing?", turn=1, generation=9, unheard="", interrupted=False, played_ms=None)
    t = Transition(call.state, START_US)
    t.append(said)
    consent.watch(t)
    assert [one.heard_at for one in t.pending.questions if one.id == question.id] == [0]
