"""Utterances longer than a minute: heard in pieces, each up to a pause, while the user speaks on."""

from __future__ import annotations

import msgspec
import pytest

from tests.voice.conversation import Conversation
from voxbridge.services.voice.core import inputs
from voxbridge.services.voice.core import outputs as out
from voxbridge.services.voice.core.cascade.listening import LEAD_MS, PIECE_MS, TAIL_MS
from voxbridge.shared.events import gateway
from voxbridge.shared.events import voice as ev

LONG_MS = PIECE_MS + 1_000


def speaks(call: Conversation, ms: int) -> tuple[int, int]:
    """Have the user speak for `ms` and pause; return from when to when."""
    began = call.now_ms
    call.take(inputs.VoiceStarted(began))
    call.pass_ms(ms)
    call.take(inputs.VoiceStopped(began + ms, 256))
    return began, began + ms


def transcribed(call: Conversation) -> list[tuple[int, int]]:
    """Return the ranges of audio whose transcription was begun for good: those of partial transcripts have no end."""
    return [(one.from_ms, one.to_ms) for _, one in call.effects(out.Transcribe) if one.to_ms != out.AUDIO_END]


def effects(call: Conversation) -> list[int]:
    return [effect for effect, one in call.effects(out.Transcribe) if one.to_ms != out.AUDIO_END]


def effects_to_the_end(call: Conversation) -> int:
    """Return the transcription of what was said up to where the audio ends."""
    return [effect for effect, one in call.effects(out.Transcribe) if one.to_ms >= out.AUDIO_END][-1]


def goes_on(call: Conversation) -> None:
    """Have the turn model say that the user has not finished, who speaks on a moment later."""
    call.take(inputs.TurnJudged(call.last_effect(out.JudgeTurn)[0], 0.1))
    call.pass_ms(300)


def ends(call: Conversation, effect: int, text: str) -> None:
    call.take(inputs.TurnJudged(call.last_effect(out.JudgeTurn)[0], 0.9))
    call.take(inputs.Transcribed(effect=effect, text=text))


def said(call: Conversation) -> list[str]:
    return [event.text for event in call.events(ev.UserSaid)]


@pytest.mark.parametrize("known", [True, False], ids=["its words were known in the pause", "its words come later"])
def test_what_was_said_before_a_pause_is_transcribed_once_and_comes_first(known: bool) -> None:
    call = Conversation()
    first = speaks(call, LONG_MS)
    (piece,) = effects(call)
    if known:
        call.take(inputs.Transcribed(effect=piece, text="First half,"))
    goes_on(call)
    second = speaks(call, 2_000)
    assert transcribed(call) == [(max(0, first[0] - LEAD_MS), first[1] + TAIL_MS), (second[0] - LEAD_MS, second[1] + TAIL_MS)]
    ends(call, effects(call)[-1], "and second.")
    if not known:
        assert said(call) == [], "the first words are still to come"
        call.take(inputs.Transcribed(effect=piece, text="First half,"))
    assert said(call) == ["First half, and second."]
    (event,) = call.events(ev.UserSaid)
    assert (event.audio_from_ms, event.audio_to_ms) == (first[0], second[1])
    assert call.partials("user")[-1].endswith("First half, and second.") or not known


def test_a_short_utterance_with_a_pause_is_transcribed_whole() -> None:
    call = Conversation()
    first = speaks(call, PIECE_MS - 1)
    goes_on(call)
    second = speaks(call, 1_000)
    assert transcribed(call)[-1] == (max(0, first[0] - LEAD_MS), second[1] + TAIL_MS)


def test_five_minutes_are_five_pieces_in_order() -> None:
    call = Conversation()
    for number in range(5):
        speaks(call, LONG_MS)
        call.take(inputs.Transcribed(effect=effects(call)[-1], text=f"Part {number}."))
        if number < 4:
            goes_on(call)
    call.take(inputs.TurnJudged(call.last_effect(out.JudgeTurn)[0], 0.9))
    assert said(call) == ["Part 0. Part 1. Part 2. Part 3. Part 4."]


def test_with_push_to_talk_each_pause_ends_a_piece_and_the_release_the_turn() -> None:
    call = Conversation()
    options = msgspec.structs.replace(call.state.settings.options, push_to_talk=True)
    call.state.settings = msgspec.structs.replace(call.state.settings, options=options)
    speaks(call, LONG_MS)
    (piece,) = effects(call)
    call.take(inputs.Transcribed(effect=piece, text="All of this"))
    assert said(call) == []
    speaks(call, 2_000)
    call.log(gateway.AudioEnded())
    call.take(inputs.Transcribed(effect=effects_to_the_end(call), text="and that."))
    assert said(call) == ["All of this and that."]


@pytest.mark.parametrize("rules", [inputs.RULES, inputs.PIECES - 1])
def test_a_call_of_before_that_rule_hears_as_it_did(rules: int) -> None:
    call = Conversation()
    call.state.settings = msgspec.structs.replace(call.state.settings, rules=rules)
    first = speaks(call, LONG_MS)
    goes_on(call)
    second = speaks(call, 2_000)
    start = second[0] - LEAD_MS if rules >= inputs.PIECES else max(0, first[0] - LEAD_MS)
    assert transcribed(call)[-1] == (start, second[1] + TAIL_MS)


def test_a_piece_that_cannot_be_transcribed_is_tried_again_with_the_rest() -> None:
    call = Conversation()
    first = speaks(call, LONG_MS)
    (piece,) = effects(call)
    goes_on(call)
    began = call.now_ms
    call.take(inputs.VoiceStarted(began))
    call.pass_ms(500)
    error = ev.Failure(code="PROVIDER_UNAVAILABLE", message="The model is away.", retryable=True)
    call.take(inputs.EffectFailed(effect=piece, error=error))
    call.pass_ms(1_500)
    call.take(inputs.VoiceStopped(began + 2_000, 256))
    assert transcribed(call)[-1] == (max(0, first[0] - LEAD_MS), began + 2_000 + TAIL_MS)
    ends(call, effects(call)[-1], "Everything.")
    assert said(call) == ["Everything."]


def test_a_worker_that_takes_over_keeps_the_words_it_knows_and_says_what_is_lost() -> None:
    call = Conversation()
    speaks(call, LONG_MS)
    (piece,) = effects(call)
    goes_on(call)
    began = call.now_ms
    call.take(inputs.VoiceStarted(began))
    call.pass_ms(500)
    call.take(inputs.TakenOver(worker="voice-2", term=2, gap_ms=200, audio_from_ms=began - 500, audio_to_ms=began + 500))
    assert piece in call.cancelled()
    (restored,) = call.events(ev.SessionRestored)
    assert any(f"{LONG_MS / 1_000:.1f} s" in lost for lost in restored.lost)
    call.take(inputs.VoiceStopped(began + 2_000, 256))
    ends(call, effects(call)[-1], "The rest.")
    assert said(call) == ["The rest."]
