"""What the user says to a realtime model: voice, words, and the turn that they begin. Pure.

The words come beside the answer and in no order: they are final when the provider says so, or soon after the answer began. Where
the installation's own detector listens, it tells the model when the user speaks.
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
"""Silence after which the user has finished, beyond the 256 ms that the detector waits itself."""
WORDS: Final = "words"
WORDS_MS: Final = 800
"""After an answer began, the time in which words that come still belong to what is answered."""
FINAL_WORDS_MS: Final = 5_000
"""The same where the provider says which words are final: they take the time that a transcription takes."""
FINAL_LIMIT: Final = 16
WORDS_LIMIT: Final = 8_000
BEFORE_ONSET_MS: Final = 1_000
"""Interruptions are told of this much after the speech began."""


def user_words(d: Draft, input: provider_events.UserWords) -> None:
    """More of what the user said."""
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
        d.tell(PartialTranscript("user", shown, turn=line.turn or d.state.turns + 1))
    if input.whole and not shown and not line.turn:
        noises.go_on(d)
    if answering and input.whole:
        final(d)
    elif not answering:
        wait_for_an_answer(d)


def user_voice(d: Draft, input: provider_events.UserVoice) -> None:
    """The provider's detector."""
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
    """Silence the installation's own voice: of what that says the model knows nothing, so it does not say that it was interrupted."""
    if d.reply is not None and not d.reply.line:
        turns.cancel_reply(d, "barge_in")


def activity(d: Draft, *, speaking: bool, audio_ms: int) -> None:
    """The installation's own detector, where the model is told when the user speaks. A short pause is none."""
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
    """The user has been silent for long enough."""
    line = line_of(d)
    if line.active:
        connection.change(d, active=False, ended_at=d.now)
        d.append(ev.SpeechEnded(source="vad", audio_ms=line.pause_ms))
        d.outputs.append(out.Activity(line.effect, speaking=False))
        wait_for_an_answer(d)


def final(d: Draft) -> None:
    """What was transcribed so far is what the user said."""
    line = line_of(d)
    text, turn = joined(line.words), line.turn
    d.cancel_timers(WORDS)
    if not turn:
        return
    final = (*line.final, *(item for item, _ in line.words if item))[-FINAL_LIMIT:]
    connection.change(d, words=(), turn=0, final=final)
    if text:
        turns.resolve_cut(d, None)  # what was heard before comes before
        d.append(ev.UserSaid(text=text, turn=turn, source="speech"))
        memory.remember_user(d, text, at=line.asked_at)
        if line_of(d).going_on == turn:  # else it was answered meanwhile
            connection.change(d, asked=text)


def are_due(d: Draft) -> bool:
    """Whether the provider will still say what the user said, or has said only a part of it."""
    line = line_of(d)
    return line.turn != 0 and connection.can(line).detects_voice


def finish(d: Draft) -> None:
    """Something else was said: what was transcribed so far was a turn of its own."""
    line = line_of(d)
    if joined(line.words) and not line.turn:
        begin_turn(d)
        connection.change(d, from_ms=max(line.from_ms, line.audio_ms))  # it is not to be heard again
    final(d)


def expect(d: Draft) -> None:
    """The model answers what it was not known to be asked: the words are still to come."""
    line = line_of(d)
    if not (line.asking or line.notice or line.going_on):
        connection.change(d, asking=True)


def begin_turn(d: Draft) -> None:
    """The model begins to answer what the user said."""
    line = line_of(d)
    if not line.asking:
        return
    if line.going_on and not line.words:
        connection.change(d, asking=False)
        return
    leave_unanswered(d)
    turns.resolve_cut(d, None)  # what was heard before comes before
    turn = ledger.begin(d)
    connection.change(
        d,
        asked_at=d.state.remembered,
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
    """Nothing will follow a response that a fault cut off: it is over."""
    if d.reply is not None and d.reply.goes_on:
        turns.hand_on(d)


def leave_unanswered(d: Draft) -> None:
    """Something else is answered from now on: a turn that is not over and that no reply ends is over."""
    connection.change(d, going_on=0)
    ledger.settle(d)


def joined(words: tuple[tuple[str, str], ...]) -> str:
    return " ".join(filter(None, (text.strip() for _, text in words)))


def wait_for_an_answer(d: Draft) -> None:
    d.set_timer(ANSWER, d.state.turn_timeout_s * 1_000)


def line_of(d: Draft) -> Line:
    if d.state.line is None:
        raise RuntimeError("a connection was expected")
    return d.state.line
