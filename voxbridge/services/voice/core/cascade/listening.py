"""Listening: turns voice activity and transcripts into what the user said. Pure.

Results of the models arrive as inputs that carry the id of their effect; an input of an effect that is no longer wanted changes nothing.
"""

from __future__ import annotations

from typing import Final, Literal

from msgspec.structs import replace

from voxbridge.services.voice.core import inputs
from voxbridge.services.voice.core import outputs as out
from voxbridge.services.voice.core.cascade import model_retry, speaking
from voxbridge.services.voice.core.state import Stamps, Utterance
from voxbridge.services.voice.core.transition import Draft
from voxbridge.services.voice.core.turns import reopening, turns
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

PARTIAL_MS: Final = 700
"""Milliseconds between two partial transcripts."""


def route_of(d: Draft) -> Literal["detector", "provider", "echo", "nobody"]:
    """Return the destination of a session's microphone audio."""
    request, agent = d.state.request, d.team.agent
    if request is not None and request.mode == "echo":
        return "echo"
    if agent.realtime is not None:
        return "provider"
    return "nobody" if agent.output == "text" else "detector"


def voice_started(d: Draft, audio_ms: int) -> None:
    """Handle the start of speech: continue an utterance whose end is not decided or a turn whose answer was not heard yet, else cut off
    the agent."""
    d.cancel_timers("endpoint")
    utterance = d.utterance
    if utterance is None:
        if not reopening.withdraw(d):
            turns.cancel_reply(d, "barge_in")
        utterance = Utterance(from_ms=audio_ms)
        d.append(ev.SpeechStarted(source="vad", audio_ms=audio_ms))
    else:
        d.cancel(utterance.final_effect, utterance.turn_effect)
        utterance = replace(utterance, to_ms=None, final_effect=None, turn_effect=None, text=None, complete=False, stt_away=0)
    d.state.utterance = utterance
    d.set_timer("partial", PARTIAL_MS)


def voice_stopped(d: Draft, audio_ms: int, silence_ms: int, *, complete: bool = False) -> None:
    """Handle a pause in speech: transcribe what was said, and decide meanwhile whether the user has finished."""
    utterance = d.utterance
    if utterance is None or utterance.to_ms is not None:
        return
    d.cancel(utterance.partial_effect)
    d.cancel_timers("partial")
    d.append(ev.SpeechEnded(source="vad", audio_ms=audio_ms))
    stamps = Stamps(speech_ended=d.now - silence_ms * 1_000, end_of_turn=d.now if complete else None)
    utterance = replace(utterance, to_ms=audio_ms, complete=complete, partial_effect=None, stamps=stamps)
    d.state.utterance = _understand(d, utterance, judge=not complete)
    if not complete:
        d.set_timer("endpoint", PATIENCE_MS - silence_ms)


def _understand(d: Draft, utterance: Utterance, *, judge: bool) -> Utterance:
    """Start the transcription of an utterance whose speech has paused and, with `judge`, the decision whether it is over."""
    if utterance.to_ms is None:
        return utterance
    start, end = max(0, utterance.from_ms - LEAD_MS), utterance.to_ms + TAIL_MS
    return replace(
        utterance,
        final_effect=d.start(_transcribe(d, start, end)) if utterance.text is None else None,
        turn_effect=d.start(out.JudgeTurn(from_ms=start, to_ms=end)) if judge else None,
    )


def _transcribe(d: Draft, from_ms: int, to_ms: int) -> out.Transcribe:
    agent = d.team.agent
    return out.Transcribe(from_ms=from_ms, to_ms=to_ms, provider=agent.stt.provider, model=agent.stt.model, language=agent.language)


def hear_again(d: Draft) -> None:
    """Restart the effects of the current utterance that died with their worker."""
    utterance = d.utterance
    if utterance is None:
        return
    judge = utterance.turn_effect is not None
    utterance = replace(utterance, partial_effect=None, final_effect=None, turn_effect=None)
    d.state.utterance = _understand(d, utterance, judge=judge)
    if utterance.to_ms is None:
        d.set_timer("partial", PARTIAL_MS)


def lose(d: Draft) -> None:
    """Drop an utterance that cannot be transcribed, and ask the user to repeat it."""
    d.state.utterance = None
    d.cancel_timers("endpoint", "partial")
    d.set_timer("idle", d.settings.idle_timeout_s * 1_000)
    reopening.give_up(d)
    turns.resolve_cut(d, None)
    d.speech.resume, d.speech.redo = "", 0  # the user is asked to repeat, so the reply that was cut off is not resumed
    if d.reply is None:  # else what the user typed meanwhile is being answered
        turns.say(d, speaking.APOLOGIES["stt"], turn=0, failed=True)
        speaking.speak(d)


def effect_failed(d: Draft, input: inputs.EffectFailed) -> None:
    """Handle the failure of a model that an utterance needs. Do nothing if the effect is not the utterance's."""
    utterance = d.utterance
    if utterance is None:
        return
    if input.effect == utterance.final_effect:
        away = model_retry.wait(d, "stt", input.error, utterance.stt_away, d.counters.turns)
        if away:
            d.state.utterance = replace(utterance, final_effect=None, stt_away=away)
            return
        d.append(ev.ProviderFailed(part="stt", error=input.error, turn=d.counters.turns))
        d.cancel(utterance.turn_effect)
        lose(d)
    elif input.effect == utterance.turn_effect:
        d.append(ev.ProviderFailed(part="turn", error=input.error, turn=d.counters.turns, handled=True))
        d.state.utterance = replace(utterance, turn_effect=None)
        d.set_timer("endpoint", BLIND_PATIENCE_MS)
    elif input.effect == utterance.partial_effect:
        d.state.utterance = replace(utterance, partial_effect=None)
        d.set_timer("partial", PARTIAL_MS)


def try_again(d: Draft) -> None:
    """Retry a transcription that failed."""
    utterance = d.utterance
    if utterance is not None and utterance.stt_away and utterance.text is None and utterance.final_effect is None:
        d.state.utterance = _understand(d, utterance, judge=False)


def microphone_closed(d: Draft) -> None:
    """End the utterance, because the user released the microphone."""
    utterance = d.utterance
    if utterance is None:
        return
    if utterance.to_ms is None:
        # The audio up to now is the utterance; its end is where the audio ends.
        voice_stopped(d, out.AUDIO_END, 0, complete=True)
    else:
        end_of_turn(d)


def end_of_turn(d: Draft) -> None:
    """Record that the user has finished; the transcript may still be pending."""
    utterance = d.utterance
    if utterance is None or utterance.to_ms is None or utterance.complete:
        return
    d.cancel(utterance.turn_effect)
    d.cancel_timers("endpoint")
    stamps = replace(utterance.stamps, end_of_turn=d.now)
    d.state.utterance = replace(utterance, complete=True, turn_effect=None, stamps=stamps)
    _utterance_ready(d)


def judged(d: Draft, input: inputs.TurnJudged) -> None:
    """Apply the turn model's probability: end the turn, or wait for a silence that depends on it."""
    if d.utterance is not None and input.effect == d.utterance.turn_effect:
        d.state.utterance = replace(d.utterance, turn_effect=None)
        if input.probability >= COMPLETE:
            end_of_turn(d)
        else:
            waited_ms = (d.now - (d.utterance.stamps.speech_ended or d.now)) // 1_000
            d.set_timer("endpoint", patience_ms(input.probability) - waited_ms)


def patience_ms(probability: float) -> int:
    """Return the ms of silence to wait for more speech; fewer, the higher the probability that the user has finished."""
    return round(PATIENCE_MS - (PATIENCE_MS - BLIND_PATIENCE_MS) * min(1.0, probability / COMPLETE))


def transcribed(d: Draft, input: inputs.Transcribed) -> None:
    """Record a partial or final transcript."""
    utterance = d.utterance
    if utterance is None:
        return
    if input.effect == utterance.partial_effect:
        d.state.utterance = replace(utterance, partial_effect=None)
        d.set_timer("partial", PARTIAL_MS)
    elif input.effect == utterance.final_effect:
        stamps = replace(utterance.stamps, stt_final=d.now)
        d.state.utterance = replace(
            utterance, final_effect=None, text=input.text, language=input.language, confidence=input.confidence, stamps=stamps
        )
    else:
        return
    if input.text:
        d.tell(PartialTranscript("user", input.text, turn=reopening.turn(d)))
    _utterance_ready(d)


def partial_due(d: Draft) -> None:
    """Transcribe what was said so far, if the user still speaks and no partial transcript is pending."""
    utterance = d.utterance
    if utterance is not None and utterance.to_ms is None and utterance.partial_effect is None:
        effect = d.start(_transcribe(d, max(0, utterance.from_ms - LEAD_MS), out.AUDIO_END))
        d.state.utterance = replace(utterance, partial_effect=effect)


def _utterance_ready(d: Draft) -> None:
    utterance = d.utterance
    if utterance is None or not utterance.complete or utterance.text is None:
        return
    d.state.utterance = None
    d.cancel_timers("endpoint", "partial")
    if not utterance.text.strip():
        if not reopening.answer_after_all(d):
            turns.no_words(d)
        return
    text, stamps = utterance.text.strip(), utterance.stamps
    about = {
        "language": utterance.language,
        "confidence": utterance.confidence,
        "audio_from_ms": utterance.from_ms,
        "audio_to_ms": utterance.to_ms if utterance.to_ms != out.AUDIO_END else None,
    }
    if not reopening.goes_on(d, text, stamps=stamps, **about):
        turns.user_said(d, text, source="speech", stamps=stamps, **about)
