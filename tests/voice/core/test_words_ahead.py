"""A pause that may be the end of speech: the words are transcribed, and read by the model, before the end is decided."""

from __future__ import annotations

import pytest

from tests.voice.conversation import START_US, Conversation
from tests.voice.core.test_page_options import PageCall
from voxbridge.services.voice.core import inputs
from voxbridge.services.voice.core import outputs as out
from voxbridge.services.voice.core.cascade.listening import AHEAD_MS
from voxbridge.shared.awareness.view import View, Visit
from voxbridge.shared.events import gateway
from voxbridge.shared.events import voice as ev
from voxbridge.shared.events.gateway import SessionOptions

AWAY = ev.Failure(code="PROVIDER_UNAVAILABLE", message="Not now.", retryable=True)


def ahead(call: Conversation) -> list[out.ReadAhead]:
    return [one for one in call.outputs if isinstance(one, out.ReadAhead) and one.asked]


def finals(call: Conversation) -> list[int]:
    """Return the effects that transcribe up to an end, which partial transcripts do not."""
    return [effect for effect, asked in call.effects(out.Transcribe) if asked.to_ms != out.AUDIO_END]


def pauses(call: Conversation, ms: int = 900) -> int:
    """Have the user speak for `ms` and pause; return where the speech ended."""
    began = call.begin_to_speak(ms)
    call.pass_ms(160)
    call.take(inputs.VoicePaused(began + ms))
    return began + ms


def is_understood(call: Conversation, text: str) -> None:
    call.take(inputs.Transcribed(effect=finals(call)[-1], text=text))


def is_over(call: Conversation) -> None:
    call.take(inputs.TurnJudged(call.last_effect(out.JudgeTurn)[0], 0.97))


def test_the_words_of_a_pause_that_was_the_end_are_not_transcribed_again() -> None:
    call = Conversation()
    end = pauses(call)
    is_understood(call, "What time is it?")
    assert call.events(ev.UserSaid) == []
    call.pass_ms(96)
    call.take(inputs.VoiceStopped(end, 256))
    is_over(call)
    assert [one.text for one in call.events(ev.UserSaid)] == ["What time is it?"]
    assert len(finals(call)) == 1
    reply = call.state.speech.reply
    assert reply is not None
    stamps = reply.stamps
    assert (stamps.speech_ended, stamps.stt_final, stamps.end_of_turn) == tuple(START_US + 1_000 * ms for ms in (900, 1_060, 1_156))


def test_a_transcription_that_the_pause_began_is_waited_for() -> None:
    call = Conversation()
    end = pauses(call)
    call.pass_ms(96)
    call.take(inputs.VoiceStopped(end, 256))
    is_over(call)
    assert len(finals(call)) == 1
    assert not call.cancelled() & {finals(call)[-1]}
    is_understood(call, "Hello")
    assert [one.text for one in call.events(ev.UserSaid)] == ["Hello"]


@pytest.mark.parametrize("known", [True, False])
def test_who_goes_on_is_understood_from_the_beginning(known: bool) -> None:
    call = Conversation()
    pauses(call)
    first = finals(call)[-1]
    if known:
        is_understood(call, "Set a timer")
    call.pass_ms(900)
    call.take(inputs.VoiceStopped(1_900, 256))
    assert (first in call.cancelled()) is not known
    effect, last = call.last_effect(out.Transcribe)
    assert (last.from_ms, last.to_ms) == (0, 2_100)
    is_over(call)
    call.take(inputs.Transcribed(effect=effect, text="Set a timer for ten minutes."))
    assert [one.text for one in call.events(ev.UserSaid)] == ["Set a timer for ten minutes."]


def test_the_own_model_reads_what_it_will_be_asked() -> None:
    call = Conversation()
    call.log(gateway.TextReceived(text="hello"))
    call.write("Hello.")
    call.hear()
    end = pauses(call)
    is_understood(call, "What is tea?")
    (read,) = ahead(call)
    call.pass_ms(96)
    call.take(inputs.VoiceStopped(end, 256))
    is_over(call)
    asked = call.last_effect(out.Complete)[1]
    assert (read.messages, read.functions, read.shared, read.model) == (asked.messages, asked.functions, asked.shared, asked.model)
    assert ahead(call) == [read]


def test_while_the_turn_model_is_in_doubt_the_words_are_read_too() -> None:
    call = Conversation()
    call.begin_to_speak()
    call.take(inputs.VoiceStopped(900, 256))
    call.take(inputs.TurnJudged(call.last_effect(out.JudgeTurn)[0], 0.1))
    is_understood(call, "What is tea?")
    assert [one.messages[-1].text for one in ahead(call)] == ["What is tea?"]


def test_nothing_is_read_where_the_request_would_begin_otherwise() -> None:
    call = Conversation()
    call.log(gateway.TextReceived(text="hello"))
    call.write("One. ", "Two. ", "Three.")
    call.synthesize()
    call.play(500)
    began = call.begin_to_speak(0)
    call.take(inputs.VoicePaused(began))
    is_understood(call, "Stop.")  # the user speaks while the agent does: what was heard of it is not known yet
    assert ahead(call) == []
    other = Conversation()
    other.begin_to_speak()
    other.take(inputs.ScreenChanged(View(pages=(Visit(id="p", page="/keys", at=START_US),))))
    other.take(inputs.VoicePaused(900))
    is_understood(other, "What is this?")
    assert ahead(other) == []
    silent = Conversation()
    pauses(silent)
    is_understood(silent, "")
    assert ahead(silent) == []


def test_a_failure_at_a_pause_costs_nothing() -> None:
    call = Conversation()
    end = pauses(call)
    call.take(inputs.EffectFailed(effect=finals(call)[-1], error=AWAY))
    call.pass_ms(96)
    call.take(inputs.VoiceStopped(end, 256))
    is_over(call)
    assert len(finals(call)) == 2
    is_understood(call, "Hello")
    assert [one.text for one in call.events(ev.UserSaid)] == ["Hello"]
    assert call.events(ev.ProviderFailed) == []


def test_a_pause_late_in_a_long_utterance_is_not_transcribed() -> None:
    call = Conversation()
    began = call.begin_to_speak(AHEAD_MS)
    call.take(inputs.VoicePaused(began + AHEAD_MS))
    assert len(finals(call)) == 1
    call.pass_ms(1_000)
    call.take(inputs.VoicePaused(began + AHEAD_MS + 1))
    assert len(finals(call)) == 1
    assert finals(call)[-1] in call.cancelled()


def test_who_holds_a_key_to_talk_pauses_as_long_as_they_like() -> None:
    call = PageCall(SessionOptions(push_to_talk=True))
    pauses(call)
    assert finals(call) == []
