"""Speech of the user to a realtime model: voice activity, words, and the turn that they begin. Pure.

Words arrive in parallel to the answer, in no fixed order. They are final when the provider says so, or soon after the answer began.
If the installation's own detector is used, the model is told by it when the user speaks.
"""

from __future__ import annotations

from typing import Final

from msgspec.structs import replace

from voxbridge.services.voice.core import outputs as out
from voxbridge.services.voice.core import provider_events
from voxbridge.services.voice.core.prompt import memory
from voxbridge.services.voice.core.realtime import noises
from voxbridge.services.voice.core.transition import ANSWER, WORDS, Draft
from voxbridge.services.voice.core.turns import ledger, turns
from voxbridge.shared.bus.moments import PartialTranscript
from voxbridge.shared.events import voice as ev

PAUSE: Final = "pause"
PAUSE_MS: Final = 450
"""Milliseconds of silence after which the user has finished, in addition to the 256 ms that the detector itself waits."""
WORDS_MS: Final = 800
"""Milliseconds after the beginning of an answer in which arriving words still belong to the question."""
FINAL_WORDS_MS: Final = 5_000
"""The same for providers that mark final words: those take as long as a transcription takes."""
FINAL_LIMIT: Final = 16
WORDS_LIMIT: Final = 8_000
BEFORE_ONSET_MS: Final = 1_000
"""Milliseconds by which the reported beginning of speech may be late."""


def user_words(d: Draft, input: provider_events.UserWords) -> None:
    """Record further words of the user."""
    realtime = d.realtime
    if input.item and input.item in realtime.hearing.final:
        return
    if input.text.strip() and not realtime.hearing.turn:
        _speaks_up(d)
    items = dict(realtime.hearing.words)
    text = input.text if input.whole else items.get(input.item, "") + input.text
    items[input.item] = text[:WORDS_LIMIT]
    words = tuple((item, text) for item, text in items.items() if text)
    answering = realtime.hearing.turn != 0
    if not answering and d.reply is not None and not d.reply.filler:
        _speaks_up(d)
    awaited = realtime.awaited or (not answering and bool(input.text.strip()))
    d.hearing = replace(d.hearing, words=words, ended_at=d.now, audio_ms=input.audio_ms)
    d.owed = replace(d.owed, asking=realtime.owed.asking or not answering)
    d.realtime = replace(d.realtime, awaited=awaited)
    shown = joined(words)
    if shown:
        d.tell(PartialTranscript("user", shown, turn=realtime.hearing.turn or d.counters.turns + 1))
    if input.whole and not shown and not realtime.hearing.turn:
        noises.go_on(d)
    if answering and input.whole:
        final(d)
    elif not answering:
        wait_for_an_answer(d)


def user_voice(d: Draft, input: provider_events.UserVoice) -> None:
    """Record voice activity reported by the provider's detector."""
    realtime = d.realtime
    if input.speaking:
        final(d)
        _speaks_up(d)
        d.append(ev.SpeechStarted(source="provider", audio_ms=input.audio_ms))
        from_ms = max(realtime.hearing.from_ms, input.audio_ms - BEFORE_ONSET_MS)
        d.owed = replace(d.owed, asking=True)
        d.hearing = replace(d.hearing, speaking=True, from_ms=from_ms, audio_ms=input.audio_ms)
        wait_for_an_answer(d)
    else:
        d.append(ev.SpeechEnded(source="provider", audio_ms=input.audio_ms))
        d.hearing = replace(d.hearing, ended_at=d.now, speaking=False)
        wait_for_an_answer(d)


def _speaks_up(d: Draft) -> None:
    """Silence the installation's own voice: the model does not know that it speaks, so it reports no interruption of it."""
    if d.reply is not None and not d.reply.connection:
        turns.cancel_reply(d, "barge_in")


def activity(d: Draft, *, speaking: bool, audio_ms: int) -> None:
    """Pass voice activity of the installation's own detector to the model. Pauses shorter than `PAUSE_MS` are ignored."""
    realtime = d.realtime
    if speaking:
        if not realtime.hearing.active:
            final(d)
            _speaks_up(d)
            d.append(ev.SpeechStarted(source="vad", audio_ms=audio_ms))
            from_ms = max(realtime.hearing.from_ms, audio_ms - BEFORE_ONSET_MS)
            d.hearing = replace(d.hearing, active=True, from_ms=from_ms, audio_ms=audio_ms)
            d.owed = replace(d.owed, asking=True, go_on=False, said="")
            d.outputs.append(out.Activity(realtime.effect, speaking=True))
            if d.reply is not None:
                d.response = replace(d.response, cut=not realtime.response.over, written="")
                d.owed = replace(d.owed, turn=0, said="")
                turns.cancel_reply(d, "barge_in")
        d.cancel_timers(PAUSE)
    elif realtime.hearing.active:
        d.hearing = replace(d.hearing, pause_ms=audio_ms)
        d.set_timer(PAUSE, PAUSE_MS)


def activity_over(d: Draft) -> None:
    """End the user's activity: the silence lasted long enough."""
    realtime = d.realtime
    if realtime.hearing.active:
        d.hearing = replace(d.hearing, active=False, ended_at=d.now)
        d.append(ev.SpeechEnded(source="vad", audio_ms=realtime.hearing.pause_ms))
        d.outputs.append(out.Activity(realtime.effect, speaking=False))
        wait_for_an_answer(d)


def final(d: Draft) -> None:
    """Record the words transcribed so far as what the user said, if their turn has begun."""
    realtime = d.realtime
    text, turn = joined(realtime.hearing.words), realtime.hearing.turn
    d.cancel_timers(WORDS)
    if not turn:
        return
    final = (*realtime.hearing.final, *(item for item, _ in realtime.hearing.words if item))[-FINAL_LIMIT:]
    d.hearing = replace(d.hearing, words=(), turn=0, final=final)
    if text:
        turns.resolve_cut(d, None)  # the reply that was heard before comes first in the log
        d.append(ev.UserSaid(text=text, turn=turn, source="speech"))
        memory.remember_user(d, text, at=realtime.hearing.asked_at)
        if d.realtime.owed.turn == turn:  # else it has been answered
            d.owed = replace(d.owed, question=text)


def finish(d: Draft) -> None:
    """Make the words transcribed so far a turn of their own: something else was said since."""
    realtime = d.realtime
    if joined(realtime.hearing.words) and not realtime.hearing.turn:
        begin_turn(d)
        # Its audio is not to be sent again.
        d.hearing = replace(d.hearing, from_ms=max(realtime.hearing.from_ms, realtime.hearing.audio_ms))
    final(d)


def expect(d: Draft) -> None:
    """Expect words of the user: the model answers a question that has not been transcribed yet."""
    realtime = d.realtime
    if not (realtime.owed.asking or realtime.owed.announces or realtime.owed.turn):
        d.owed = replace(d.owed, asking=True)


def begin_turn(d: Draft) -> None:
    """Begin a turn: the model starts to answer what the user said."""
    realtime = d.realtime
    if not realtime.owed.asking:
        return
    if realtime.owed.turn and not realtime.hearing.words:
        d.owed = replace(d.owed, asking=False)
        return
    leave_unanswered(d)
    turns.resolve_cut(d, None)  # the reply that was heard before comes first in the log
    turn = ledger.begin(d)
    d.hearing = replace(d.hearing, asked_at=d.conversation.remembered, turn=turn)
    d.owed = replace(d.owed, asking=False, turn=turn, go_on=False, said="", announcement=None, repeated=False)
    d.set_timer(WORDS, FINAL_WORDS_MS if realtime.can.detects_voice else WORDS_MS)


def leave_reply(d: Draft) -> None:
    """End a reply that a fault cut off: nothing will continue it."""
    if d.reply is not None and d.reply.goes_on:
        turns.hand_on(d)


def leave_unanswered(d: Draft) -> None:
    """End a turn that was waiting for its answer and that no reply will end: something else is answered from now on."""
    d.owed = replace(d.owed, turn=0)
    ledger.settle(d)


def joined(words: tuple[tuple[str, str], ...]) -> str:
    return " ".join(filter(None, (text.strip() for _, text in words)))


def wait_for_an_answer(d: Draft) -> None:
    d.set_timer(ANSWER, d.settings.turn_timeout_s * 1_000)
