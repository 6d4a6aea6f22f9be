"""Barge-in and similar interruptions: the old reply is not heard again, and the history holds only heard words."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.voice.conversation import Conversation
from voxbridge.services.voice.core import inputs
from voxbridge.services.voice.core import outputs as out
from voxbridge.services.voice.core.state import Piece
from voxbridge.services.voice.core.turns import playout
from voxbridge.shared.events import gateway
from voxbridge.shared.events import voice as ev


def speaking(**options: str) -> Conversation:
    """Return a conversation in the middle of a reply of two pieces of a second each."""
    call = Conversation(**options)  # type: ignore[arg-type]
    call.speak("Tell me about tea.")
    call.write("Tea is a hot drink. ", "It comes from leaves.")
    call.synthesize()
    call.play(0)
    return call


def test_speech_flushes_the_reply_at_once() -> None:
    call = speaking()
    call.pass_ms(500)
    outputs = call.take(inputs.VoiceStarted(9_000))
    assert out.Flush(1) in outputs
    assert call.states()[-1] == "user_speaking"
    assert [event.by for event in call.events(ev.GenerationCancelled)] == ["barge_in"]


def test_history_keeps_the_words_that_were_heard() -> None:
    call = speaking()
    call.pass_ms(1_600)
    call.take(inputs.VoiceStarted(9_000))
    call.play(1_500, "flushed", generation=1)
    (said,) = call.events(ev.AgentSaid)
    assert said.interrupted
    assert said.text == "Tea is a hot drink. It comes"
    assert said.unheard == "from leaves."
    call.pass_ms(800)
    call.take(inputs.VoiceStopped(9_800, 256))
    call.take(inputs.TurnJudged(call.last_effect(out.JudgeTurn)[0], 0.9))
    call.take(inputs.Transcribed(effect=call.last_effect(out.Transcribe)[0], text="And coffee?"))
    asked = call.last_effect(out.Complete)[1].messages
    assert [message.text for message in asked][-3:] == ["Tell me about tea.", "Tea is a hot drink. It comes", "And coffee?"]


def test_a_client_that_does_not_tell_is_settled_by_the_clock() -> None:
    call = speaking()
    call.pass_ms(1_000)
    call.take(inputs.VoiceStarted(9_000))
    call.pass_ms(400)
    (said,) = call.events(ev.AgentSaid)
    assert said.text.startswith("Tea is a hot drink.")
    assert "leaves" not in said.text


def test_effects_of_the_old_reply_change_nothing_after_a_barge_in() -> None:
    call = Conversation()
    call.speak("Tell me about tea.")
    effect = call.write("Tea is a hot drink. ", done=False)
    piece = call.last_effect(out.Synthesize)[0]
    call.take(inputs.AudioMade(effect=piece, ms=100, done=False))
    call.take(inputs.AudioSent(1))
    call.take(inputs.VoiceStarted(9_000))
    assert {effect, piece} <= call.cancelled()
    before = len(call.effects(out.Synthesize))
    call.take(inputs.TextDelta(effect, "It comes from leaves. "))
    call.take(inputs.AudioMade(effect=piece, ms=900, done=True))
    call.take(inputs.Completed(effect=effect))
    assert len(call.effects(out.Synthesize)) == before
    assert call.state.speech.reply is None


def test_noise_that_cut_the_agent_off_lets_it_go_on_with_what_was_not_heard() -> None:
    call = speaking()
    call.pass_ms(1_000)
    call.take(inputs.VoiceStarted(9_000))
    call.play(1_000, "flushed", generation=1)
    call.take(inputs.VoiceStopped(9_300, 256))
    call.take(inputs.TurnJudged(call.last_effect(out.JudgeTurn)[0], 0.9))
    call.take(inputs.Transcribed(effect=call.last_effect(out.Transcribe)[0], text=""))
    assert call.last_effect(out.Synthesize)[1].text == "It comes from leaves."
    assert call.last_effect(out.Synthesize)[1].generation == 2


def test_noise_before_the_first_word_lets_the_agent_answer_after_all() -> None:
    call = Conversation()
    call.speak("Tell me about tea.")
    call.take(inputs.VoiceStarted(9_000))
    call.take(inputs.VoiceStopped(9_200, 256))
    call.take(inputs.TurnJudged(call.last_effect(out.JudgeTurn)[0], 0.9))
    call.take(inputs.Transcribed(effect=call.last_effect(out.Transcribe)[0], text=" "))
    assert len(call.effects(out.Complete)) == 2
    assert call.state.speech.reply is not None


def test_the_user_may_say_the_same_words_twice() -> None:
    call = Conversation()
    for _ in range(2):
        call.speak("Yes.")
        call.write("Good.")
        call.synthesize()
        call.play(1_000, "finished")
    assert [event.text for event in call.events(ev.UserSaid)] == ["Yes.", "Yes."]


def test_typing_stops_the_agent_and_settles_what_was_heard_before_the_new_turn() -> None:
    call = speaking()
    call.pass_ms(1_000)
    call.log(gateway.TextReceived(text="Stop. What about coffee?"))
    kinds = [type(o.event).__name__ for o in call.outputs if hasattr(o, "event")]
    assert kinds.index("AgentSaid") < len(kinds) - 1 - kinds[::-1].index("UserSaid")
    assert call.flushed() == [1]


def test_the_client_may_ask_for_silence() -> None:
    call = speaking()
    call.log(gateway.InterruptRequested())
    assert call.flushed() == [1]
    call.play(200, "flushed", generation=1)
    assert [event.reason for event in call.events(ev.TurnCompleted)] == ["interrupted"]
    assert call.states()[-1] == "listening"


def test_a_late_report_of_an_old_generation_is_not_taken_for_the_new_one() -> None:
    call = speaking()
    call.take(inputs.VoiceStarted(9_000))
    call.play(300, "flushed", generation=1)
    call.take(inputs.VoiceStopped(9_900, 256))
    call.take(inputs.TurnJudged(call.last_effect(out.JudgeTurn)[0], 0.9))
    call.take(inputs.Transcribed(effect=call.last_effect(out.Transcribe)[0], text="Coffee?"))
    call.write("Coffee is bitter.")
    call.synthesize()
    call.play(2_000, "finished", generation=1)
    assert len(call.events(ev.TurnCompleted)) == 1


@given(
    pieces=st.lists(
        st.tuples(st.lists(st.text("abcdefg", min_size=1, max_size=9), min_size=1, max_size=12), st.integers(1, 5_000)), max_size=5
    ),
    played=st.integers(-10, 30_000),
)
def test_heard_and_unheard_are_all_the_words_in_order(pieces: list[tuple[list[str], int]], played: int) -> None:
    made = [Piece(text=" ".join(words), ms=ms, done=True) for words, ms in pieces]
    said, unheard = playout.split(made, played)
    assert (said.split() + unheard.split()) == [word for words, _ in pieces for word in words]
    if played >= sum(ms for _, ms in pieces):
        assert unheard == ""
    if played <= 0:
        assert said == ""


@given(first=st.integers(0, 4_000), more=st.integers(0, 4_000))
def test_more_playing_never_unhears_a_word(first: int, more: int) -> None:
    pieces = [Piece(text="one two three four five", ms=2_000, done=True), Piece(text="six seven eight", ms=1_500, done=True)]
    assert len(playout.split(pieces, first + more)[0]) >= len(playout.split(pieces, first)[0])


@pytest.mark.parametrize("played", [0, 1, 999, 1_000, 2_000])
def test_nothing_is_said_twice_in_the_log_of_one_reply(played: int) -> None:
    call = speaking()
    call.take(inputs.VoiceStarted(9_000))
    call.play(played, "flushed", generation=1)
    call.play(played, "flushed", generation=1)
    call.pass_ms(5_000)
    assert len(call.events(ev.AgentSaid)) == 1
