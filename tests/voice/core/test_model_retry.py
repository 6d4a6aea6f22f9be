"""Models that are briefly unavailable: the core retries, and shows what it waits for."""

from __future__ import annotations

from typing import Any

import pytest

from tests.voice.conversation import Conversation
from voxbridge.services.voice.core import inputs
from voxbridge.services.voice.core import outputs as out
from voxbridge.services.voice.core.cascade import model_retry
from voxbridge.services.voice.core.turns import paused_reply
from voxbridge.shared.bus.moments import StateChanged
from voxbridge.shared.events import gateway
from voxbridge.shared.events import voice as ev

PATIENCE_MS = 8_000
AWAY = ev.Failure(code="PROVIDER_UNAVAILABLE", message="Connection refused.", retryable=True)


def fail(call: Conversation, kind: type[Any]) -> None:
    """Make the newest effect of a kind fail."""
    call.take(inputs.EffectFailed(effect=call.last_effect(kind)[0], error=AWAY))


def reasons(call: Conversation) -> list[tuple[str, str]]:
    """Return the published states that have a reason."""
    told = [o.moment for o in call.outputs if isinstance(o, out.Tell) and isinstance(o.moment, StateChanged)]
    return [(moment.state, moment.reason) for moment in told if moment.reason]


def heard(call: Conversation) -> None:
    """Synthesise and play the whole reply."""
    call.synthesize()
    call.play(20_000, "finished")


def test_words_that_could_not_be_transcribed_are_transcribed_when_the_model_is_back() -> None:
    call = Conversation()
    call.take(inputs.VoiceStarted(0))
    call.pass_ms(900)
    call.take(inputs.VoiceStopped(900, 256))
    asked = call.last_effect(out.Transcribe)[1]
    fail(call, out.JudgeTurn)
    fail(call, out.Transcribe)
    assert reasons(call) == [("thinking", "The speech recognition is not there. Trying again.")]
    call.pass_ms(model_retry.RETRY_MS)
    fail(call, out.Transcribe)
    call.pass_ms(model_retry.RETRY_MS)
    effect, again = call.last_effect(out.Transcribe)
    assert again == asked
    call.take(inputs.Transcribed(effect=effect, text="What time is it?"))
    call.write("It is late.")
    heard(call)
    assert [one.text for one in call.events(ev.UserSaid)] == ["What time is it?"]
    assert [one.text for one in call.events(ev.AgentSaid)] == ["It is late."]
    assert [(one.part, one.handled) for one in call.events(ev.ProviderFailed)] == [("turn", True), ("stt", True)]


def test_an_answer_that_broke_off_goes_on_where_it_was() -> None:
    call = Conversation()
    call.log(gateway.TextReceived(text="Tell me."))
    call.write("First this is said. ", "And th", done=False)
    call.synthesize()
    fail(call, out.Complete)
    assert reasons(call) == [("thinking", "The language model is not there. Trying again.")]
    call.pass_ms(model_retry.RETRY_MS)
    call.write("First this is said. ", "And then that.")
    heard(call)
    assert [one.text for one in call.events(ev.AgentSaid)] == ["First this is said. And then that."]
    assert call.flushed() == []
    assert [one.reason for one in call.events(ev.TurnCompleted)] == ["completed"]


def test_a_sentence_that_had_no_sound_is_spoken_when_the_voice_is_back() -> None:
    call = Conversation()
    call.log(gateway.TextReceived(text="Tell me."))
    call.write("First this is said. ", done=False)
    fail(call, out.Synthesize)
    call.write("And then that.")
    assert len(call.effects(out.Synthesize)) == 1, "it is not asked before its time"
    assert reasons(call) == [("thinking", "The voice is not there. Trying again.")]
    call.pass_ms(model_retry.RETRY_MS)
    assert call.last_effect(out.Synthesize)[1].text == "First this is said."
    heard(call)
    assert [one.text for one in call.events(ev.AgentSaid)] == ["First this is said. And then that."]


def test_a_sentence_that_broke_off_is_said_again_from_its_start() -> None:
    call = Conversation()
    call.log(gateway.TextReceived(text="Tell me."))
    call.write("First this is said. ", "And then that.")
    effect = call.last_effect(out.Synthesize)[0]
    call.take(inputs.AudioMade(effect=effect, ms=100, done=False))
    call.take(inputs.AudioSent(1))
    call.take(inputs.AudioMade(effect=effect, ms=1_000, done=True))
    call.take(inputs.AudioMade(effect=call.last_effect(out.Synthesize)[0], ms=300, done=False))
    fail(call, out.Synthesize)
    assert call.flushed() == [1]
    call.play(1_100, "flushed", generation=1)
    call.pass_ms(model_retry.RETRY_MS)
    effect, again = call.last_effect(out.Synthesize)
    assert (again.text, again.generation) == ("And then that.", 2)
    call.take(inputs.AudioMade(effect=effect, ms=1_000, done=True))
    call.take(inputs.AudioSent(2))
    call.play(1_000, "finished")
    assert [one.by for one in call.events(ev.GenerationCancelled)] == ["failure"]
    assert " ".join(one.text for one in call.events(ev.AgentSaid)).count("And then that.") == 1
    assert [one.reason for one in call.events(ev.TurnCompleted)] == ["completed"]


@pytest.mark.parametrize(("away_ms", "kept"), [(15_000, True), (17_000, False)])
def test_words_are_waited_for_longer_than_an_answer(away_ms: int, kept: bool) -> None:
    call = Conversation(stt_patience_s=16)
    call.take(inputs.VoiceStarted(0))
    call.pass_ms(900)
    call.take(inputs.VoiceStopped(900, 256))
    fail(call, out.JudgeTurn)
    asked = 0
    for _ in range(away_ms // model_retry.RETRY_MS):
        if len(call.effects(out.Transcribe)) > asked:
            asked = len(call.effects(out.Transcribe))
            fail(call, out.Transcribe)
        call.pass_ms(model_retry.RETRY_MS)
    if kept:
        call.take(inputs.Transcribed(effect=call.last_effect(out.Transcribe)[0], text="What time is it?"))
    assert [one.text for one in call.events(ev.UserSaid)] == (["What time is it?"] if kept else [])
    assert [one.handled for one in call.events(ev.ProviderFailed) if one.part == "stt"] == ([True] if kept else [True, False])


@pytest.mark.parametrize("part", ["stt", "llm", "tts"])
def test_at_the_end_of_patience_a_failure_is_one(part: str) -> None:
    call = Conversation()
    kinds: dict[str, type[Any]] = {"stt": out.Transcribe, "llm": out.Complete, "tts": out.Synthesize}
    if part == "stt":
        call.take(inputs.VoiceStarted(0))
        call.pass_ms(900)
        call.take(inputs.VoiceStopped(900, 256))
    else:
        call.log(gateway.TextReceived(text="Tell me."))
    if part == "tts":
        call.write("This is said.")
    begun = call.now_ms
    while call.now_ms - begun < PATIENCE_MS:
        fail(call, kinds[part])
        assert not [one for one in call.events(ev.ProviderFailed) if not one.handled], call.now_ms - begun
        call.pass_ms(model_retry.RETRY_MS)
    fail(call, kinds[part])
    assert [(one.part, one.handled) for one in call.events(ev.ProviderFailed)] == [(part, True), (part, False)]
    if part == "tts":
        assert [one.unheard for one in call.events(ev.AgentSaid)] == ["This is said."]
    else:
        assert "Sorry" in call.last_effect(out.Synthesize)[1].text
    before = len(call.effects(kinds[part]))
    call.pass_ms(2 * model_retry.RETRY_MS)
    assert len(call.effects(kinds[part])) == before, "it was given up"


def test_a_model_that_is_back_gives_its_patience_back() -> None:
    call = Conversation()
    call.log(gateway.TextReceived(text="Tell me."))
    fail(call, out.Complete)
    call.pass_ms(model_retry.RETRY_MS)
    call.write("First this is said. ", done=False)
    call.pass_ms(PATIENCE_MS)
    fail(call, out.Complete)
    assert [one.handled for one in call.events(ev.ProviderFailed)] == [True, True]


def test_who_speaks_into_the_wait_is_answered_instead() -> None:
    call = Conversation()
    call.log(gateway.TextReceived(text="Tell me."))
    fail(call, out.Complete)
    call.log(gateway.TextReceived(text="Are you there?"))
    asked = len(call.effects(out.Complete))
    call.pass_ms(model_retry.RETRY_MS)
    assert len(call.effects(out.Complete)) == asked
    call.write("Here I am.")
    heard(call)
    assert [(one.number, one.reason) for one in call.events(ev.TurnCompleted)] == [(1, "interrupted"), (2, "completed")]


def test_a_client_that_was_lost_meanwhile_hears_the_answer_when_it_is_back() -> None:
    call = Conversation()
    call.log(gateway.ClientConnected(gateway="g", connection="g-1", last_seq=0))
    call.log(gateway.TextReceived(text="Tell me."))
    call.write("This is said.")
    fail(call, out.Synthesize)
    call.log(gateway.ClientDisconnected(gateway="g", connection="g-1", last_seq=0, reason="cut"))
    call.pass_ms(2 * model_retry.RETRY_MS)
    assert len(call.effects(out.Synthesize)) == 1
    call.log(gateway.ClientConnected(gateway="g", connection="g-2", last_seq=0, resumed=True))
    call.pass_ms(paused_reply.REPORT_WAIT_MS)
    assert len(call.effects(out.Synthesize)) == 2
    heard(call)
    assert [one.text for one in call.events(ev.AgentSaid)] == ["This is said."]


def test_without_patience_every_failure_is_one_at_once() -> None:
    call = Conversation(model_patience_s=0)
    call.log(gateway.TextReceived(text="Tell me."))
    fail(call, out.Complete)
    assert [(one.part, one.handled) for one in call.events(ev.ProviderFailed)] == [("llm", False)]
