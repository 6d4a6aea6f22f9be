"""A conversation with a realtime model over a fault: its connection lost, its worker dead, its client away. Pure.

What was heard of a response that was cut off is settled as after an interruption, and the model goes on after it as soon as it can be
told and somebody is there to hear it. What was asked and not answered is asked again. `live` opens the connection.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from voxbridge.services.voice.core import outputs as out
from voxbridge.services.voice.core import provider_events
from voxbridge.services.voice.core.realtime import connection, tool_calls, transcripts
from voxbridge.services.voice.core.state import Line
from voxbridge.services.voice.core.transition import ANSWER, Draft
from voxbridge.services.voice.core.turns import filler, interruption, turns
from voxbridge.shared.events import voice as ev

STILL_MS: Final = 1_000
"""After a takeover in the middle of speech, the time in which the detector notices that it goes on."""


def pause(d: Draft, by: Any, *, left_ms: int | None = None) -> None:
    """The reply is stopped by a fault: what was heard of it is settled, and the model goes on after it when there is somebody to
    hear it. `left_ms` is how much of its audio had left for the client, where that is known."""
    reply = d.reply
    if reply is None or filler.drop(d):
        turns.cut_trailing(d)
        return
    if d.state.paused is not None:  # the installation's own voice had failed during this reply
        d.state.paused = msgspec.structs.replace(d.state.paused, blind=d.state.paused.blind or by == "disconnect")
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
    if reply.line:
        turns.stop_playing(d, reply.line)
    reply = msgspec.structs.replace(reply, left_ms=left_ms)
    mine = line.going_on in (0, reply.turn)  # else the model goes on with another turn
    being_made = line.ready and reply.line == line.effect and not line.over
    connection.change(d, muted=line.muted or being_made, go_on=True, going_on=line.going_on or reply.turn)
    d.state.reply = None
    d.state.cut = msgspec.structs.replace(reply, goes_on=mine)
    d.state.cut_by_speech = False
    if by == "disconnect" or reply.sent is None:
        turns.resolve_cut(d, reply.played_ms)
    else:
        d.set_timer("heard", turns.REPORT_WAIT_MS if d.state.reports_playback else 0)


def taken_over(d: Draft, *, left_ms: int | None) -> None:
    """Another worker goes on: the connection died with the one before."""
    line = d.state.line
    if line is None:
        return
    transcripts.final(d)
    line = transcripts.line_of(d)
    if d.reply is not None and not filler.drop(d):
        pause(d, "takeover", left_ms=left_ms)
        connection.change(d, go_on=not (line.called and line.calls))
    elif (line.asked or line.said) and not line.calls:  # the result of a call is an answer's beginning
        _ask_again_later(d, line)
    if transcripts.line_of(d).active:  # the detector tells again if the user still speaks
        d.set_timer(transcripts.PAUSE, STILL_MS)
    d.state.generation += 1  # one may have begun that the journal does not know
    d.outputs.append(out.Flush(d.state.generation))
    connection.taken_over(d)


def lost(d: Draft, input: provider_events.ProviderLost) -> None:
    """The connection is lost: what it was saying is heard as far as it came, and gone on with over the next one."""
    line = transcripts.line_of(d)
    if input.effect != line.effect:
        return
    transcripts.final(d)
    line = transcripts.line_of(d)
    if d.reply is not None and d.reply.line == line.effect and not d.reply.closed:
        connection.break_off(d)
    elif (line.asked or line.said) and not line.calls and not (d.reply is not None and d.reply.line == line.effect):
        _ask_again_later(d, line)
    connection.lost(d, input)


def settle(d: Draft) -> None:
    """Have the model go on with what a fault cut off, as soon as it can be told and somebody is there to hear it."""
    line = d.state.line
    _end_what_nothing_follows(d)
    _forget_what_nothing_follows(d)
    if line is None or not (line.go_on and line.ready) or d.state.cut is not None or d.state.away_since:
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
    """A response that a fault cut off, and that the model will not go on with, is over when it was heard."""
    line, reply = d.state.line, d.reply
    if reply is None or not (reply.goes_on and reply.closed):
        return
    if line is None or not (line.go_on or line.notice or (line.going_on and line.going_on == reply.turn)):
        d.state.reply = msgspec.structs.replace(reply, goes_on=False)
        turns.end_of_sound(d)


def _forget_what_nothing_follows(d: Draft) -> None:
    """Forget what was asked and what was heard of the answer where no model goes on with it: it is kept for that one alone."""
    line = d.state.line
    if line is None or not (line.asked or line.said) or d.reply is not None or d.state.cut is not None:
        return
    if not (line.go_on or line.going_on or line.notice or line.asking or line.calls):
        connection.change(d, asked="", asked_again=False, said="")


def _found(d: Draft) -> list[str]:
    """What the calls of the turn that goes on have found: who is asked again must not make them again."""
    history = d.state.history
    asked = max((index for index, one in enumerate(history) if one.role == "user"), default=0)
    names = {use.call_id: use.name for one in history[asked:] for use in one.uses}
    return [tool_calls.RESULT.format(name=names[one.call_id], result=one.text) for one in history[asked:] if one.call_id in names]


def _ask_again_later(d: Draft, line: Line) -> None:
    """What was asked last is asked over the next connection, once."""
    notes = tuple(note for note in line.notes if not note.respond)
    connection.change(d, go_on=True, notes=notes)
