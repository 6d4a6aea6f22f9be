"""The limits of a session, and failures at an awkward moment."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from tests.voice.conversation import SID, START_US, Conversation
from voxbridge.services.voice.core import inputs, step
from voxbridge.services.voice.core import outputs as out
from voxbridge.services.voice.core.cascade.speaking import REPLY_LIMIT
from voxbridge.services.voice.core.prompt.memory import HISTORY_KEPT, HISTORY_LIMIT, RESULT_LIMIT
from voxbridge.services.voice.core.turns.rounds import CALLS_LIMIT, REFUSALS_LIMIT
from voxbridge.services.voice.core.turns.turns import NOTICES_LIMIT
from voxbridge.shared.agents.model import Agent, AgentTeam
from voxbridge.shared.events import gateway, tools
from voxbridge.shared.events import voice as ev

DOWN = ev.Failure(code="PROVIDER_UNAVAILABLE", message="down", retryable=False)


def chat(call: Conversation, text: str, answer: str) -> None:
    call.log(gateway.TextReceived(text=text))
    call.write(answer)
    call.synthesize()
    call.play(100_000, "finished")


def test_the_history_stays_bounded_and_begins_with_a_user() -> None:
    call = Conversation()
    longest = 0
    for turn in range(HISTORY_LIMIT):
        chat(call, f"Question {turn}", f"Answer {turn}.")
        longest = max(longest, len(call.state.conversation.history))
        assert call.state.conversation.history[0].role == "user"
        assert call.state.conversation.history[-1].text == f"Answer {turn}."
    assert HISTORY_KEPT < longest <= HISTORY_LIMIT
    assert len(call.events(ev.TurnCompleted)) == HISTORY_LIMIT


def test_a_model_that_writes_for_ever_is_stopped_at_the_limit() -> None:
    call = Conversation()
    call.log(gateway.TextReceived(text="Go on for ever"))
    effect = call.write("".join(f"{word:04} " for word in range(REPLY_LIMIT // 5 - 1)), done=False)
    assert effect not in call.cancelled()
    call.write("".join(f"{word:05} " for word in range(20)), done=False)
    assert effect in call.cancelled()
    call.take(inputs.TextDelta(effect, "and again"))
    call.synthesize()
    call.play(10_000_000, "finished")
    (said,) = call.events(ev.AgentSaid)
    assert len(said.text) <= REPLY_LIMIT
    assert len(said.text) > REPLY_LIMIT - 10
    assert [one.reason for one in call.events(ev.TurnCompleted)] == ["completed"]


def test_one_endless_delta_is_cut_at_the_limit() -> None:
    call = Conversation()
    call.log(gateway.TextReceived(text="Go on"))
    call.write("x" * (3 * REPLY_LIMIT), done=False)
    call.synthesize()
    call.play(10_000_000, "finished")
    assert sum(len(one.text.replace(" ", "")) for one in call.events(ev.AgentSaid)) == REPLY_LIMIT


def test_the_model_is_given_the_beginning_of_a_large_result_and_told_so() -> None:
    call = Conversation()
    call.log(gateway.TextReceived(text="What time is it?"))
    effect = call.last_effect(out.Complete)[0]
    call.take(inputs.ToolRequested(effect=effect, name="current_time", arguments={}))
    call.write()
    whole = '{"text":"' + "x" * RESULT_LIMIT * 2 + '"}'
    call.complete_tool({"text": "x" * RESULT_LIMIT * 2})
    told = call.last_effect(out.Complete)[1].messages[-1].text
    assert told == whole[:RESULT_LIMIT] + f"… (the first {RESULT_LIMIT:,} of {len(whole):,} characters)"


def test_the_model_is_given_all_of_a_result_as_long_as_the_limit() -> None:
    call = Conversation()
    call.log(gateway.TextReceived(text="What time is it?"))
    effect = call.last_effect(out.Complete)[0]
    call.take(inputs.ToolRequested(effect=effect, name="current_time", arguments={}))
    call.write()
    text = "x" * (RESULT_LIMIT - len('{"text":""}'))
    call.complete_tool({"text": text})
    assert call.last_effect(out.Complete)[1].messages[-1].text == f'{{"text":"{text}"}}'


def test_of_too_many_calls_in_a_round_the_first_are_made_and_the_model_is_told_which_were_not() -> None:
    call = Conversation()
    call.log(gateway.TextReceived(text="Everything"))
    effect = call.last_effect(out.Complete)[0]
    for _ in range(REFUSALS_LIMIT + 3):
        call.take(inputs.ToolRequested(effect=effect, name="current_time", arguments={}))
    assert len(call.events(ev.ToolCalled)) == CALLS_LIMIT
    call.take(inputs.Completed(effect=effect))
    for made in call.events(ev.ToolCalled):
        call.log(tools.ToolCompleted(call_id=made.call_id, name=made.name, result={"text": "noon"}, ms=1))
    results = [message.text for message in call.last_effect(out.Complete)[1].messages if message.role == "tool"]
    assert len(results) == REFUSALS_LIMIT
    assert sum("noon" in text for text in results) == CALLS_LIMIT
    assert all("OVERLOADED" in text for text in results if "noon" not in text)


def test_of_too_many_notices_the_first_are_said() -> None:
    call = Conversation()
    call.take(inputs.VoiceStarted(0))
    for number in range(NOTICES_LIMIT + 5):
        call.log(tools.TaskCompleted(task_id=f"t{number}", function="timer", result={}, announce=f"Timer {number}."))
    assert len(call.state.pending.notices) == NOTICES_LIMIT


def test_the_voice_may_be_silent_while_there_is_audio_to_play() -> None:
    call = Conversation()
    call.log(gateway.TextReceived(text="Tell me a story"))
    call.write("Once upon a time. There was more.")
    effect, _ = call.last_effect(out.Synthesize)
    call.take(inputs.AudioMade(effect=effect, ms=100, done=False))
    call.take(inputs.AudioSent(1))
    call.take(inputs.AudioMade(effect=effect, ms=50_000, done=True))
    call.pass_ms(79_999)
    assert call.events(ev.ProviderFailed) == []
    call.pass_ms(1)
    assert [one.part for one in call.events(ev.ProviderFailed)] == ["tts"]


def test_a_model_that_fails_after_its_first_words_says_so_after_them() -> None:
    call = Conversation()
    call.log(gateway.TextReceived(text="Hello"))
    effect = call.write("First I want to say this. ", "And then", done=False)
    call.take(inputs.EffectFailed(effect=effect, error=DOWN))
    assert call.flushed() == []
    call.synthesize()
    call.synthesize()
    call.play(10_000, "finished")
    (said,) = call.events(ev.AgentSaid)
    assert said.text == "First I want to say this. Sorry, I can't answer right now. Please try again."
    assert [one.reason for one in call.events(ev.TurnCompleted)] == ["failed"]


def test_a_model_that_fails_after_a_call_leaves_no_call_open_and_says_so() -> None:
    call = Conversation()
    call.log(gateway.TextReceived(text="Hello"))
    effect = call.write("One moment. ", done=False)
    call.take(inputs.ToolRequested(effect=effect, name="current_time", arguments={}))
    call.take(inputs.EffectFailed(effect=effect, error=DOWN))
    assert [one.reason for one in call.events(ev.ToolCancelled)] == ["failure"]
    call.complete_tool({"late": True})
    assert [one.how for one in call.events(ev.ToolDelivered)] == ["dropped"]
    call.synthesize()
    call.play(10_000, "finished")
    roles = [message.role for message in call.state.conversation.history]
    assert roles == ["user", "assistant", "tool"]
    assert "Sorry" in call.events(ev.AgentSaid)[-1].text


def test_a_failed_transcription_does_not_stop_the_answer_to_what_was_typed_meanwhile() -> None:
    call = Conversation()
    call.take(inputs.VoiceStarted(0))
    call.take(inputs.VoiceStopped(900, 256))
    stt = call.last_effect(out.Transcribe)[0]
    call.log(gateway.TextReceived(text="Hello"))
    call.take(inputs.EffectFailed(effect=stt, error=DOWN))
    call.write("Hello to you.")
    call.synthesize()
    call.play(10_000, "finished")
    assert [one.text for one in call.events(ev.AgentSaid)] == ["Hello to you."]
    assert [(one.number, one.reason) for one in call.events(ev.TurnCompleted)] == [(1, "completed")]


def test_a_session_that_cannot_be_opened_is_owned_and_refused() -> None:
    state = step.initial(SID)
    state, outputs = step.step(state, inputs.Refused(worker="w", term=3, error=DOWN), START_US)
    appended: list[Any] = [one.event for one in outputs if hasattr(one, "event")]
    assert appended == [ev.SessionOwned(worker="w", term=3), ev.SessionEnded(reason="refused", error=DOWN)]
    assert state.phase == "ended"


@pytest.mark.parametrize("mode", ["local", "echo"])
def test_a_session_that_fails_while_it_opens_ends_with_the_reason(mode: gateway.Mode) -> None:
    call = Conversation(mode=mode)
    call.pass_ms(20)
    call.take(inputs.Refused(worker="voice-1", term=1, error=DOWN))
    assert len(call.events(ev.SessionOwned)) == 1
    assert call.events(ev.SessionEnded) == [ev.SessionEnded(reason="refused", duration_ms=20, error=DOWN)]


def test_typing_into_an_echo_asks_no_model() -> None:
    call = Conversation(mode="echo")
    call.log(gateway.TextReceived(text="Hello?"))
    assert [one for one in call.outputs if isinstance(one, out.StartEffect)] == []
    assert call.state.speech.reply is None


def test_every_input_travels_through_the_journal_unchanged() -> None:
    call = Conversation(greeting="Hi.")
    chat(call, "Hello", "Hello to you.")
    call.speak("And again")
    call.take(inputs.Refused(worker="w", term=1, error=DOWN))
    decoder: msgspec.msgpack.Decoder[Any] = msgspec.msgpack.Decoder(inputs.Input)
    taken = [one for _, one in call.inputs if not hasattr(one, "recorded")]
    assert {type(one) for one in taken} > {inputs.Opened, inputs.Refused, inputs.TurnJudged, inputs.AudioMade}
    assert [decoder.decode(msgspec.msgpack.encode(one)) for one in taken] == taken


def test_a_team_keeps_the_name_that_journals_have_for_it() -> None:
    call = Conversation(team=AgentTeam(agents=(Agent(name="desk"),)))
    opened = next(one for _, one in call.inputs if isinstance(one, inputs.Opened))
    written = msgspec.msgpack.decode(msgspec.msgpack.encode(opened))
    assert [agent["name"] for agent in written["cast"]["agents"]] == ["desk"]
    assert msgspec.convert(written, inputs.Opened).team == opened.team
