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
from voxbridge.services.voice.core.state import Line
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
    line = transcripts.line_of(d)
    d.cancel(*(piece.effect for piece in reply.pieces if not piece.done))
    d.append(ev.GenerationCancelled(generation=reply.generation, by=by))
    d.outputs.append(out.Flush(reply.generation))
    d.cancel_timers("turn", "played", ANSWER)
    if reply.connection:
        turns.stop_playing(d, reply.connection)
    reply = replace(reply, playback=replace(reply.playback, left_ms=left_ms))
    mine = line.going_on in (0, reply.turn)  # else the model goes on with another turn
    being_made = line.ready and reply.connection == line.effect and not line.over
    connection.change(d, muted=line.muted or being_made, go_on=True, going_on=line.going_on or reply.turn)
    d.speech.reply = None
    d.speech.cut = replace(reply, goes_on=mine)
    d.speech.cut_by_speech = False
    if by == "disconnect" or reply.playback.sent is None:
        turns.resolve_cut(d, reply.playback.played_ms)
    else:
        d.set_timer("heard", turns.REPORT_WAIT_MS if d.client.reports_playback else 0)


def taken_over(d: Draft, *, left_ms: int | None) -> None:
    """Continue after a takeover: the connection ended with the dead worker."""
    line = d.state.line
    if line is None:
        return
    transcripts.final(d)
    line = transcripts.line_of(d)
    if d.reply is not None and not filler.drop(d):
        pause(d, "takeover", left_ms=left_ms)
        connection.change(d, go_on=not (line.called and line.calls))
    elif (line.asked or line.said) and not line.calls:  # else the call's result starts the answer
        _ask_again_later(d, line)
    if transcripts.line_of(d).active:  # the detector reports again if the user still speaks
        d.set_timer(transcripts.PAUSE, STILL_MS)
    d.counters.generation += 1  # a generation may have begun that the journal does not have
    d.outputs.append(out.Flush(d.counters.generation))
    connection.taken_over(d)


def lost(d: Draft, input: provider_events.ProviderLost) -> None:
    """Handle a lost connection: the audio that came is heard to its end, and the next connection continues the response."""
    line = transcripts.line_of(d)
    if input.effect != line.effect:
        return
    transcripts.final(d)
    line = transcripts.line_of(d)
    if d.reply is not None and d.reply.connection == line.effect and not d.reply.closed:
        connection.break_off(d)
    elif (line.asked or line.said) and not line.calls and not (d.reply is not None and d.reply.connection == line.effect):
        _ask_again_later(d, line)
    connection.lost(d, input)


def settle(d: Draft) -> None:
    """Have the model go on with what a fault cut off, as soon as it can be told and the client is there."""
    line = d.state.line
    _end_what_nothing_follows(d)
    _forget_what_nothing_follows(d)
    if line is None or not (line.go_on and line.ready) or d.speech.cut is not None or d.client.away_since:
        return
    text = ""
    if line.said:
        text = connection.GO_ON.format(line.said)
    elif line.asked:
        text = connection.ASKED.format(line.asked)
    elif line.going_on:
        text = connection.ANSWER_AGAIN
    else:
        transcripts.leave_reply(d)
    if text:
        text = " ".join([*_found(d), text])
    connection.change(d, go_on=False, asking=bool(text and line.going_on) or line.asking, notice=bool(text) and not line.going_on)
    if text:
        connection.say(d, text)
    if text or line.asking:
        transcripts.wait_for_an_answer(d)


def _end_what_nothing_follows(d: Draft) -> None:
    """End a response that a fault cut off, once it is heard, if the model will not go on with it."""
    line, reply = d.state.line, d.reply
    if reply is None or not (reply.goes_on and reply.closed):
        return
    if line is None or not (line.go_on or line.notice or (line.going_on and line.going_on == reply.turn)):
        d.speech.reply = replace(reply, goes_on=False)
        turns.end_of_sound(d)


def _forget_what_nothing_follows(d: Draft) -> None:
    """Forget the question and the heard part of its answer if no model will go on with it: they are kept only for that."""
    line = d.state.line
    if line is None or not (line.asked or line.said) or d.reply is not None or d.speech.cut is not None:
        return
    if not (line.go_on or line.going_on or line.notice or line.asking or line.calls):
        connection.change(d, asked="", asked_again=False, said="")


def _found(d: Draft) -> list[str]:
    """Return the results of calls since the user's last message: a model that is asked again must not repeat those calls."""
    history = d.conversation.history
    asked = max((index for index, one in enumerate(history) if one.role == "user"), default=0)
    names = {use.call_id: use.name for one in history[asked:] for use in one.uses}
    return [tool_calls.RESULT.format(name=names[one.call_id], result=one.text) for one in history[asked:] if one.call_id in names]


def _ask_again_later(d: Draft, line: Line) -> None:
    """Ask the last question again over the next connection, once: waiting notes that ask for an answer are dropped."""
    notes = tuple(note for note in line.notes if not note.respond)
    connection.change(d, go_on=True, notes=notes)
