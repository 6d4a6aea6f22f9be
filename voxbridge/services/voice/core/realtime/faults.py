"""Continuation of a conversation with a realtime model after a fault: connection lost, worker dead, or client away. Pure.

The heard part of a response that was cut off is settled as after an interruption. The model goes on after it as soon as it can be told
and the client is there. An unanswered question is asked again. `connection` opens the connection.
"""

from __future__ import annotations

from typing import Any, Final

from msgspec.structs import replace

from voxbridge.services.voice.core import outputs as out
from voxbridge.services.voice.core import provider_events
from voxbridge.services.voice.core.realtime import connection, tool_calls, transcripts
from voxbridge.services.voice.core.state import Owed, RealtimeState
from voxbridge.services.voice.core.transition import ANSWER, Draft
from voxbridge.services.voice.core.turns import filler, interruption, turns
from voxbridge.shared.events import voice as ev

STILL_MS: Final = 1_000
"""Milliseconds after a takeover during speech in which the detector notices that the speech goes on."""


def pause(d: Draft, by: Any, *, left_ms: int | None = None) -> None:
    """Stop the reply because of a fault: settle what was heard of it, and have the model go on after it when the client is there.
    `left_ms` is how much of its audio had left for the client, None if unknown."""
    reply = d.reply
    if reply is None or filler.drop(d):
        turns.cut_trailing(d)
        return
    if d.speech.paused is not None:  # the installation's own voice had failed during this reply
        paused = d.speech.paused.playback
        d.speech.paused = replace(d.speech.paused, playback=replace(paused, blind=paused.blind or by == "disconnect"))
        interruption.settle(d, None)
        reply = d.reply
        if reply is None or interruption.was_heard(reply):
            turns.finish_reply(d)
            return
    turns.resolve_cut(d, None)
    turns.cut_trailing(d)
    realtime = d.realtime
    d.cancel(*(piece.effect for piece in reply.pieces if not piece.done))
    d.append(ev.GenerationCancelled(generation=reply.generation, by=by))
    d.outputs.append(out.Flush(reply.generation))
    d.cancel_timers("turn", "played", ANSWER)
    if reply.connection:
        turns.stop_playing(d, reply.connection)
    reply = replace(reply, playback=replace(reply.playback, left_ms=left_ms))
    mine = realtime.owed.turn in (0, reply.turn)  # else the model goes on with another turn
    being_made = realtime.ready and reply.connection == realtime.effect and not realtime.response.over
    d.response = replace(d.response, muted=realtime.response.muted or being_made)
    d.owed = replace(d.owed, go_on=True, turn=realtime.owed.turn or reply.turn)
    d.speech.reply = None
    d.speech.cut = replace(reply, goes_on=mine)
    d.speech.cut_by_speech = False
    if by == "disconnect" or reply.playback.sent is None:
        turns.resolve_cut(d, reply.playback.played_ms)
    else:
        d.set_timer("heard", turns.REPORT_WAIT_MS if d.client.reports_playback else 0)


def taken_over(d: Draft, *, left_ms: int | None) -> None:
    """Continue after a takeover: the connection ended with the dead worker."""
    realtime = d.state.realtime
    if realtime is None:
        return
    transcripts.final(d)
    realtime = d.realtime
    if d.reply is not None and not filler.drop(d):
        pause(d, "takeover", left_ms=left_ms)
        d.owed = replace(d.owed, go_on=not (realtime.response.called and realtime.tool_calls.open))
    elif (realtime.owed.question or realtime.owed.said) and not realtime.tool_calls.open:  # else the call's result starts the answer
        _ask_again_later(d, realtime)
    if d.realtime.hearing.active:  # the detector reports again if the user still speaks
        d.set_timer(transcripts.PAUSE, STILL_MS)
    d.counters.generation += 1  # a generation may have begun that the journal does not have
    d.outputs.append(out.Flush(d.counters.generation))
    connection.taken_over(d)


def lost(d: Draft, input: provider_events.ProviderLost) -> None:
    """Handle a lost connection: the audio that came is heard to its end, and the next connection continues the response."""
    realtime = d.realtime
    if input.effect != realtime.effect:
        return
    transcripts.final(d)
    realtime = d.realtime
    if d.reply is not None and _speaks(d, realtime) and not d.reply.closed:
        connection.break_off(d)
    elif (d.owed.question or d.owed.said) and not realtime.tool_calls.open and not _speaks(d, realtime):
        _ask_again_later(d, realtime)
    connection.lost(d, input)


def settle(d: Draft) -> None:
    """Have the model go on with what a fault cut off, as soon as it can be told and the client is there."""
    realtime = d.state.realtime
    _end_what_nothing_follows(d)
    _forget_what_nothing_follows(d)
    if realtime is None or not (realtime.owed.go_on and realtime.ready) or d.speech.cut is not None or d.client.away_since:
        return
    text = ""
    if realtime.owed.said:
        text = connection.GO_ON.format(realtime.owed.said)
    elif realtime.owed.question:
        text = connection.ASKED.format(realtime.owed.question)
    elif realtime.owed.turn:
        text = connection.ANSWER_AGAIN
    else:
        transcripts.leave_reply(d)
    if text:
        text = " ".join([*_found(d), text])
    owed = realtime.owed
    asking = owed.asking or bool(text and owed.turn)
    announcement = (owed.announcement or "") if text and not owed.turn else None
    d.owed = replace(owed, go_on=False, asking=asking, announcement=announcement)
    if text:
        connection.say(d, text)
    if text or realtime.owed.asking:
        transcripts.wait_for_an_answer(d)


def _end_what_nothing_follows(d: Draft) -> None:
    """End a response that a fault cut off, once it is heard, if the model will not go on with it."""
    realtime, reply = d.state.realtime, d.reply
    if reply is None or not (reply.goes_on and reply.closed):
        return
    owed = realtime.owed if realtime is not None else Owed()
    if not (owed.go_on or owed.announces or (owed.turn and owed.turn == reply.turn)):
        d.speech.reply = replace(reply, goes_on=False)
        turns.end_of_sound(d)


def _forget_what_nothing_follows(d: Draft) -> None:
    """Forget the question and the heard part of its answer if no model will go on with it: they are kept only for that."""
    realtime = d.state.realtime
    if realtime is None or d.reply is not None or d.speech.cut is not None:
        return
    owed = realtime.owed
    if (owed.question or owed.said) and not (owed.go_on or owed.turn or owed.announces or owed.asking or realtime.tool_calls.open):
        d.owed = replace(d.owed, question="", repeated=False, said="")


def _found(d: Draft) -> list[str]:
    """Return the results of calls since the user's last message: a model that is asked again must not repeat those calls."""
    history = d.conversation.history
    asked = max((index for index, one in enumerate(history) if one.role == "user"), default=0)
    names = {use.call_id: use.name for one in history[asked:] for use in one.uses}
    return [tool_calls.RESULT.format(name=names[one.call_id], result=one.text) for one in history[asked:] if one.call_id in names]


def _speaks(d: Draft, realtime: RealtimeState) -> bool:
    """Check whether the reply is the model's, over the connection that it has now."""
    return d.reply is not None and d.reply.connection == realtime.effect


def _ask_again_later(d: Draft, realtime: RealtimeState) -> None:
    """Ask the last question again over the next connection, once: waiting notes that ask for an answer are dropped."""
    notes = tuple(note for note in realtime.notes if not note.respond)
    d.owed = replace(d.owed, go_on=True)
    d.realtime = replace(d.realtime, notes=notes)
