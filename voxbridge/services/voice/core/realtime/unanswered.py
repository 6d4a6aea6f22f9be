"""Silence of a realtime model: it is asked once more, and then apologised for. Pure."""

from __future__ import annotations

from typing import Final

from msgspec.structs import replace

from voxbridge.services.voice.core import outputs as out
from voxbridge.services.voice.core.cascade import speaking
from voxbridge.services.voice.core.realtime import connection, transcripts
from voxbridge.services.voice.core.state import Outage
from voxbridge.services.voice.core.transition import ANSWER, Draft
from voxbridge.services.voice.core.turns import ledger, turns
from voxbridge.shared.events import voice as ev

ANNOUNCE: Final = "Say this to the user now, in your own voice and nothing else: {}"


def timed_out(d: Draft) -> None:
    """Handle the answer timer: nothing came from the model within the turn timeout."""
    d.hearing = replace(d.hearing, speaking=False)
    realtime, reply = d.realtime, d.reply
    if realtime.tool_calls.open or not realtime.ready or (reply is not None and not (reply.connection or reply.filler)):
        transcripts.wait_for_an_answer(d)
        return
    d.response = replace(d.response, muted=False)
    if reply is not None and not reply.closed and reply.connection == realtime.effect:
        connection.break_off(d)
    elif realtime.hearing.words and realtime.owed.asking and not realtime.hearing.turn and realtime.hearing.ended_at < realtime.answered_at:
        # Words said while the model spoke, which it did not answer.
        transcripts.finish(d)
        d.owed = replace(d.owed, question="", turn=0)
        ledger.complete(d, d.counters.turns, "no_speech")
        d.set_timer("idle", d.settings.idle_timeout_s * 1_000)
        return
    elif not (realtime.hearing.words or realtime.owed.question or realtime.owed.go_on or realtime.owed.announces or realtime.owed.turn):
        transcripts.leave_reply(d)
        d.owed = replace(d.owed, asking=False, said="")  # what sounded like speech had no words
        d.set_timer("idle", d.settings.idle_timeout_s * 1_000)
        return
    message = f"Nothing came for {d.settings.turn_timeout_s} s."
    if realtime.owed.announcement:
        passed_over(d, realtime.owed.announcement, message)
    else:
        ask_again(d, message, reconnect=True)


def passed_over(d: Draft, announcement: str, message: str) -> None:
    """Handle an announcement that the model did not make: ask it once more, then have the installation's own voice say it."""
    error = ev.Failure(code="PROVIDER_REFUSED", message=message, retryable=True)
    d.append(ev.ProviderFailed(part="llm", error=error, turn=0, handled=True))
    if not d.owed.repeated:
        d.owed = replace(d.owed, repeated=True)
        connection.say(d, ANNOUNCE.format(announcement))
        transcripts.wait_for_an_answer(d)
    else:
        d.owed = replace(d.owed, announcement=None, repeated=False)
        d.cancel_timers(ANSWER)
        if d.settings.owns_up:
            _own_up(d, "", 0, instead=announcement)


def ask_again(d: Draft, message: str, *, reconnect: bool = False) -> None:
    """Handle a model that does not answer: ask it once more, then apologise for it."""
    realtime, reply = d.realtime, d.reply
    asking = (
        realtime.owed.asking or bool(realtime.owed.question) or realtime.owed.go_on or realtime.owed.announces or bool(realtime.owed.turn)
    )
    if not asking:
        return
    transcripts.finish(d)  # it is asked again in text, or apologised for
    realtime = d.realtime
    error = ev.Failure(code="TIMED_OUT" if reconnect else "PROVIDER_REFUSED", message=message, retryable=True)
    again = not realtime.owed.repeated
    d.append(ev.ProviderFailed(part="llm", error=error, turn=d.counters.turns, handled=again))
    if reply is not None and reply.connection == realtime.effect and not reply.closed:
        d.outputs.append(out.Flush(reply.generation))
        d.speech.reply = None
        turns.cut_trailing(d)
    if again:
        d.owed = replace(d.owed, repeated=True, question=realtime.owed.question or connection.ANSWER_AGAIN)
        if reconnect:
            d.realtime = replace(d.realtime, outage=Outage(since=d.now, restoring=True))
            d.owed = replace(d.owed, go_on=bool(realtime.owed.question or realtime.owed.said or realtime.owed.turn) or realtime.owed.go_on)
            connection.connect(d)
        else:
            connection.say(d, realtime.owed.question or connection.ANSWER_AGAIN)
        d.realtime = replace(d.realtime, awaited=True)
        transcripts.wait_for_an_answer(d)
        return
    d.owed = replace(d.owed, asking=False, question="", repeated=False, go_on=False, said="", announcement=None)
    d.realtime = replace(d.realtime, awaited=False)
    d.cancel_timers(ANSWER)
    transcripts.leave_reply(d)
    turn = realtime.owed.turn or realtime.hearing.turn
    transcripts.final(d)
    d.owed = replace(d.owed, turn=0)
    if d.settings.owns_up:
        _own_up(d, speaking.APOLOGIES["silence" if reconnect else "llm"], turn)
    elif turn:
        ledger.complete(d, turn, "failed")
    d.set_timer("idle", d.settings.idle_timeout_s * 1_000)


def _own_up(d: Draft, apology: str, turn: int, *, instead: str = "") -> None:
    """Have the installation's own voice apologise in the same turn for a missing answer, or say `instead`, an announcement that the
    model did not make. No model is told of the apology."""
    if d.reply is not None:
        turns.hand_on(d, goes_on=d.reply.goes_on)
    turns.say(d, instead or apology, turn=turn, failed=not instead)
    speaking.speak(d)


def owns_up_to_loss(d: Draft) -> bool:
    """Apologise for the final loss of the connection; the session ends when that was heard. Return False if the client is away or the
    session makes no such apologies."""
    realtime = d.realtime
    if d.client.away_since or not d.settings.owns_up:
        return False
    transcripts.leave_reply(d)
    turn = realtime.owed.turn or realtime.hearing.turn
    transcripts.final(d)
    d.owed = replace(d.owed, asking=False, question="", go_on=False, said="", announcement=None, turn=0)
    d.team.handoff = None  # it cannot complete any more, and would keep the apology from being finished
    _own_up(d, speaking.APOLOGIES["lost"], turn)
    return True
