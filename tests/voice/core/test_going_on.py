"""Takeover of a session in each of its states, and waiting for a client that was lost."""

from __future__ import annotations

from typing import Any

import pytest

from tests.voice.conversation import Conversation
from voxbridge.services.voice.core import inputs, presence
from voxbridge.services.voice.core import outputs as out
from voxbridge.services.voice.core.turns import paused_reply
from voxbridge.shared.bus.moments import PartialTranscript
from voxbridge.shared.events import gateway
from voxbridge.shared.events import tools as tool_events
from voxbridge.shared.events import voice as ev

LOST = gateway.ClientDisconnected(gateway="g", connection="c", reason="closed", last_seq=1)


def carried_on(call: Conversation, *, left_ms: int | None = 0, gap_ms: int = 3_000, **found: Any) -> None:
    """Have another worker take the session over."""
    audio: dict[str, Any] = {"audio_from_ms": 0, "audio_to_ms": 60_000, **found}
    call.take(
        inputs.TakenOver(worker="voice-2", term=2, gap_ms=gap_ms, generation=call.state.counters.generation, left_ms=left_ms, **audio)
    )


def attached(**options: Any) -> Conversation:
    """Return a conversation whose client's socket is attached."""
    call = Conversation(**options)
    call.log(gateway.ClientConnected(gateway="g", connection="c"))
    return call


def answering(call: Conversation) -> Conversation:
    """Bring a call into the middle of a reply of three sentences of a second each."""
    call.speak("Tell me about tea.")
    call.write("Tea is a hot drink. ", "It comes from leaves. ", "People like it.")
    call.synthesize()
    call.play(0)
    return call


def test_a_session_that_listens_is_owned_again_and_says_so() -> None:
    call = Conversation()
    call.outputs.clear()
    carried_on(call)
    assert [type(event).__name__ for event in call.events(object)] == ["SessionOwned", "SessionRestored"]
    (restored,) = call.events(ev.SessionRestored)
    assert (restored.worker, restored.term, restored.how, restored.gap_ms, restored.lost) == ("voice-2", 2, "reseeded", 3_000, ())
    assert out.Route("detector") in call.outputs
    assert call.states() == ["listening"], "people who were told of the wait are told of its end"
    assert call.state.ownership.term == 2


def test_a_request_that_was_not_answered_is_asked_again_with_the_same_words() -> None:
    call = Conversation()
    call.speak("Tell me about tea.")
    first = call.last_effect(out.Complete)
    carried_on(call)
    second = call.last_effect(out.Complete)
    assert second[0] != first[0]
    assert second[1] == first[1]
    call.take(inputs.TextDelta(first[0], "Nobody wants this. "))
    call.write("Tea is hot.")
    call.synthesize()
    call.play(1_000, "finished")
    assert [event.text for event in call.events(ev.AgentSaid)] == ["Tea is hot."]


def test_a_model_that_writes_the_same_again_is_taken_up_where_it_stopped() -> None:
    call = Conversation()
    call.speak("Tell me about tea.")
    call.write("Tea is a hot drink. ", "It comes fr", done=False)
    carried_on(call)
    assert call.last_effect(out.Synthesize)[1].text == "Tea is a hot drink."
    call.write("Tea is a ", "hot drink. It comes ", "from leaves. ", "Good.")
    call.synthesize()
    call.play(9_000, "finished")
    assert [event.text for event in call.events(ev.AgentSaid)] == ["Tea is a hot drink. It comes from leaves. Good."]


def test_of_other_words_the_sentences_follow_that_had_not_been_begun() -> None:
    call = Conversation()
    call.speak("Tell me about tea.")
    call.write("Tea is a hot drink. ", "It comes fr", done=False)
    carried_on(call)
    call.write("A hot drink, that is tea. ", "Leaves are its source. ", "Good.")
    call.synthesize()
    call.play(9_000, "finished")
    assert [event.text for event in call.events(ev.AgentSaid)] == ["Tea is a hot drink. Leaves are its source. Good."]


def test_a_model_that_now_ends_earlier_leaves_what_was_written() -> None:
    call = Conversation()
    call.speak("Tell me about tea.")
    call.write("Tea is a hot drink. ", "It comes from leaves. ", done=False)
    carried_on(call)
    call.write("Tea is a hot drink. ")
    call.synthesize()
    call.play(9_000, "finished")
    assert [event.text for event in call.events(ev.AgentSaid)] == ["Tea is a hot drink. It comes from leaves."]


def test_a_reply_goes_on_with_the_sentence_that_was_cut_as_a_new_generation_of_the_same_turn() -> None:
    call = answering(Conversation())
    call.pass_ms(1_500)
    carried_on(call, left_ms=1_900)
    assert out.Flush(1) in call.outputs
    assert [event.by for event in call.events(ev.GenerationCancelled)] == ["takeover"]
    call.play(1_500, "flushed", generation=1)
    call.synthesize()
    assert [one.text for _, one in call.effects(out.Synthesize)][-2:] == ["It comes from leaves.", "People like it."]
    assert {one.generation for _, one in call.effects(out.Synthesize)[-2:]} == {2}
    call.play(2_000, "finished")
    first, second = call.events(ev.AgentSaid)
    assert (first.text, first.interrupted, first.played_ms) == ("Tea is a hot drink. It comes", True, 1_500)
    assert (second.text, second.interrupted) == ("It comes from leaves. People like it.", False)
    assert [event.number for event in call.events(ev.TurnCompleted)] == [1]
    assert call.state.conversation.history[-1].text == "Tea is a hot drink. It comes from leaves. People like it."


def test_a_client_that_does_not_tell_is_taken_to_have_heard_what_left_and_no_more() -> None:
    call = answering(Conversation())
    call.play(1_000)
    call.pass_ms(3_000)
    carried_on(call, left_ms=1_400)
    call.pass_ms(paused_reply.REPORT_WAIT_MS)
    (said,) = call.events(ev.AgentSaid)
    assert said.played_ms == 1_400


def test_a_reply_that_was_heard_to_its_end_is_not_said_again() -> None:
    call = answering(Conversation())
    carried_on(call, left_ms=3_000)
    call.play(3_000, "finished", generation=1)
    assert [(event.text, event.interrupted) for event in call.events(ev.AgentSaid)] == [
        ("Tea is a hot drink. It comes from leaves. People like it.", False)
    ]
    assert [event.reason for event in call.events(ev.TurnCompleted)] == ["completed"]
    assert call.state.speech.reply is None


def test_speech_in_the_gap_interrupts_what_would_be_said_again() -> None:
    call = answering(Conversation())
    call.pass_ms(1_500)
    carried_on(call, left_ms=1_900)
    call.take(inputs.VoiceStarted(9_000))
    call.play(1_500, "flushed", generation=1)
    assert call.state.speech.reply is None
    assert [event.by for event in call.events(ev.GenerationCancelled)] == ["takeover", "barge_in"]
    assert " ".join(event.text for event in call.events(ev.AgentSaid)).count("Tea is a hot drink.") == 1
    call.take(inputs.VoiceStopped(9_300, 256))
    call.take(inputs.TurnJudged(call.last_effect(out.JudgeTurn)[0], 0.9))
    call.take(inputs.Transcribed(effect=call.last_effect(out.Transcribe)[0], text="Thanks."))
    assert [message.text for message in call.last_effect(out.Complete)[1].messages][-2].startswith("Tea is a hot drink.")


def test_a_reply_that_was_being_cut_is_settled_by_when_its_worker_was_alive() -> None:
    call = answering(Conversation())
    call.pass_ms(1_000)
    call.take(inputs.VoiceStarted(9_000))
    call.pass_ms(100)
    call.now_ms += 3_000
    carried_on(call, gap_ms=3_000)
    (said,) = call.events(ev.AgentSaid)
    assert said.played_ms == 1_100


def test_open_calls_keep_waiting_and_are_not_made_again() -> None:
    call = Conversation()
    call.speak("What time is it?")
    effect, _ = call.last_effect(out.Complete)
    call.take(inputs.ToolRequested(effect=effect, name="current_time", arguments={}))
    call.take(inputs.Completed(effect=effect))
    carried_on(call)
    assert len(call.effects(out.Complete)) == 1
    call.complete_tool({"time": "noon"})
    assert len(call.effects(out.Complete)) == 2
    assert len(call.events(ev.ToolCalled)) == 1


def test_a_completion_that_had_called_is_not_repeated() -> None:
    call = Conversation()
    call.speak("What time is it?")
    effect, _ = call.last_effect(out.Complete)
    call.take(inputs.ToolRequested(effect=effect, name="current_time", arguments={}))
    carried_on(call)
    assert len(call.effects(out.Complete)) == 1, "asked again it would call again"
    call.complete_tool({"time": "noon"})
    assert [message.role for message in call.last_effect(out.Complete)[1].messages][-2:] == ["assistant", "tool"]


def test_what_was_being_understood_is_understood_again() -> None:
    call = Conversation()
    call.take(inputs.VoiceStarted(1_000))
    call.take(inputs.VoiceStopped(2_000, 256))
    before = call.last_effect(out.Transcribe)
    carried_on(call)
    after = call.last_effect(out.Transcribe)
    assert after[1] == before[1]
    assert after[0] != before[0]
    call.take(inputs.TurnJudged(call.last_effect(out.JudgeTurn)[0], 0.9))
    call.take(inputs.Transcribed(effect=after[0], text="Hello."))
    assert [event.text for event in call.events(ev.UserSaid)] == ["Hello."]


def test_a_beginning_that_the_bus_has_forgotten_is_named_as_lost() -> None:
    call = Conversation()
    call.take(inputs.VoiceStarted(1_000))
    carried_on(call, audio_from_ms=3_500, audio_to_ms=13_500, lost_ms=700)
    (restored,) = call.events(ev.SessionRestored)
    assert restored.lost == ("2.5 s of what was being said were lost.", "0.7 s of the microphone's audio were lost.")
    assert call.state.utterance is not None


@pytest.mark.parametrize("kept", [{"audio_from_ms": None, "audio_to_ms": None}, {"audio_from_ms": 9_000, "audio_to_ms": 19_000}])
def test_speech_of_which_nothing_is_left_is_asked_for_again(kept: dict[str, Any]) -> None:
    call = Conversation()
    call.take(inputs.VoiceStarted(1_000))
    call.take(inputs.VoiceStopped(2_000, 256))
    carried_on(call, **kept)
    (restored,) = call.events(ev.SessionRestored)
    assert restored.lost == ("What was being said was lost.",)
    assert call.state.utterance is None
    assert call.last_effect(out.Synthesize)[1].text.startswith("Sorry, I could not make out")


def test_notices_that_wait_are_said_once() -> None:
    call = answering(Conversation())
    call.log(tool_events.TaskCompleted(task_id="t", function="set_timer", result={}, announce="Your tea timer is done."))
    carried_on(call, left_ms=3_000)
    call.play(3_000, "finished", generation=1)
    carried_on(call, left_ms=0)
    call.synthesize()
    call.play(1_000, "finished")
    assert [event.text for event in call.events(ev.AgentSaid)][1:] == ["Your tea timer is done."]


def test_an_echo_goes_on_and_says_what_it_did_not_send_back() -> None:
    call = Conversation(mode="echo")
    carried_on(call)
    (restored,) = call.events(ev.SessionRestored)
    assert restored.lost == ("What was to be echoed meanwhile was not.",)
    assert call.outputs[-1] == out.Tell(call.outputs[-1].moment)
    assert out.Route("echo") in call.outputs


def test_a_session_that_is_given_up_says_so_and_stays_open() -> None:
    call = Conversation()
    call.take(inputs.Released("voice-1", 1))
    assert call.events(ev.SessionReleased) == [ev.SessionReleased(worker="voice-1", term=1, reason="drain")]
    assert call.outputs[-1] == out.Close()
    assert call.state.phase == "open"
    carried_on(call, gap_ms=20)
    assert call.events(ev.SessionEnded) == []


def test_to_a_client_that_is_away_nothing_is_said_until_it_is_back() -> None:
    call = answering(attached(resume_window_s=120))
    call.play(1_000)
    call.pass_ms(500)
    call.log(LOST)
    assert [event.by for event in call.events(ev.GenerationCancelled)] == ["disconnect"]
    spoken = len(call.effects(out.Synthesize))
    call.pass_ms(60_000)
    assert len(call.effects(out.Synthesize)) == spoken
    call.log(gateway.ClientConnected(gateway="h", connection="d", resumed=True))
    call.play(1_500, "flushed", generation=1)
    assert call.last_effect(out.Synthesize)[1].text == "It comes from leaves."
    call.synthesize()
    call.play(2_000, "finished")
    assert [event.reason for event in call.events(ev.TurnCompleted)] == ["completed"]


def test_of_a_lost_client_only_what_it_told_counts_as_heard() -> None:
    call = answering(attached())
    call.play(1_000)
    call.pass_ms(900)
    call.log(LOST)
    call.log(gateway.ClientConnected(gateway="h", connection="d", resumed=True))
    call.pass_ms(paused_reply.REPORT_WAIT_MS)
    (said,) = call.events(ev.AgentSaid)
    assert said.text == "Tea is a hot drink."


def test_an_answer_is_prepared_while_the_client_is_away_and_a_call_goes_on() -> None:
    call = attached(resume_window_s=120)
    call.speak("What time is it?")
    call.log(LOST)
    effect, _ = call.last_effect(out.Complete)
    call.take(inputs.ToolRequested(effect=effect, name="current_time", arguments={}))
    call.take(inputs.Completed(effect=effect))
    call.complete_tool({"time": "noon"})
    call.write("It is noon.")
    call.pass_ms(90_000)
    assert call.effects(out.Synthesize) == []
    assert call.events(ev.ProviderFailed) == []
    call.log(gateway.ClientConnected(gateway="g", connection="d", resumed=True))
    assert call.last_effect(out.Synthesize)[1].text == "It is noon."


@pytest.mark.parametrize(("protocol", "window_ms"), [("voxbridge.v1", 120_000), ("vox", presence.GRACE_MS)])
def test_a_lost_client_is_waited_for_as_long_as_it_can_resume(protocol: str, window_ms: int) -> None:
    call = Conversation(protocol=protocol, resume_window_s=120)
    call.log(gateway.ClientConnected(gateway="g", connection="c"))
    call.log(LOST)
    call.pass_ms(window_ms - 1)
    assert call.events(ev.SessionEnded) == []
    call.pass_ms(1)
    assert [event.reason for event in call.events(ev.SessionEnded)] == ["client_gone"]


def test_a_dead_gateway_is_a_lost_client_unless_it_proves_to_live() -> None:
    call = answering(attached(resume_window_s=120))
    call.take(inputs.GatewayLost("another"))
    assert call.events(ev.GenerationCancelled) == []
    call.take(inputs.GatewayLost("g"))
    assert [event.by for event in call.events(ev.GenerationCancelled)] == ["disconnect"]
    assert call.state.client.away_since
    call.play(1_000, "flushed", generation=1)
    assert not call.state.client.away_since
    assert call.last_effect(out.Synthesize)[1].text == "It comes from leaves."
    call.pass_ms(20_000)
    assert call.events(ev.SessionEnded) == []


def test_a_successor_waits_for_a_lost_client_as_long_as_is_left_and_ten_seconds_at_least() -> None:
    call = attached(resume_window_s=30)
    call.log(LOST)
    call.pass_ms(5_000)
    carried_on(call)
    assert call.timer_left("grace") == 25_000
    call.pass_ms(24_000)
    carried_on(call)
    assert call.timer_left("grace") == presence.GRACE_MS


def test_a_reply_whose_end_came_by_the_clock_while_nobody_told_is_finished_for_a_client_that_resumes() -> None:
    call = answering(attached())
    call.play(1_000)
    call.pass_ms(30_000)
    assert [event.text for event in call.events(ev.AgentSaid)] == ["Tea is a hot drink. It comes from leaves. People like it."]
    call.log(gateway.ClientConnected(gateway="h", connection="d", resumed=True))
    assert call.last_effect(out.Synthesize)[1].text == "It comes from leaves."


def test_every_kind_of_effect_says_what_a_successor_does() -> None:
    for kind in (out.Transcribe, out.JudgeTurn, out.Complete, out.Synthesize):
        assert "A successor repeats" in (kind.__doc__ or "")
    assert "A successor resumes" in (out.SetTimer.__doc__ or "")


def test_the_words_of_a_generation_that_goes_on_are_shown_though_nobody_knows_that_the_first_was_sent() -> None:
    call = Conversation()
    call.speak("Tell me about tea.")
    call.write("Tea is a hot drink. ")
    voice, _ = call.last_effect(out.Synthesize)
    call.take(inputs.AudioMade(effect=voice, ms=900, done=False))
    carried_on(call, left_ms=300)  # frames were sent in the last moments of the worker, which the journal does not have
    call.outputs.clear()
    call.pass_ms(300)
    call.synthesize()
    shown = [one.moment for one in call.outputs if isinstance(one, out.Tell) and isinstance(one.moment, PartialTranscript)]
    assert [(one.generation, one.text) for one in shown] == [(call.state.counters.generation, "Tea is a hot drink.")]
