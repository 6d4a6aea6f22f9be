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
from voxbridge.services.voice.core.transition import ANSWER, WORDS, Transition
from voxbridge.services.voice.core.turns import consent, ledger, turns
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


def user_words(t: Transition, input: provider_events.UserWords) -> None:
    """Record further words of the user."""
    realtime = t.realtime
    if input.item and input.item in realtime.hearing.final:
        return
    if input.text.strip() and not realtime.hearing.turn:
        _speaks_up(t)
    items = dict(realtime.hearing.words)
    text = input.text if input.whole else items.get(input.item, "") + input.text
    items[input.item] = text[:WORDS_LIMIT]
    words = tuple((item, text) for item, text in items.items() if text)
    answering = realtime.hearing.turn != 0
    if not answering and t.reply is not None and not t.reply.filler:
        _speaks_up(t)
    awaited = realtime.awaited or (not answering and bool(input.text.strip()))
    t.hearing = replace(t.hearing, words=words, ended_at=t.now, audio_ms=input.audio_ms)
    t.owed = replace(t.owed, asking=realtime.owed.asking or not answering)
    t.realtime = replace(t.realtime, awaited=awaited)
    shown = joined(words)
    if shown:
        t.tell(PartialTranscript("user", shown, turn=realtime.hearing.turn or t.counters.turns + 1))
    if input.whole and not shown and not realtime.hearing.turn:
        noises.go_on(t)
    if answering and input.whole:
        final(t)
    elif not answering:
        wait_for_an_answer(t)


def user_voice(t: Transition, input: provider_events.UserVoice) -> None:
    """Record voice activity reported by the provider's detector."""
    realtime = t.realtime
    if input.speaking:
        final(t)
        _speaks_up(t)
        t.append(ev.SpeechStarted(source="provider", audio_ms=input.audio_ms))
        from_ms = max(realtime.hearing.from_ms, input.audio_ms - BEFORE_ONSET_MS)
        t.owed = replace(t.owed, asking=True)
        t.hearing = replace(t.hearing, speaking=True, from_ms=from_ms, audio_ms=input.audio_ms)
        wait_for_an_answer(t)
    else:
        t.append(ev.SpeechEnded(source="provider", audio_ms=input.audio_ms))
        t.hearing = replace(t.hearing, ended_at=t.now, speaking=False)
        wait_for_an_answer(t)


def _speaks_up(t: Transition) -> None:
    """Silence the installation's own voice: the model does not know that it speaks, so it reports no interruption of it."""
    if t.reply is not None and not t.reply.connection:
        turns.cancel_reply(t, "barge_in")


def activity(t: Transition, *, speaking: bool, audio_ms: int) -> None:
    """Pass voice activity of the installation's own detector to the model. Pauses shorter than `PAUSE_MS` are ignored."""
    realtime = t.realtime
    if speaking:
        if not realtime.hearing.active:
            final(t)
            _speaks_up(t)
            t.append(ev.SpeechStarted(source="vad", audio_ms=audio_ms))
            from_ms = max(realtime.hearing.from_ms, audio_ms - BEFORE_ONSET_MS)
            t.hearing = replace(t.hearing, active=True, from_ms=from_ms, audio_ms=audio_ms)
            t.owed = replace(t.owed, asking=True, go_on=False, said="")
            t.outputs.append(out.Activity(realtime.effect, speaking=True))
            if t.reply is not None:
                t.response = replace(t.response, cut=not realtime.response.over, written="")
                t.owed = replace(t.owed, turn=0, said="")
                turns.cancel_reply(t, "barge_in")
        t.cancel_timers(PAUSE)
    elif realtime.hearing.active:
        t.hearing = replace(t.hearing, pause_ms=audio_ms)
        t.set_timer(PAUSE, PAUSE_MS)


def activity_over(t: Transition) -> None:
    """End the user's activity: the silence lasted long enough."""
    realtime = t.realtime
    if realtime.hearing.active:
        t.hearing = replace(t.hearing, active=False, ended_at=t.now)
        t.append(ev.SpeechEnded(source="vad", audio_ms=realtime.hearing.pause_ms))
        t.outputs.append(out.Activity(realtime.effect, speaking=False))
        wait_for_an_answer(t)


def final(t: Transition) -> None:
    """Record the words transcribed so far as what the user said, if their turn has begun."""
    realtime = t.realtime
    text, turn = joined(realtime.hearing.words), realtime.hearing.turn
    t.cancel_timers(WORDS)
    if not turn:
        return
    final = (*realtime.hearing.final, *(item for item, _ in realtime.hearing.words if item))[-FINAL_LIMIT:]
    t.hearing = replace(t.hearing, words=(), turn=0, final=final)
    if text:
        turns.resolve_cut(t, None)  # the reply that was heard before comes first in the log
        t.append(ev.UserSaid(text=text, turn=turn, source="speech"))
        memory.remember_user(t, text, at=realtime.hearing.asked_at)
        consent.answered(t, text)  # the model has heard it too, and says what it likes to that
        if t.realtime.owed.turn == turn:  # else it has been answered
            t.owed = replace(t.owed, question=text)


def finish(t: Transition) -> None:
    """Make the words transcribed so far a turn of their own: something else was said since."""
    realtime = t.realtime
    if joined(realtime.hearing.words) and not realtime.hearing.turn:
        begin_turn(t)
        # Its audio is not to be sent again.
        t.hearing = replace(t.hearing, from_ms=max(realtime.hearing.from_ms, realtime.hearing.audio_ms))
    final(t)


def expect(t: Transition) -> None:
    """Expect words of the user: the model answers a question that has not been transcribed yet."""
    realtime = t.realtime
    if not (realtime.owed.asking or realtime.owed.announces or realtime.owed.turn):
        t.owed = replace(t.owed, asking=True)


def begin_turn(t: Transition) -> None:
    """Begin a turn: the model starts to answer what the user said."""
    realtime = t.realtime
    if not realtime.owed.asking:
        return
    if realtime.owed.turn and not realtime.hearing.words:
        t.owed = replace(t.owed, asking=False)
        return
    leave_unanswered(t)
    turns.resolve_cut(t, None)  # the reply that was heard before comes first in the log
    turn = ledger.begin(t)
    t.hearing = replace(t.hearing, asked_at=t.conversation.remembered, turn=turn)
    t.owed = replace(t.owed, asking=False, turn=turn, go_on=False, said="", announcement=None, repeated=False)
    t.set_timer(WORDS, FINAL_WORDS_MS if realtime.can.detects_voice else WORDS_MS)


def leave_reply(t: Transition) -> None:
    """End a reply that a fault cut off: nothing will continue it."""
    if t.reply is not None and t.reply.goes_on:
        turns.hand_on(t)


def leave_unanswered(t: Transition) -> None:
    """End a turn that was waiting for its answer and that no reply will end: something else is answered from now on."""
    t.owed = replace(t.owed, turn=0)
    ledger.settle(t)


def joined(words: tuple[tuple[str, str], ...]) -> str:
    """Return the words of several items as one text."""
    return " ".join(filter(None, (text.strip() for _, text in words)))


def wait_for_an_answer(t: Transition) -> None:
    """Start the timer within which the model has to answer."""
    t.set_timer(ANSWER, t.settings.turn_timeout_s * 1_000)
