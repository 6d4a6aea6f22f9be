"""Continuation of a conversation with a realtime model after a fault: connection lost, worker dead, or client away. Pure.

The heard part of a response that was cut off is settled as after an interruption. The model goes on after it as soon as it can be told
and the client is there. An unanswered question is asked again. `connection` opens the connection.
"""

from __future__ import annotations

from typing import Final, Literal

from msgspec.structs import replace

from voxbridge.services.voice.core import inputs, provider_events
from voxbridge.services.voice.core import outputs as out
from voxbridge.services.voice.core.realtime import connection, tool_calls, transcripts
from voxbridge.services.voice.core.state import Owed, RealtimeState
from voxbridge.services.voice.core.transition import ANSWER, Transition
from voxbridge.services.voice.core.turns import filler, paused_reply, turns
from voxbridge.shared.events import voice as ev

STILL_MS: Final = 1_000
"""Milliseconds after a takeover during speech in which the detector notices that the speech goes on."""


def pause(t: Transition, by: Literal["takeover", "disconnect", "failure"], *, left_ms: int | None = None) -> None:
    """Stop the reply because of a fault: settle what was heard of it, and have the model go on after it when the client is there.
    `left_ms` is how much of its audio had left for the client, None if unknown."""
    reply = t.reply
    if reply is None or filler.drop(t):
        turns.cut_trailing(t)
        return
    if t.speech.paused is not None:  # the installation's own voice had failed during this reply
        paused = t.speech.paused.playback
        t.speech.paused = replace(t.speech.paused, playback=replace(paused, blind=paused.blind or by == "disconnect"))
        paused_reply.settle(t, None)
        reply = t.reply
        if reply is None or paused_reply.was_heard(reply):
            turns.finish_reply(t)
            return
    turns.resolve_cut(t, None)
    turns.cut_trailing(t)
    realtime = t.realtime
    t.cancel(*(piece.effect for piece in reply.pieces if not piece.done))
    t.append(ev.GenerationCancelled(generation=reply.generation, by=by))
    t.outputs.append(out.Flush(reply.generation))
    t.cancel_timers("turn", "played", ANSWER)
    if reply.connection:
        turns.stop_playing(t, reply.connection)
    reply = replace(reply, playback=replace(reply.playback, left_ms=left_ms))
    mine = realtime.owed.turn in (0, reply.turn)  # else the model goes on with another turn
    being_made = realtime.ready and reply.connection == realtime.effect and not realtime.response.over
    t.response = replace(t.response, muted=realtime.response.muted or being_made)
    t.owed = replace(t.owed, go_on=True, turn=realtime.owed.turn or reply.turn)
    t.speech.reply = None
    t.speech.cut = replace(reply, goes_on=mine)
    t.speech.cut_by_speech = False
    if by == "disconnect" or reply.playback.sent is None:
        turns.resolve_cut(t, reply.playback.played_ms)
    else:
        t.set_timer("heard", turns.REPORT_WAIT_MS if t.client.reports_playback else 0)


def taken_over(t: Transition, *, left_ms: int | None) -> None:
    """Continue after a takeover: the connection ended with the dead worker."""
    realtime = t.state.realtime
    if realtime is None:
        return
    transcripts.final(t)
    realtime = t.realtime
    if t.reply is not None and not filler.drop(t):
        pause(t, "takeover", left_ms=left_ms)
        t.owed = replace(t.owed, go_on=not (realtime.response.called and realtime.tool_calls.open))
    elif (realtime.owed.question or realtime.owed.said) and not realtime.tool_calls.open:  # else the call's result starts the answer
        _ask_again_later(t, realtime)
    if t.realtime.hearing.active:  # the detector reports again if the user still speaks
        t.set_timer(transcripts.PAUSE, STILL_MS)
    t.counters.generation += 1  # a generation may have begun that the journal does not have
    t.outputs.append(out.Flush(t.counters.generation))
    connection.taken_over(t)


def lost(t: Transition, input: provider_events.ProviderLost) -> None:
    """Handle a lost connection: the audio that came is heard to its end, and the next connection continues the response."""
    realtime = t.realtime
    if input.effect != realtime.effect:
        return
    transcripts.final(t)
    realtime = t.realtime
    if t.reply is not None and _speaks(t, realtime) and not t.reply.closed:
        connection.break_off(t)
    elif (t.owed.question or t.owed.said) and not realtime.tool_calls.open and not _speaks(t, realtime):
        _ask_again_later(t, realtime)
    connection.lost(t, input)


def settle(t: Transition) -> None:
    """Have the model go on with what a fault cut off, as soon as it can be told and the client is there."""
    realtime = t.state.realtime
    _end_what_nothing_follows(t)
    _forget_what_nothing_follows(t)
    if realtime is None or not (realtime.owed.go_on and realtime.ready) or t.speech.cut is not None or t.client.away_since:
        return
    text = ""
    if realtime.owed.said:
        text = connection.GO_ON.format(realtime.owed.said)
    elif realtime.owed.question:
        begins = t.settings.rules >= inputs.WRITES and not realtime.answered_at  # it was kept from nothing yet
        text = realtime.owed.question if begins else connection.ASKED.format(realtime.owed.question)
    elif realtime.owed.turn:
        text = connection.ANSWER_AGAIN
    else:
        transcripts.leave_reply(t)
    if text:
        text = " ".join([*_found(t), text])
    owed = realtime.owed
    asking = owed.asking or bool(text and owed.turn)
    announcement = (owed.announcement or "") if text and not owed.turn else None
    t.owed = replace(owed, go_on=False, asking=asking, announcement=announcement)
    if text:
        connection.say(t, text)
    if text or realtime.owed.asking:
        transcripts.wait_for_an_answer(t)


def _end_what_nothing_follows(t: Transition) -> None:
    """End a response that a fault cut off, once it is heard, if the model will not go on with it."""
    realtime, reply = t.state.realtime, t.reply
    if reply is None or not (reply.goes_on and reply.closed):
        return
    owed = realtime.owed if realtime is not None else Owed()
    if not (owed.go_on or owed.announces or (owed.turn and owed.turn == reply.turn)):
        t.speech.reply = replace(reply, goes_on=False)
        turns.end_of_sound(t)


def _forget_what_nothing_follows(t: Transition) -> None:
    """Forget the question and the heard part of its answer if no model will go on with it: they are kept only for that."""
    realtime = t.state.realtime
    if realtime is None or t.reply is not None or t.speech.cut is not None:
        return
    owed = realtime.owed
    if (owed.question or owed.said) and not (owed.go_on or owed.turn or owed.announces or owed.asking or realtime.tool_calls.open):
        t.owed = replace(t.owed, question="", repeated=False, said="")


def _found(t: Transition) -> list[str]:
    """Return the results of calls since the user's last message: a model that is asked again must not repeat those calls."""
    history = t.conversation.history
    asked = max((index for index, one in enumerate(history) if one.role == "user"), default=0)
    names = {use.call_id: use.name for one in history[asked:] for use in one.uses}
    return [tool_calls.RESULT.format(name=names[one.call_id], result=one.text) for one in history[asked:] if one.call_id in names]


def _speaks(t: Transition, realtime: RealtimeState) -> bool:
    """Check whether the reply is the model's, over the connection that it has now."""
    return t.reply is not None and t.reply.connection == realtime.effect


def _ask_again_later(t: Transition, realtime: RealtimeState) -> None:
    """Ask the last question again over the next connection, once: waiting notes that ask for an answer are dropped."""
    notes = tuple(note for note in realtime.notes if not note.respond)
    t.owed = replace(t.owed, go_on=True)
    t.realtime = replace(t.realtime, notes=notes)
