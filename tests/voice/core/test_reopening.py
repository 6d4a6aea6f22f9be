"""A pause within a sentence that was taken for its end: if the user continues before the answer is heard, both parts are one turn, and the
model is asked again with the whole text."""

from __future__ import annotations

import pytest

from tests.voice.conversation import Conversation
from tests.voice.orders.rules import rules_broken
from tests.voice.orders.simulation import Orders
from tests.voice.orders.things import have
from voxbridge.services.voice.core import inputs
from voxbridge.services.voice.core import outputs as out
from voxbridge.services.voice.core.state import Reply
from voxbridge.services.voice.core.turns import reopening
from voxbridge.shared.bus.moments import PartialTranscript
from voxbridge.shared.events import gateway
from voxbridge.shared.events import voice as ev

FIRST, SECOND = "And so, my fellow Americans,", "ask not what your country can do for you."


def paused(**options: bool | int) -> Conversation:
    """Return a conversation in which the user has said the first half, which was taken for all."""
    call = Conversation(**options)  # type: ignore[arg-type]
    call.speak(FIRST, probability=0.93)
    return call


def asked(call: Conversation) -> list[tuple[str, str]]:
    """Return the conversation of the model's last request."""
    return [(one.role, one.text) for one in call.last_effect(out.Complete)[1].messages[1:]]


def said(call: Conversation) -> list[tuple[str, int, bool]]:
    """Return the user's texts in the log."""
    return [(one.text, one.turn, one.continues) for one in call.events(ev.UserSaid)]


def ended(call: Conversation) -> list[tuple[int, str]]:
    """Return number and reason of each ended turn."""
    return [(one.number, one.reason) for one in call.events(ev.TurnCompleted)]


def answered(call: Conversation) -> None:
    """Have the model answer, and play the whole answer."""
    call.write("Well said.")
    call.synthesize()
    call.play(1_000, "finished")


def reply(call: Conversation) -> Reply:
    """Return the reply in preparation."""
    assert call.state.speech.reply is not None
    return call.state.speech.reply


def made_but_not_sent(call: Conversation) -> None:
    """Make an answer with audio, none of which has been sent."""
    call.write("I am all ears. ", "Tell me more.")
    effect = reply(call).pieces[0].effect or 0
    call.take(inputs.AudioMade(effect=effect, ms=900, done=True))


@pytest.mark.parametrize("far", ["asked", "writing", "made"])
def test_what_is_said_before_the_answer_is_heard_goes_on_with_the_turn(far: str) -> None:
    call = paused()
    if far == "writing":
        call.write("I am all ears. ", done=False)
    elif far == "made":
        made_but_not_sent(call)
    running = {reply(call).round.effect, *(piece.effect for piece in reply(call).pieces if not piece.done)} - {None}
    call.take(inputs.VoiceStarted(call.now_ms))
    assert running <= call.cancelled()
    assert out.Flush(1) in call.outputs
    assert call.state.speech.reply is None
    call.speak(SECOND)
    assert said(call) == [(FIRST, 1, False), (SECOND, 1, True)]
    assert asked(call) == [("user", f"{FIRST} {SECOND}")]
    assert [(one.role, one.text) for one in call.state.conversation.history] == [("user", f"{FIRST} {SECOND}")]
    answered(call)
    assert [(one.text, one.unheard, one.turn, one.generation) for one in call.events(ev.AgentSaid)] == [("Well said.", "", 1, 2)]
    assert ended(call) == [(1, "completed")]
    assert call.events(ev.TurnCompleted)[0].latency.end_of_turn == 256 + 50, "counted from the end of the second half"


def test_words_that_were_shown_of_the_withdrawn_answer_are_taken_back() -> None:
    call = paused()
    call.write("I am all ears. ", done=False)
    call.take(inputs.VoiceStarted(call.now_ms))
    moments = [one.moment for one in call.outputs if isinstance(one, out.Tell)]
    assert PartialTranscript("assistant", "", turn=1, generation=1) in moments


def test_tokens_of_the_withdrawn_answer_count_in_its_turn() -> None:
    call = paused()
    made_but_not_sent(call)
    call.speak(SECOND)
    answered(call)
    (turn,) = call.events(ev.TurnCompleted)
    assert (turn.usage.input_tokens, turn.usage.output_tokens) == (20, 3)


def test_once_audio_of_the_answer_was_sent_speech_is_a_barge_in() -> None:
    call = paused()
    made_but_not_sent(call)
    call.take(inputs.AudioSent(1))
    call.speak(SECOND)
    assert said(call) == [(FIRST, 1, False), (SECOND, 2, False)]
    answered(call)
    assert ended(call) == [(1, "interrupted"), (2, "completed")]


def test_once_words_that_cover_the_wait_were_sent_speech_is_a_barge_in() -> None:
    call = paused(filler=True)
    call.pass_ms(1_300)
    call.take(inputs.AudioMade(effect=call.last_effect(out.Synthesize)[0], ms=700, done=True))
    call.take(inputs.AudioSent(1))
    call.speak(SECOND)
    assert said(call) == [(FIRST, 1, False), (SECOND, 2, False)]


def test_a_turn_in_which_a_function_was_called_is_not_reopened_and_its_result_stays() -> None:
    call = paused()
    call.take(inputs.ToolRequested(effect=call.last_effect(out.Complete)[0], name="current_time", arguments={}))
    call.take(inputs.Completed(effect=call.last_effect(out.Complete)[0]))
    call.complete_tool({"time": "noon"})
    call.speak(SECOND)
    assert said(call) == [(FIRST, 1, False), (SECOND, 2, False)]
    assert [role for role, _ in asked(call)] == ["user", "assistant", "tool", "user"]
    assert "noon" in asked(call)[2][1]
    assert ended(call) == [(1, "interrupted")]


def test_a_typed_question_is_whole() -> None:
    call = Conversation()
    call.log(gateway.TextReceived(text="What is tea?"))
    call.speak("And coffee?")
    assert said(call) == [("What is tea?", 1, False), ("And coffee?", 2, False)]
    assert ended(call) == [(1, "interrupted")]


def test_what_is_typed_while_a_turn_is_reopened_is_a_turn_of_its_own() -> None:
    call = paused()
    made_but_not_sent(call)
    call.take(inputs.VoiceStarted(call.now_ms))
    call.log(gateway.TextReceived(text="Forget it."))
    assert said(call) == [(FIRST, 1, False), ("Forget it.", 2, False)]
    assert ended(call) == [(1, "interrupted")]
    assert [(one.text, one.unheard, one.turn) for one in call.events(ev.AgentSaid)] == [("", "I am all ears. Tell me more.", 1)]


def test_a_client_that_wants_silence_gets_it_also_where_no_words_come() -> None:
    call = paused()
    call.take(inputs.VoiceStarted(call.now_ms))
    call.log(gateway.InterruptRequested())
    assert ended(call) == [(1, "interrupted")]
    call.take(inputs.VoiceStopped(call.now_ms, 256))
    call.take(inputs.TurnJudged(call.last_effect(out.JudgeTurn)[0], 0.9))
    call.take(inputs.Transcribed(effect=call.last_effect(out.Transcribe)[0], text=""))
    assert call.state.speech.reply is None


@pytest.mark.parametrize("far", ["asked", "writing"])
def test_noise_lets_the_turn_be_answered_after_all(far: str) -> None:
    call = paused()
    if far == "writing":
        call.write("I am all ", done=False)
    call.speak("", ms=300)
    assert len(call.effects(out.Complete)) == 2
    answered(call)
    assert said(call) == [(FIRST, 1, False)]
    assert [(one.text, one.turn) for one in call.events(ev.AgentSaid)] == [("Well said.", 1)]
    assert ended(call) == [(1, "completed")]


def test_after_a_noise_an_answer_that_was_written_to_its_end_is_said() -> None:
    call = paused()
    made_but_not_sent(call)
    call.speak("", ms=300)
    assert len(call.effects(out.Complete)) == 1
    call.synthesize()
    call.play(2_000, "finished")
    assert [(one.text, one.turn, one.generation) for one in call.events(ev.AgentSaid)] == [("I am all ears. Tell me more.", 1, 2)]
    assert ended(call) == [(1, "completed")]


def test_a_second_half_that_cannot_be_transcribed_ends_the_turn_and_is_asked_for_again() -> None:
    call = paused(model_patience_s=0)
    call.take(inputs.VoiceStarted(call.now_ms))
    call.take(inputs.VoiceStopped(call.now_ms, 256))
    error = ev.Failure(code="PROVIDER_REFUSED", message="No.")
    call.take(inputs.EffectFailed(effect=call.last_effect(out.Transcribe)[0], error=error))
    assert ended(call) == [(1, "interrupted")]
    call.pass_ms(0)
    assert call.last_effect(out.Synthesize)[1].text.startswith("Sorry")


def test_a_turn_is_reopened_so_often_in_a_row_and_then_another_one_begins() -> None:
    call = paused(reopens=2)
    for number in range(3):
        call.speak(f"part {number},")
    assert said(call) == [(FIRST, 1, False), ("part 0,", 1, True), ("part 1,", 1, True), ("part 2,", 2, False)]
    assert asked(call) == [("user", f"{FIRST} part 0, part 1, part 2,")]
    answered(call)
    call.speak(FIRST)
    call.speak(SECOND)
    assert said(call)[-2:] == [(FIRST, 3, False), (SECOND, 3, True)], "counted anew in each turn"


def test_a_journal_from_before_turns_were_reopened_gives_what_it_gave() -> None:
    call = paused(reopens=inputs.Opened.__struct_defaults__[-1])
    call.speak(SECOND)
    assert said(call) == [(FIRST, 1, False), (SECOND, 2, False)]
    assert ended(call) == [(1, "interrupted")]


def test_a_worker_that_dies_while_a_turn_is_reopened_changes_nothing() -> None:
    orders = Orders("cascade", reopens=reopening.LIMIT)
    have(orders, [("time", 50), ("speaks", 1), ("pauses", 1)])
    for id in [id for id, one in orders.effects.items() if isinstance(one.effect, out.Transcribe | out.JudgeTurn)]:
        orders.take(inputs.TurnJudged(id, 0.93) if isinstance(orders.effects[id].effect, out.JudgeTurn) else _heard(id, FIRST))
    have(orders, [("speaks", 1), ("died", 2)])
    orders.rest()
    assert not rules_broken(orders)
    first, second = [one for _, one in orders.appended if isinstance(one, ev.UserSaid)]
    assert (first.text, first.turn, second.turn, second.continues) == (FIRST, 1, 1, True)
    assert [(one.number, one.reason) for _, one in orders.appended if isinstance(one, ev.TurnCompleted)] == [(1, "completed")]


def _heard(effect: int, text: str) -> inputs.Transcribed:
    return inputs.Transcribed(effect=effect, text=text)
