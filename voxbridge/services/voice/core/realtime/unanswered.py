"""Silence of a realtime model: it is asked once more, and then apologised for. Pure."""

from __future__ import annotations

from typing import Final

from msgspec.structs import replace

from voxbridge.services.voice.core import outputs as out
from voxbridge.services.voice.core.cascade import speaking
from voxbridge.services.voice.core.realtime import connection, transcripts
from voxbridge.services.voice.core.state import Outage
from voxbridge.services.voice.core.transition import ANSWER, Transition
from voxbridge.services.voice.core.turns import ledger, turns
from voxbridge.shared.events import voice as ev

ANNOUNCE: Final = "Say this to the user now, in your own voice and nothing else: {}"

ASKED: Final = "(The user is asked now, by another voice: {} Their answer is taken without you. Do not ask it, and do not answer it.)"


def timed_out(t: Transition) -> None:
    """Handle the answer timer: nothing came from the model within the turn timeout."""
    t.hearing = replace(t.hearing, speaking=False)
    realtime, reply = t.realtime, t.reply
    if realtime.tool_calls.open or not realtime.ready or (reply is not None and not (reply.connection or reply.filler)):
        transcripts.wait_for_an_answer(t)
        return
    t.response = replace(t.response, muted=False)
    if reply is not None and not reply.closed and reply.connection == realtime.effect:
        connection.break_off(t)
    elif realtime.hearing.words and realtime.owed.asking and not realtime.hearing.turn and realtime.hearing.ended_at < realtime.answered_at:
        # Words said while the model spoke, which it did not answer.
        transcripts.finish(t)
        t.owed = replace(t.owed, question="", turn=0)
        ledger.complete(t, t.counters.turns, "no_speech")
        t.set_timer("idle", t.settings.idle_timeout_s * 1_000)
        return
    elif not (realtime.hearing.words or realtime.owed.question or realtime.owed.go_on or realtime.owed.announces or realtime.owed.turn):
        transcripts.leave_reply(t)
        t.owed = replace(t.owed, asking=False, said="")  # what sounded like speech had no words
        t.set_timer("idle", t.settings.idle_timeout_s * 1_000)
        return
    message = f"Nothing came for {t.settings.turn_timeout_s} s."
    if realtime.owed.announcement:
        passed_over(t, realtime.owed.announcement, message)
    else:
        ask_again(t, message, reconnect=True)


def passed_over(t: Transition, announcement: str, message: str) -> None:
    """Handle an announcement that the model did not make: ask it once more, then have the installation's own voice say it."""
    error = ev.Failure(code="PROVIDER_REFUSED", message=message, retryable=True)
    t.append(ev.ProviderFailed(part="llm", error=error, turn=0, handled=True))
    if not t.owed.repeated:
        t.owed = replace(t.owed, repeated=True)
        connection.say(t, ANNOUNCE.format(announcement))
        transcripts.wait_for_an_answer(t)
    else:
        t.owed = replace(t.owed, announcement=None, repeated=False)
        t.cancel_timers(ANSWER)
        if t.settings.owns_up:
            _own_up(t, "", 0, instead=announcement)


def ask_again(t: Transition, message: str, *, reconnect: bool = False) -> None:
    """Handle a model that does not answer: ask it once more, then apologise for it."""
    realtime, reply = t.realtime, t.reply
    asking = (
        realtime.owed.asking or bool(realtime.owed.question) or realtime.owed.go_on or realtime.owed.announces or bool(realtime.owed.turn)
    )
    if not asking:
        return
    transcripts.finish(t)  # it is asked again in text, or apologised for
    realtime = t.realtime
    error = ev.Failure(code="TIMED_OUT" if reconnect else "PROVIDER_REFUSED", message=message, retryable=True)
    again = not realtime.owed.repeated
    t.append(ev.ProviderFailed(part="llm", error=error, turn=t.counters.turns, handled=again))
    if reply is not None and reply.connection == realtime.effect and not reply.closed:
        t.outputs.append(out.Flush(reply.generation))
        t.speech.reply = None
        turns.cut_trailing(t)
    if again:
        t.owed = replace(t.owed, repeated=True, question=realtime.owed.question or connection.ANSWER_AGAIN)
        if reconnect:
            t.realtime = replace(t.realtime, outage=Outage(since=t.now, restoring=True))
            t.owed = replace(t.owed, go_on=bool(realtime.owed.question or realtime.owed.said or realtime.owed.turn) or realtime.owed.go_on)
            connection.connect(t)
        else:
            connection.say(t, realtime.owed.question or connection.ANSWER_AGAIN)
        t.realtime = replace(t.realtime, awaited=True)
        transcripts.wait_for_an_answer(t)
        return
    t.owed = replace(t.owed, asking=False, question="", repeated=False, go_on=False, said="", announcement=None)
    t.realtime = replace(t.realtime, awaited=False)
    t.cancel_timers(ANSWER)
    transcripts.leave_reply(t)
    turn = realtime.owed.turn or realtime.hearing.turn
    transcripts.final(t)
    t.owed = replace(t.owed, turn=0)
    if t.settings.owns_up:
        _own_up(t, speaking.APOLOGIES["silence" if reconnect else "llm"], turn)
    elif turn:
        ledger.complete(t, turn, "failed")
    t.set_timer("idle", t.settings.idle_timeout_s * 1_000)


def _own_up(t: Transition, apology: str, turn: int, *, instead: str = "") -> None:
    """Have the installation's own voice apologise in the same turn for a missing answer, or say `instead`, an announcement that the
    model did not make. No model is told of the apology."""
    if t.reply is not None:
        turns.hand_on(t, goes_on=t.reply.goes_on)
    turns.say(t, instead or apology, turn=turn, failed=not instead)
    speaking.speak(t)


def ask_instead(t: Transition, question: str) -> None:
    """Have the installation's own voice put a question, which no model may put in other words; the model is told of it."""
    connection.say(t, ASKED.format(question), respond=False)
    _own_up(t, "", 0, instead=question)


def owns_up_to_loss(t: Transition) -> bool:
    """Apologise for the final loss of the connection; the session ends when that was heard. Return False if the client is away or the
    session makes no such apologies."""
    realtime = t.realtime
    if t.client.away_since or not t.settings.owns_up:
        return False
    transcripts.leave_reply(t)
    turn = realtime.owed.turn or realtime.hearing.turn
    transcripts.final(t)
    t.owed = replace(t.owed, asking=False, question="", go_on=False, said="", announcement=None, turn=0)
    t.team.handoff = None  # it cannot complete any more, and would keep the apology from being finished
    _own_up(t, speaking.APOLOGIES["lost"], turn)
    return True
