"""The voice core in virtual time: a turn, starts and ends of sessions, and idling."""

from __future__ import annotations

import msgspec
import pytest

from tests.voice.conversation import Conversation
from tests.voice.orders.simulation import Orders
from voxbridge.services.voice.core import inputs, step
from voxbridge.services.voice.core import outputs as out
from voxbridge.shared.events import gateway
from voxbridge.shared.events import tools as tool_events
from voxbridge.shared.events import voice as ev


def test_a_spoken_turn_is_answered_heard_and_logged_with_its_latency() -> None:
    call = Conversation()
    call.speak("What time is it?")
    assert [event.text for event in call.events(ev.UserSaid)] == ["What time is it?"]
    call.write("It is ", "three o'clock. ", "Anything else?")
    assert call.synthesize() == 2
    call.play(0)
    assert call.states()[-1] == "speaking"
    call.pass_ms(2_000)
    call.play(2_000, "finished")
    (said,) = call.events(ev.AgentSaid)
    assert (said.text, said.unheard, said.interrupted) == ("It is three o'clock. Anything else?", "", False)
    (turn,) = call.events(ev.TurnCompleted)
    assert (turn.number, turn.reason) == (1, "completed")
    latency = turn.latency
    assert latency.end_of_turn == 256 + 50
    assert latency.stt_final == 256 + 150
    assert latency.llm_first_token == latency.stt_final + 30
    assert latency.first_sentence is not None
    assert latency.llm_first_token < latency.first_sentence <= (latency.tts_first_audio or 0)
    assert latency.first_audio_heard is not None
    assert call.states() == ["connecting", "listening", "user_speaking", "thinking", "speaking", "listening"]


def test_the_first_sentence_is_spoken_while_the_second_is_still_written() -> None:
    call = Conversation()
    call.speak("Tell me about tea.")
    effect = call.write("Tea is a drink. ", "It comes ", done=False)
    ((_, piece),) = call.effects(out.Synthesize)
    assert piece.text == "Tea is a drink."
    call.take(inputs.TextDelta(effect, "from leaves."))
    call.take(inputs.Completed(effect=effect))
    assert call.synthesize() == 2
    assert [piece.text for _, piece in call.effects(out.Synthesize)] == ["Tea is a drink.", "It comes from leaves."]


def test_a_pause_within_a_sentence_does_not_end_the_turn() -> None:
    call = Conversation()
    call.take(inputs.VoiceStarted(0))
    call.pass_ms(900)
    call.take(inputs.VoiceStopped(900, 256))
    first = call.last_effect(out.Transcribe)[0]
    call.take(inputs.TurnJudged(call.last_effect(out.JudgeTurn)[0], 0.02))
    call.pass_ms(500)
    call.take(inputs.VoiceStarted(1_600))
    assert first in call.cancelled()
    call.pass_ms(900)
    call.take(inputs.VoiceStopped(2_500, 256))
    effect, last = call.last_effect(out.Transcribe)
    assert (last.from_ms, last.to_ms) == (0, 2_700)
    call.take(inputs.TurnJudged(call.last_effect(out.JudgeTurn)[0], 0.97))
    call.take(inputs.Transcribed(effect=effect, text="Set a timer for, um, ten minutes."))
    assert len(call.events(ev.UserSaid)) == 1


def test_long_silence_ends_the_turn_whatever_the_turn_model_thinks() -> None:
    call = Conversation()
    call.take(inputs.VoiceStarted(0))
    call.pass_ms(900)
    call.take(inputs.VoiceStopped(900, 256))
    call.take(inputs.TurnJudged(call.last_effect(out.JudgeTurn)[0], 0.02))
    call.take(inputs.Transcribed(effect=call.last_effect(out.Transcribe)[0], text="And then"))
    call.pass_ms(1_600 - 256 - 36 - 1)
    assert call.events(ev.UserSaid) == []
    call.pass_ms(1)
    assert [event.text for event in call.events(ev.UserSaid)] == ["And then"]


def test_without_a_turn_model_a_shorter_silence_decides_and_the_failure_is_logged() -> None:
    call = Conversation()
    call.take(inputs.VoiceStarted(0))
    call.pass_ms(900)
    call.take(inputs.VoiceStopped(900, 256))
    judge = call.last_effect(out.JudgeTurn)[0]
    call.take(inputs.EffectFailed(effect=judge, error=ev.Failure(code="UNAVAILABLE", message="no such model")))
    call.take(inputs.Transcribed(effect=call.last_effect(out.Transcribe)[0], text="Hello"))
    call.pass_ms(700)
    assert [event.text for event in call.events(ev.UserSaid)] == ["Hello"]
    assert [event.part for event in call.events(ev.ProviderFailed)] == ["turn"]


def test_letting_go_of_the_microphone_ends_the_turn_at_once() -> None:
    call = Conversation()
    call.take(inputs.VoiceStarted(0))
    call.pass_ms(800)
    call.log(gateway.AudioEnded())
    assert call.effects(out.JudgeTurn) == []
    call.take(inputs.Transcribed(effect=call.last_effect(out.Transcribe)[0], text="Stop the timer"))
    assert [event.text for event in call.events(ev.UserSaid)] == ["Stop the timer"]


def test_partial_transcripts_follow_long_speech_one_at_a_time() -> None:
    call = Conversation()
    call.take(inputs.VoiceStarted(0))
    call.pass_ms(700)
    effect, partial = call.last_effect(out.Transcribe)
    assert partial.to_ms == out.AUDIO_END
    call.pass_ms(2_000)
    assert len(call.effects(out.Transcribe)) == 1
    call.take(inputs.Transcribed(effect=effect, text="I would like"))
    assert call.partials("user") == ["I would like"]
    call.pass_ms(700)
    assert len(call.effects(out.Transcribe)) == 2
    assert call.events(ev.UserSaid) == []


def test_the_greeting_is_said_once_and_belongs_to_no_turn() -> None:
    call = Conversation(greeting="Hello there.")
    call.synthesize()
    call.play(1_000, "finished")
    assert [(event.text, event.turn) for event in call.events(ev.AgentSaid)] == [("Hello there.", 0)]
    assert call.events(ev.TurnCompleted) == []
    call.speak("Hi")
    assert len(call.effects(out.Synthesize)) == 1


def test_typed_text_is_a_turn_too() -> None:
    call = Conversation()
    call.log(gateway.TextReceived(text="What is two plus two?"))
    call.write("Four.")
    call.synthesize()
    call.play(900, "finished")
    assert [(event.text, event.source) for event in call.events(ev.UserSaid)] == [("What is two plus two?", "text")]
    assert call.events(ev.TurnCompleted)[0].reason == "completed"


def test_a_client_that_reports_nothing_is_taken_to_play_in_real_time() -> None:
    call = Conversation(protocol="vox")
    call.speak("Hello?")
    call.write("Hello!")
    call.synthesize(ms_each=1_000)
    assert call.states()[-1] == "speaking"
    call.pass_ms(1_249)
    assert call.events(ev.TurnCompleted) == []
    call.pass_ms(1)
    assert [event.reason for event in call.events(ev.TurnCompleted)] == ["completed"]


def test_a_client_that_has_reported_and_ceases_to_is_waited_for_and_then_not() -> None:
    call = Conversation()
    call.speak("Hello?")
    call.write("Hello!")
    call.synthesize(ms_each=1_000)
    call.pass_ms(100)
    call.play(100)
    call.pass_ms(3_899)
    assert call.events(ev.TurnCompleted) == []
    call.pass_ms(1)
    assert [event.reason for event in call.events(ev.TurnCompleted)] == ["completed"]


def test_a_turn_of_a_client_that_never_reports_is_over_when_its_sound_is() -> None:
    call = Conversation()
    call.speak("Hello?")
    call.write("Hello!")
    call.synthesize(ms_each=1_000)
    call.pass_ms(1_249)
    assert call.events(ev.TurnCompleted) == []
    call.pass_ms(1)
    assert [event.reason for event in call.events(ev.TurnCompleted)] == ["completed"]


def test_a_mode_without_its_provider_is_refused_with_a_reason() -> None:
    call = Conversation(mode="gemini")
    (ended,) = call.events(ev.SessionEnded)
    assert ended.reason == "refused"
    assert ended.error is not None
    assert ended.error.code == "PROVIDER_UNAVAILABLE"
    assert call.events(ev.SessionStarted) == []
    assert isinstance(call.outputs[-2], out.Close)


def test_echo_routes_the_microphone_back_and_asks_no_model() -> None:
    call = Conversation(mode="echo", greeting="Hello")
    assert [output.microphone for output in call.outputs if isinstance(output, out.Route)] == ["echo"]
    assert call.effects(out.Synthesize) == []


def test_a_client_that_is_gone_is_waited_for_and_may_come_back() -> None:
    call = Conversation()
    gone = gateway.ClientDisconnected(gateway="g", connection="c", reason="closed", last_seq=4)
    call.log(gone)
    call.pass_ms(9_999)
    call.log(gateway.ClientConnected(gateway="g", connection="d"))
    call.pass_ms(60_000)
    assert call.events(ev.SessionEnded) == []
    call.log(gone)
    call.pass_ms(60_000)
    assert call.events(ev.SessionEnded) == [], "the socket before it may go late"
    call.log(gateway.ClientDisconnected(gateway="g", connection="d", reason="closed", last_seq=4))
    call.pass_ms(10_000)
    assert [event.reason for event in call.events(ev.SessionEnded)] == ["client_gone"]


def test_a_session_nobody_uses_ends_after_the_idle_time() -> None:
    call = Conversation()
    call.pass_ms(599_999)
    assert call.events(ev.SessionEnded) == []
    call.pass_ms(1)
    (ended,) = call.events(ev.SessionEnded)
    assert (ended.reason, ended.duration_ms) == ("idle", 600_000)


def test_noise_without_words_does_not_keep_a_session_alive_for_ever() -> None:
    call = Conversation()
    call.speak("")
    call.pass_ms(600_000)
    assert [event.reason for event in call.events(ev.SessionEnded)] == ["idle"]


def test_ending_stops_everything_and_takes_no_more_inputs() -> None:
    call = Conversation()
    call.speak("Tell me a story.")
    effect = call.write("Once upon a time. ", done=False)
    call.log(gateway.SessionEndRequested(by="client", reason="client"))
    assert effect in call.cancelled()
    assert [event.reason for event in call.events(ev.SessionEnded)] == ["client"]
    before = len(call.outputs)
    call.take(inputs.TextDelta(effect, "there was"))
    assert len(call.outputs) == before


def test_a_finished_task_speaks_up_when_nobody_speaks() -> None:
    call = Conversation()
    call.speak("Tell me about rain.")
    call.write("Rain is water.")
    call.log(tool_events.TaskCompleted(task_id="t", function="set_timer", result={}, announce="Your tea timer is done."))
    call.synthesize()
    assert [piece.text for _, piece in call.effects(out.Synthesize)] == ["Rain is water."]
    call.play(1_000, "finished")
    assert [piece.text for _, piece in call.effects(out.Synthesize)][-1] == "Your tea timer is done."


def test_a_session_that_nobody_can_go_on_with_ends() -> None:
    call = Conversation()
    call.take(inputs.Orphaned("w"))
    assert [event.reason for event in call.events(ev.SessionEnded)] == ["worker_lost"]


def test_the_step_changes_no_state_it_was_given() -> None:
    call = Conversation()
    before = call.state
    encoded = msgspec.msgpack.encode(before)
    call.speak("Hello")
    assert call.state != before
    assert msgspec.msgpack.encode(before) == encoded


@pytest.mark.parametrize("team", ["cascade", "gemini"])
def test_a_text_that_is_sent_again_counts_once(team: str) -> None:
    call = Conversation() if team == "cascade" else Orders(team)

    def types(*names: str) -> list[str]:
        for name in names:
            call.log(gateway.TextReceived(text="Tell me.", text_id=name))
        appended = [one for _, one in call.appended] if isinstance(call, Orders) else call.events(ev.UserSaid)
        return [one.text_id for one in appended if isinstance(one, ev.UserSaid)]

    assert types("a", "a") == ["a"]
    assert types("", "") == ["a", "", ""], "a text without a name is a new one"
    types(*(f"b{number}" for number in range(step.TEXTS_KEPT)))
    assert types("a")[-1] == "a", "so many later ones are remembered, and no more"
