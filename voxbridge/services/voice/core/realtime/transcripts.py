"""Speech of the user to a realtime model: voice activity, words, and the turn that they begin. Pure.

Words arrive in parallel to the answer, in no fixed order. They are final when the provider says so, or soon after the answer began.
If the installation's own detector is used, the model is told by it when the user speaks.
"""

from __future__ import annotations

from typing import Final

from voxbridge.services.voice.core import outputs as out
from voxbridge.services.voice.core import provider_events
from voxbridge.services.voice.core.prompt import memory
from voxbridge.services.voice.core.realtime import connection, noises
from voxbridge.services.voice.core.state import Line
from voxbridge.services.voice.core.transition import ANSWER, Draft
from voxbridge.services.voice.core.turns import ledger, turns
from voxbridge.shared.bus.moments import PartialTranscript
from voxbridge.shared.events import voice as ev

PAUSE: Final = "pause"
PAUSE_MS: Final = 450
"""Milliseconds of silence after which the user has finished, in addition to the 256 ms that the detector itself waits."""
WORDS: Final = "words"
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
    line = line_of(d)
    if input.item and input.item in line.final:
        return
    if input.text.strip() and not line.turn:
        _speaks_up(d)
    items = dict(line.words)
    text = input.text if input.whole else items.get(input.item, "") + input.text
    items[input.item] = text[:WORDS_LIMIT]
    words = tuple((item, text) for item, text in items.items() if text)
    answering = line.turn != 0
    if not answering and d.reply is not None and not d.reply.filler:
        _speaks_up(d)
    awaited = line.awaited or (not answering and bool(input.text.strip()))
    connection.change(d, words=words, ended_at=d.now, audio_ms=input.audio_ms, asking=line.asking or not answering, awaited=awaited)
    shown = joined(words)
    if shown:
        d.tell(PartialTranscript("user", shown, turn=line.turn or d.counters.turns + 1))
    if input.whole and not shown and not line.turn:
        noises.go_on(d)
    if answering and input.whole:
        final(d)
    elif not answering:
        wait_for_an_answer(d)


def user_voice(d: Draft, input: provider_events.UserVoice) -> None:
    """Record voice activity reported by the provider's detector."""
    line = line_of(d)
    if input.speaking:
        final(d)
        _speaks_up(d)
        d.append(ev.SpeechStarted(source="provider", audio_ms=input.audio_ms))
        from_ms = max(line.from_ms, input.audio_ms - BEFORE_ONSET_MS)
        connection.change(d, asking=True, speaking=True, from_ms=from_ms, audio_ms=input.audio_ms)
        wait_for_an_answer(d)
    else:
        d.append(ev.SpeechEnded(source="provider", audio_ms=input.audio_ms))
        connection.change(d, ended_at=d.now, speaking=False)
        wait_for_an_answer(d)


def _speaks_up(d: Draft) -> None:
    """Silence the installation's own voice: the model does not know that it speaks, so it reports no interruption of it."""
    if d.reply is not None and not d.reply.connection:
        turns.cancel_reply(d, "barge_in")


def activity(d: Draft, *, speaking: bool, audio_ms: int) -> None:
    """Pass voice activity of the installation's own detector to the model. Pauses shorter than `PAUSE_MS` are ignored."""
    line = line_of(d)
    if speaking:
        if not line.active:
            final(d)
            _speaks_up(d)
            d.append(ev.SpeechStarted(source="vad", audio_ms=audio_ms))
            from_ms = max(line.from_ms, audio_ms - BEFORE_ONSET_MS)
            connection.change(d, active=True, asking=True, from_ms=from_ms, go_on=False, said="", audio_ms=audio_ms)
            d.outputs.append(out.Activity(line.effect, speaking=True))
            if d.reply is not None:
                connection.change(d, cut=not line.over, going_on=0, said="", written="")
                turns.cancel_reply(d, "barge_in")
        d.cancel_timers(PAUSE)
    elif line.active:
        connection.change(d, pause_ms=audio_ms)
        d.set_timer(PAUSE, PAUSE_MS)


def activity_over(d: Draft) -> None:
    """End the user's activity: the silence lasted long enough."""
    line = line_of(d)
    if line.active:
        connection.change(d, active=False, ended_at=d.now)
        d.append(ev.SpeechEnded(source="vad", audio_ms=line.pause_ms))
        d.outputs.append(out.Activity(line.effect, speaking=False))
        wait_for_an_answer(d)


def final(d: Draft) -> None:
    """Record the words transcribed so far as what the user said, if their turn has begun."""
    line = line_of(d)
    text, turn = joined(line.words), line.turn
    d.cancel_timers(WORDS)
    if not turn:
        return
    final = (*line.final, *(item for item, _ in line.words if item))[-FINAL_LIMIT:]
    connection.change(d, words=(), turn=0, final=final)
    if text:
        turns.resolve_cut(d, None)  # the reply that was heard before comes first in the log
        d.append(ev.UserSaid(text=text, turn=turn, source="speech"))
        memory.remember_user(d, text, at=line.asked_at)
        if line_of(d).going_on == turn:  # else it has been answered
            connection.change(d, asked=text)


def are_due(d: Draft) -> bool:
    """Check whether the provider is still to send words of the user, or the rest of them."""
    line = line_of(d)
    return line.turn != 0 and connection.can(line).detects_voice


def finish(d: Draft) -> None:
    """Make the words transcribed so far a turn of their own: something else was said since."""
    line = line_of(d)
    if joined(line.words) and not line.turn:
        begin_turn(d)
        connection.change(d, from_ms=max(line.from_ms, line.audio_ms))  # its audio is not to be sent again
    final(d)


def expect(d: Draft) -> None:
    """Expect words of the user: the model answers a question that has not been transcribed yet."""
    line = line_of(d)
    if not (line.asking or line.notice or line.going_on):
        connection.change(d, asking=True)


def begin_turn(d: Draft) -> None:
    """Begin a turn: the model starts to answer what the user said."""
    line = line_of(d)
    if not line.asking:
        return
    if line.going_on and not line.words:
        connection.change(d, asking=False)
        return
    leave_unanswered(d)
    turns.resolve_cut(d, None)  # the reply that was heard before comes first in the log
    turn = ledger.begin(d)
    connection.change(
        d,
        asked_at=d.conversation.remembered,
        asking=False,
        turn=turn,
        going_on=turn,
        go_on=False,
        said="",
        notice=False,
        announced="",
        asked_again=False,
    )
    d.set_timer(WORDS, FINAL_WORDS_MS if connection.can(line).detects_voice else WORDS_MS)


def leave_reply(d: Draft) -> None:
    """End a reply that a fault cut off: nothing will continue it."""
    if d.reply is not None and d.reply.goes_on:
        turns.hand_on(d)


def leave_unanswered(d: Draft) -> None:
    """End a turn that was waiting for its answer and that no reply will end: something else is answered from now on."""
    connection.change(d, going_on=0)
    ledger.settle(d)


def joined(words: tuple[tuple[str, str], ...]) -> str:
    return " ".join(filter(None, (text.strip() for _, text in words)))


def wait_for_an_answer(d: Draft) -> None:
    d.set_timer(ANSWER, d.settings.turn_timeout_s * 1_000)


def line_of(d: Draft) -> Line:
    if d.state.line is None:
        raise RuntimeError("a connection was expected")
    return d.state.line
