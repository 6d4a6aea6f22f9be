"""Listening: turns voice activity and transcripts into what the user said. Pure.

Results of the models arrive as inputs that carry the id of their effect; an input of an effect that is no longer wanted changes nothing.
"""

from __future__ import annotations

from typing import Final, Literal

from msgspec.structs import replace

from voxbridge.services.voice.core import agents, inputs
from voxbridge.services.voice.core import outputs as out
from voxbridge.services.voice.core.cascade import model_retry, speaking
from voxbridge.services.voice.core.state import Spoken, Stamps, Utterance
from voxbridge.services.voice.core.transition import Transition
from voxbridge.services.voice.core.turns import reopening, rounds, spoken_modes, turns
from voxbridge.shared.bus.moments import PartialTranscript
from voxbridge.shared.events import voice as ev

LEAD_MS: Final = 300
"""Milliseconds of audio before the detected start that are transcribed too: detectors are late."""

TAIL_MS: Final = 200
COMPLETE: Final = 0.5
"""Probability from which on the user is assumed to have finished."""

PATIENCE_MS: Final = 1_600
"""Milliseconds of silence after which the user counts as finished, whatever the turn model says."""

BLIND_PATIENCE_MS: Final = 700
"""The same if no turn model answers."""

PIECE_MS: Final = 50_000
"""Milliseconds of an utterance from which on a pause ends a piece of it, which is transcribed while the user speaks on: of one utterance no
more than `speech_buffer.LONGEST_MS` are kept."""

AHEAD_MS: Final = 20_000
"""Milliseconds of an utterance up to which it is transcribed ahead at each pause: that of a long one would still run at the next."""

PARTIAL_MS: Final = 700
"""Milliseconds between two partial transcripts."""


def start_ms(utterance: Utterance) -> int:
    """Return where the audio of an utterance begins that is transcribed, ms of the session's audio."""
    return max(0, utterance.from_ms - LEAD_MS)


def route_of(t: Transition) -> Literal["detector", "provider", "echo", "nobody"]:
    """Return the destination of a session's microphone audio."""
    request, agent = t.state.request, t.team.agent
    if request is not None and request.mode == "echo":
        return "echo"
    if agent.speaks_itself:
        return "provider"
    return "nobody" if agent.output == "text" else "detector"


def forget(t: Transition) -> None:
    """Drop what the user is saying: it is for no turn any more."""
    utterance = t.utterance
    if utterance is not None:
        t.cancel(utterance.final_effect, utterance.turn_effect, utterance.partial_effect, *utterance.pieces_under_way)
        t.cancel_timers("endpoint", "partial")
        t.state.utterance = None


def voice_started(t: Transition, audio_ms: int) -> None:
    """Handle the start of speech: continue an utterance whose end is not decided or a turn whose answer was not heard yet, else cut off
    the agent."""
    t.cancel_timers("endpoint")
    utterance = t.utterance
    if utterance is None:
        spares = _spares(t)
        if not spares and not reopening.withdraw(t):
            turns.cancel_reply(t, "barge_in")
        utterance = Utterance(from_ms=audio_ms, spares=spares)
        t.append(ev.SpeechStarted(source="vad", audio_ms=audio_ms))
    else:
        if utterance.to_ms is not None and _is_piece(t, utterance, utterance.to_ms):
            utterance = _cut(t, utterance, utterance.to_ms, audio_ms)
        t.cancel(utterance.final_effect, utterance.turn_effect)
        utterance = replace(utterance, to_ms=None, final_effect=None, turn_effect=None, text=None, stamps=Stamps(), stt_away=0)
    t.state.utterance = utterance
    _transcribe_later(t, utterance)


def _spares(t: Transition) -> bool:
    """Tell whether the agent, which is heard, goes on speaking until the user has said as many words as its client asks for."""
    return t.settings.options.barge_in_words > 0 and t.reply is not None and t.reply.playback.sent is not None


def _transcribe_later(t: Transition, utterance: Utterance) -> None:
    """Have what was said so far transcribed in a moment, if anybody wants to know it."""
    if t.settings.options.interim or utterance.spares:
        t.set_timer("partial", PARTIAL_MS)


def voice_paused(t: Transition, audio_ms: int) -> None:
    """Handle a short silence: have the installation's own models transcribe what was said, as if it were the end. If it is, the words are
    known sooner. A vendor's transcription is paid for, so it waits for the end."""
    utterance = t.utterance
    if utterance is None or utterance.to_ms is not None or t.settings.options.push_to_talk or t.team.agent.stt.provider:
        return
    t.cancel(utterance.final_effect)
    if audio_ms - utterance.from_ms > AHEAD_MS:
        t.state.utterance = replace(utterance, paused_ms=-1, final_effect=None, text=None)
        return
    effect = t.start(_transcribe(t, start_ms(utterance), audio_ms + TAIL_MS))
    t.state.utterance = replace(utterance, paused_ms=audio_ms, final_effect=effect, text=None)


def voice_stopped(t: Transition, audio_ms: int, silence_ms: int, *, complete: bool = False) -> None:
    """Handle a pause in speech: transcribe what was said, and decide meanwhile whether the user has finished."""
    utterance = t.utterance
    if utterance is None or utterance.to_ms is not None:
        return
    if t.settings.options.push_to_talk and not complete:
        if _is_piece(t, utterance, audio_ms):
            t.state.utterance = utterance = _cut(t, utterance, audio_ms, audio_ms)
            _transcribe_later(t, utterance)
        return
    t.cancel(utterance.partial_effect)
    t.cancel_timers("partial")
    t.append(ev.SpeechEnded(source="vad", audio_ms=audio_ms))
    if utterance.paused_ms != audio_ms:  # what was transcribed ahead, if anything, is not all that was said
        t.cancel(utterance.final_effect)
        utterance = replace(utterance, final_effect=None, text=None, stamps=Stamps())
    stamps = replace(utterance.stamps, speech_ended=t.now - silence_ms * 1_000, end_of_turn=t.now if complete else None)
    utterance = replace(utterance, to_ms=audio_ms, partial_effect=None, stamps=stamps)
    t.state.utterance = _understand(t, utterance, judge=not complete)
    if not complete:
        t.set_timer("endpoint", PATIENCE_MS - silence_ms)


def _is_piece(t: Transition, utterance: Utterance, to_ms: int) -> bool:
    """Tell whether an utterance is long enough for a piece of it, up to a pause, to be transcribed by itself."""
    long = to_ms != out.AUDIO_END and to_ms - utterance.from_ms >= PIECE_MS
    return long and utterance.piece is None and t.settings.rules >= inputs.PIECES


def _cut(t: Transition, utterance: Utterance, to_ms: int, from_ms: int) -> Utterance:
    """Take what was said up to a pause as a piece: its words if they are known, else the transcription that has begun, or begins now."""
    began_ms = utterance.from_ms if utterance.began_ms < 0 else utterance.began_ms
    t.cancel(utterance.partial_effect)
    if utterance.text is not None:
        return replace(utterance, from_ms=from_ms, began_ms=began_ms, before=_joined(utterance.before, utterance.text), partial_effect=None)
    start = start_ms(utterance)
    effect = t.start(_transcribe(t, start, to_ms + TAIL_MS)) if utterance.final_effect is None else utterance.final_effect
    piece = Spoken(from_ms=start, to_ms=to_ms, effect=effect)
    return replace(utterance, from_ms=from_ms, began_ms=began_ms, piece=piece, final_effect=None, partial_effect=None)


def _joined(before: str, text: str) -> str:
    return " ".join(filter(None, (before, text.strip())))


def _understand(t: Transition, utterance: Utterance, *, judge: bool) -> Utterance:
    """Start the transcription of an utterance whose speech has paused and, with `judge`, the decision whether it is over."""
    if utterance.to_ms is None:
        return utterance
    start, end, effect = start_ms(utterance), utterance.to_ms + TAIL_MS, utterance.final_effect
    return replace(
        utterance,
        final_effect=t.start(_transcribe(t, start, end)) if utterance.text is None and effect is None else effect,
        turn_effect=t.start(out.JudgeTurn(from_ms=start, to_ms=end)) if judge else None,
    )


def _transcribe(t: Transition, from_ms: int, to_ms: int) -> out.Transcribe:
    agent = t.team.agent
    return out.Transcribe(
        from_ms=from_ms,
        to_ms=to_ms,
        provider=agent.stt.provider,
        model=agent.stt.model,
        language=agent.language,
        vocabulary=agents.vocabulary(t.team),
    )


def hear_again(t: Transition) -> None:
    """Restart the effects of the current utterance that died with their worker."""
    utterance = t.utterance
    if utterance is None:
        return
    judge = utterance.turn_effect is not None
    utterance = replace(utterance, partial_effect=None, final_effect=None, turn_effect=None)
    if utterance.to_ms is None:
        utterance = replace(utterance, paused_ms=-1, text=None)
    t.state.utterance = _understand(t, utterance, judge=judge)
    if utterance.to_ms is None:
        _transcribe_later(t, utterance)


def lose(t: Transition) -> None:
    """Drop an utterance that cannot be transcribed, and ask the user to repeat it."""
    forget(t)
    t.set_timer("idle", t.settings.idle_timeout_s * 1_000)
    reopening.give_up(t)
    turns.resolve_cut(t, None)
    t.speech.resume, t.speech.redo = "", 0  # the user is asked to repeat, so the reply that was cut off is not resumed
    if t.reply is None:  # else what the user typed meanwhile is being answered
        turns.say(t, speaking.APOLOGIES["stt"], turn=0, failed=True)
        speaking.speak(t)


def effect_failed(t: Transition, input: inputs.EffectFailed) -> None:
    """Handle the failure of a model that an utterance needs. Do nothing if the effect is not the utterance's."""
    utterance = t.utterance
    if utterance is None:
        return
    if input.effect == utterance.final_effect and utterance.to_ms is None:
        t.state.utterance = replace(utterance, final_effect=None)
    elif input.effect == utterance.final_effect:
        away = model_retry.wait(t, "stt", input.error, utterance.stt_away, t.counters.turns)
        if away:
            t.state.utterance = replace(utterance, final_effect=None, stt_away=away)
            return
        t.append(ev.ProviderFailed(part="stt", error=input.error, turn=t.counters.turns))
        t.cancel(utterance.turn_effect)
        lose(t)
    elif utterance.piece is not None and input.effect == utterance.piece.effect:
        _piece_failed(t, utterance, utterance.piece, input.error)
    elif input.effect == utterance.turn_effect:
        t.append(ev.ProviderFailed(part="turn", error=input.error, turn=t.counters.turns, handled=True))
        t.state.utterance = replace(utterance, turn_effect=None)
        t.set_timer("endpoint", BLIND_PATIENCE_MS)
    elif input.effect == utterance.partial_effect:
        t.state.utterance = utterance = replace(utterance, partial_effect=None)
        _transcribe_later(t, utterance)


def _piece_failed(t: Transition, utterance: Utterance, piece: Spoken, error: ev.Failure) -> None:
    """Transcribe a piece once more with what follows it, if both are kept; else the utterance is lost, and the user is told."""
    if utterance.final_effect is None and utterance.text is None:
        t.append(ev.ProviderFailed(part="stt", error=error, turn=t.counters.turns, handled=True))
        t.state.utterance = replace(utterance, piece=None, from_ms=piece.from_ms + LEAD_MS)
        return
    t.append(ev.ProviderFailed(part="stt", error=error, turn=t.counters.turns))
    lose(t)


def try_again(t: Transition) -> None:
    """Retry a transcription that failed."""
    utterance = t.utterance
    if utterance is not None and utterance.stt_away and utterance.text is None and utterance.final_effect is None:
        t.state.utterance = _understand(t, utterance, judge=False)


def microphone_closed(t: Transition) -> None:
    """End the utterance, because the user released the microphone."""
    utterance = t.utterance
    if utterance is None:
        return
    if utterance.to_ms is None:
        # The audio up to now is the utterance; its end is where the audio ends.
        voice_stopped(t, out.AUDIO_END, 0, complete=True)
    else:
        end_of_turn(t)


def end_of_turn(t: Transition) -> None:
    """Record that the user has finished; the transcript may still be pending."""
    utterance = t.utterance
    if utterance is None or utterance.to_ms is None or utterance.complete:
        return
    t.cancel(utterance.turn_effect)
    t.cancel_timers("endpoint")
    stamps = replace(utterance.stamps, end_of_turn=t.now)
    t.state.utterance = replace(utterance, turn_effect=None, stamps=stamps)
    _utterance_ready(t)


def judged(t: Transition, input: inputs.TurnJudged) -> None:
    """Apply the turn model's probability: end the turn, or wait for a silence that depends on it."""
    if t.utterance is not None and input.effect == t.utterance.turn_effect:
        t.state.utterance = replace(t.utterance, turn_effect=None)
        if input.probability >= COMPLETE:
            end_of_turn(t)
        else:
            waited_ms = (t.now - (t.utterance.stamps.speech_ended or t.now)) // 1_000
            t.set_timer("endpoint", patience_ms(input.probability) - waited_ms)


def patience_ms(probability: float) -> int:
    """Return the ms of silence to wait for more speech; fewer, the higher the probability that the user has finished."""
    return round(PATIENCE_MS - (PATIENCE_MS - BLIND_PATIENCE_MS) * min(1.0, probability / COMPLETE))


def transcribed(t: Transition, input: inputs.Transcribed) -> None:
    """Record a partial or final transcript."""
    utterance = t.utterance
    if utterance is None:
        return
    final = utterance.final_effect
    if input.effect == utterance.partial_effect:
        t.state.utterance = utterance = replace(utterance, partial_effect=None)
        _transcribe_later(t, utterance)
    elif utterance.piece is not None and input.effect == utterance.piece.effect:
        t.state.utterance = replace(
            utterance, piece=None, before=_joined(utterance.before, input.text), language=input.language, confidence=input.confidence
        )
    elif input.effect == utterance.final_effect:
        stamps = replace(utterance.stamps, stt_final=t.now)
        t.state.utterance = replace(
            utterance, final_effect=None, text=input.text, language=input.language, confidence=input.confidence, stamps=stamps
        )
    else:
        return
    if input.text and (utterance.piece is None or input.effect == utterance.piece.effect):  # else words before these are not known yet
        t.tell(PartialTranscript("user", _joined(utterance.before, input.text), turn=reopening.turn(t)))
    _stop_agent(t, input.text)
    utterance = t.utterance
    if utterance is not None and input.effect == final and not utterance.complete and utterance.piece is None:
        rounds.read_ahead(t, _joined(utterance.before, input.text))
    _utterance_ready(t)


def _stop_agent(t: Transition, text: str) -> None:
    """Stop the agent that was spared, once the user has said enough words."""
    utterance = t.utterance
    if utterance is not None and utterance.spares and len(text.split()) >= t.settings.options.barge_in_words:
        t.state.utterance = replace(utterance, spares=False)
        turns.cancel_reply(t, "barge_in")


def partial_due(t: Transition) -> None:
    """Transcribe what was said so far, if the user still speaks and no partial transcript is pending."""
    utterance = t.utterance
    if utterance is not None and utterance.to_ms is None and utterance.partial_effect is None:
        effect = t.start(_transcribe(t, start_ms(utterance), out.AUDIO_END))
        t.state.utterance = replace(utterance, partial_effect=effect)


def _utterance_ready(t: Transition) -> None:
    utterance = t.utterance
    if utterance is None or not utterance.complete or utterance.text is None or utterance.piece is not None:
        return
    t.state.utterance = None
    t.cancel_timers("endpoint", "partial")
    if utterance.spares and t.reply is not None:
        t.tell(PartialTranscript("user", "", turn=reopening.turn(t)))  # too few words: the agent has gone on
        return
    text, stamps = _joined(utterance.before, utterance.text), utterance.stamps
    if not text:
        if not reopening.answer_after_all(t):
            turns.no_words(t)
        return
    if spoken_modes.is_draft(t, text):
        t.tell(PartialTranscript("user", text, turn=reopening.turn(t)))
        t.set_timer("idle", t.settings.idle_timeout_s * 1_000)
        return
    details: turns.Source = {
        "language": utterance.language,
        "confidence": utterance.confidence,
        "audio_from_ms": utterance.from_ms if utterance.began_ms < 0 else utterance.began_ms,
        "audio_to_ms": utterance.to_ms if utterance.to_ms != out.AUDIO_END else None,
    }
    if not reopening.goes_on(t, text, stamps=stamps, **details):
        turns.user_said(t, text, source="speech", stamps=stamps, **details)
