"""Function calls and failures in a turn: every call gets one result, and the user is never left in silence."""

from __future__ import annotations

import pytest

from tests.voice.conversation import Conversation
from voxbridge.services.voice.core import inputs
from voxbridge.services.voice.core import outputs as out
from voxbridge.shared.events import gateway, tools
from voxbridge.shared.events import voice as ev


def calling(name: str = "current_time") -> Conversation:
    """Return a conversation whose model has called a function."""
    call = Conversation()
    call.speak("What time is it in Tokyo?")
    effect = call.last_effect(out.Complete)[0]
    call.take(inputs.ToolRequested(effect=effect, name=name, arguments={"place": "Tokyo"}))
    call.take(inputs.Completed(effect=effect))
    return call


def test_a_call_is_an_event_and_its_result_goes_back_to_the_model() -> None:
    call = calling()
    assert call.states()[-1] == "calling_tool"
    (called,) = call.events(ev.ToolCalled)
    assert (called.name, called.arguments, called.kind, called.deadline_ms) == ("current_time", {"place": "Tokyo"}, "server", 5_000)
    call.complete_tool({"time": "09:00"})
    messages = call.last_effect(out.Complete)[1].messages
    assert messages[-2].uses[0].call_id == called.call_id
    assert (messages[-1].role, messages[-1].call_id, messages[-1].text) == ("tool", called.call_id, '{"time":"09:00"}')
    call.write("It is nine.")
    call.synthesize()
    call.play(1_000, "finished")
    assert [event.how for event in call.events(ev.ToolDelivered)] == ["response"]
    assert call.events(ev.TurnCompleted)[0].reason == "completed"


def test_words_before_a_call_are_spoken_and_kept_beside_it() -> None:
    call = Conversation()
    call.speak("What time is it?")
    effect = call.last_effect(out.Complete)[0]
    call.take(inputs.TextDelta(effect, "Let me look"))
    call.take(inputs.ToolRequested(effect=effect, name="current_time", arguments={}))
    call.take(inputs.Completed(effect=effect))
    call.synthesize()
    call.complete_tool({"time": "09:00"})
    assert call.last_effect(out.Complete)[1].messages[-2].text == "Let me look"
    call.write("It is nine.")
    call.synthesize()
    call.play(2_000, "finished")
    assert call.events(ev.AgentSaid)[0].text == "Let me look It is nine."
    assert call.state.conversation.history[-1].text == "It is nine."


def test_parallel_calls_are_answered_together() -> None:
    call = Conversation()
    call.speak("Times in Tokyo and Paris?")
    effect = call.last_effect(out.Complete)[0]
    for place in ("Tokyo", "Paris"):
        call.take(inputs.ToolRequested(effect=effect, name="current_time", arguments={"place": place}))
    call.take(inputs.Completed(effect=effect))
    first, second = call.events(ev.ToolCalled)
    call.log(tools.ToolCompleted(call_id=second.call_id, name="current_time", result={"n": 2}, ms=1))
    assert len(call.effects(out.Complete)) == 1
    call.log(tools.ToolCompleted(call_id=first.call_id, name="current_time", result={"n": 1}, ms=1))
    assert [m.text for m in call.last_effect(out.Complete)[1].messages[-2:]] == ['{"n":1}', '{"n":2}']


def test_a_result_that_comes_before_the_model_stopped_is_used() -> None:
    call = Conversation()
    call.speak("What time is it?")
    effect = call.last_effect(out.Complete)[0]
    call.take(inputs.ToolRequested(effect=effect, name="current_time", arguments={}))
    call.complete_tool({"time": "09:00"})
    assert len(call.effects(out.Complete)) == 1
    call.take(inputs.Completed(effect=effect))
    assert len(call.effects(out.Complete)) == 2


@pytest.mark.parametrize(
    ("answer", "code"),
    [
        (lambda c: tools.ToolFailed(call_id=c, name="f", error=ev.Failure(code="NOT_FOUND", message="no"), ms=1), "NOT_FOUND"),
        (lambda c: tools.ToolInterrupted(call_id=c, name="f"), "INTERRUPTED"),
    ],
)
def test_a_failed_call_is_told_to_the_model(answer: object, code: str) -> None:
    call = calling()
    call.log(answer(call.events(ev.ToolCalled)[0].call_id))  # type: ignore[operator]
    assert f'"code":"{code}"' in call.last_effect(out.Complete)[1].messages[-1].text


def test_a_call_nobody_answers_times_out_and_its_late_result_is_dropped() -> None:
    call = calling()
    call.pass_ms(5_000 + 4_999)
    assert call.events(ev.ToolCancelled) == []
    call.pass_ms(1)
    assert [event.reason for event in call.events(ev.ToolCancelled)] == ["timed_out"]
    assert "TIMED_OUT" in call.last_effect(out.Complete)[1].messages[-1].text
    rounds = len(call.effects(out.Complete))
    call.complete_tool({"time": "late"})
    assert [event.how for event in call.events(ev.ToolDelivered)] == ["response", "dropped"]
    assert len(call.effects(out.Complete)) == rounds


def test_a_barge_in_one_frame_after_the_call_cancels_it_and_leaves_a_whole_history() -> None:
    call = calling()
    call.take(inputs.VoiceStarted(5_000))
    assert [event.reason for event in call.events(ev.ToolCancelled)] == ["barge_in"]
    call.take(inputs.VoiceStopped(5_900, 256))
    call.take(inputs.TurnJudged(call.last_effect(out.JudgeTurn)[0], 0.9))
    call.take(inputs.Transcribed(effect=call.last_effect(out.Transcribe)[0], text="Never mind."))
    messages = call.last_effect(out.Complete)[1].messages
    uses = [use.call_id for message in messages for use in message.uses]
    assert [message.call_id for message in messages if message.role == "tool"] == uses
    call.complete_tool({"time": "late"})
    assert [event.how for event in call.events(ev.ToolDelivered)] == ["dropped"]


def test_a_browser_call_is_answered_by_the_page() -> None:
    call = calling("open_page")
    (called,) = call.events(ev.ToolCalled)
    assert called.kind == "browser"
    call.log(gateway.BrowserCallAnswered(call_id=called.call_id, name="open_page", result={"ok": True}))
    assert call.last_effect(out.Complete)[1].messages[-1].text == '{"ok":true}'


def test_after_five_rounds_the_model_gets_no_more_functions() -> None:
    call = Conversation()
    call.speak("Loop.")
    for _ in range(5):
        effect, request = call.last_effect(out.Complete)
        assert request.functions
        call.take(inputs.ToolRequested(effect=effect, name="current_time", arguments={}))
        call.take(inputs.Completed(effect=effect))
        call.complete_tool({})
    assert call.last_effect(out.Complete)[1].functions == ()


def test_a_failing_language_model_is_an_apology_in_the_same_turn_and_a_fact_in_the_log() -> None:
    call = Conversation()
    call.speak("Hello?")
    effect = call.last_effect(out.Complete)[0]
    call.take(inputs.EffectFailed(effect=effect, error=ev.Failure(code="PROVIDER_UNAVAILABLE", message="down")))
    assert call.last_effect(out.Synthesize)[1].text.startswith("Sorry")
    call.synthesize()
    call.play(1_000, "finished")
    assert [(event.part, event.error.message) for event in call.events(ev.ProviderFailed)] == [("llm", "down")]
    assert [(event.number, event.reason) for event in call.events(ev.TurnCompleted)] == [(1, "failed")]


def test_a_failing_voice_still_leaves_the_words_in_the_log() -> None:
    call = Conversation()
    call.speak("Hello?")
    call.write("Hello to you.")
    effect = call.last_effect(out.Synthesize)[0]
    call.take(inputs.EffectFailed(effect=effect, error=ev.Failure(code="PROVIDER_UNAVAILABLE", message="down")))
    (said,) = call.events(ev.AgentSaid)
    assert (said.text, said.unheard) == ("", "Hello to you.")
    assert [event.reason for event in call.events(ev.TurnCompleted)] == ["failed"]
    assert call.states()[-1] == "listening"


def test_a_failing_transcription_is_said() -> None:
    call = Conversation()
    call.take(inputs.VoiceStarted(0))
    call.take(inputs.VoiceStopped(900, 256))
    effect = call.last_effect(out.Transcribe)[0]
    call.take(inputs.EffectFailed(effect=effect, error=ev.Failure(code="TIMED_OUT", message="slow")))
    assert [event.part for event in call.events(ev.ProviderFailed)] == ["stt"]
    assert "could not make out" in call.last_effect(out.Synthesize)[1].text


def test_a_silent_model_is_noticed_at_the_limit_and_not_before() -> None:
    call = Conversation()
    call.speak("Hello?")
    call.pass_ms(29_999)
    assert call.events(ev.ProviderFailed) == []
    call.pass_ms(1)
    assert [event.error.code for event in call.events(ev.ProviderFailed)] == ["TIMED_OUT"]
    assert "too long" in call.last_effect(out.Synthesize)[1].text


def test_a_model_that_ends_without_a_word_is_asked_once_more_without_functions_and_then_is_a_failure() -> None:
    call = Conversation()
    call.speak("Hello?")
    call.write()
    assert call.events(ev.ProviderFailed) == []
    assert call.last_effect(out.Complete)[1].functions == ()
    call.write()
    assert [event.error.code for event in call.events(ev.ProviderFailed)] == ["PROVIDER_REFUSED"]
    assert call.last_effect(out.Synthesize)[1].text.startswith("Sorry")


def test_an_apology_that_fails_too_ends_the_turn() -> None:
    call = Conversation()
    call.speak("Hello?")
    call.write()
    call.write()
    effect = call.last_effect(out.Synthesize)[0]
    call.take(inputs.EffectFailed(effect=effect, error=ev.Failure(code="PROVIDER_UNAVAILABLE", message="down")))
    assert [event.reason for event in call.events(ev.TurnCompleted)] == ["failed"]
    assert call.state.speech.reply is None


def test_a_call_that_cannot_be_read_is_answered_in_words_instead() -> None:
    call = Conversation()
    call.speak("Tell me a story.")
    refused = ev.Failure(code="PROVIDER_REFUSED", message="arguments that are not JSON")
    call.take(inputs.EffectFailed(effect=call.last_effect(out.Complete)[0], error=refused))
    assert call.last_effect(out.Complete)[1].functions == ()
    call.write("Once upon a time.")
    call.synthesize()
    call.play(1_000, "finished")
    assert call.events(ev.AgentSaid)[0].text == "Once upon a time."
    assert call.events(ev.ProviderFailed) == []


def test_an_apology_is_not_remembered_as_a_way_to_answer() -> None:
    call = Conversation()
    call.speak("Hello?")
    failure = ev.Failure(code="PROVIDER_UNAVAILABLE", message="down")
    call.take(inputs.EffectFailed(effect=call.last_effect(out.Complete)[0], error=failure))
    call.synthesize()
    call.play(1_000, "finished")
    assert [message.text for message in call.state.conversation.history] == ["Hello?"]


def test_a_result_that_says_what_to_say_is_said_without_asking_the_model_again() -> None:
    call = Conversation(speak_results=True)
    call.speak("What time is it in Tokyo?")
    effect = call.last_effect(out.Complete)[0]
    call.take(inputs.ToolRequested(effect=effect, name="current_time", arguments={"place": "Tokyo"}))
    call.take(inputs.Completed(effect=effect))
    call.complete_tool({"time": "09:00", "spoken": "It's nine in Tokyo."})
    assert len(call.effects(out.Complete)) == 1
    assert call.last_effect(out.Synthesize)[1].text == "It's nine in Tokyo."
    call.synthesize()
    call.play(1_000, "finished")
    assert [message.role for message in call.state.conversation.history] == ["user", "assistant", "tool", "assistant"]
    assert call.state.conversation.history[-1].text == "It's nine in Tokyo."
    assert call.events(ev.TurnCompleted)[0].reason == "completed"


def test_two_results_are_put_into_words_by_the_model() -> None:
    call = Conversation(speak_results=True)
    call.speak("Times in Tokyo and Paris?")
    effect = call.last_effect(out.Complete)[0]
    for place in ("Tokyo", "Paris"):
        call.take(inputs.ToolRequested(effect=effect, name="current_time", arguments={"place": place}))
    call.take(inputs.Completed(effect=effect))
    for called in call.events(ev.ToolCalled):
        call.log(tools.ToolCompleted(call_id=called.call_id, name="current_time", result={"spoken": "It's nine."}, ms=1))
    assert len(call.effects(out.Complete)) == 2
