"""Turns, independent of the kind of model: what was said and heard, replies, calls, notices. Pure.

A turn begins with what the user said, and ends when the reply was heard, was cut off, or failed. `listening` (speech to text) and
`speaking` (text to speech) call this module.
"""

from __future__ import annotations

from typing import Any, Final, Literal

from msgspec.structs import replace

from voxbridge.services.voice.core import outputs as out
from voxbridge.services.voice.core.prompt import memory
from voxbridge.services.voice.core.state import Reply, Round, Speaker, Stamps
from voxbridge.services.voice.core.transition import Draft
from voxbridge.services.voice.core.turns import interruption, ledger, playout, rounds, trailing
from voxbridge.services.voice.core.turns import usage as turns_usage
from voxbridge.shared.agents.functions import failed_result
from voxbridge.shared.bus.moments import PartialTranscript
from voxbridge.shared.errors import Code
from voxbridge.shared.events import voice as ev

REPORT_WAIT_MS: Final = 400
"""Milliseconds a client has after a flush to report what it had played."""

PLAYED_MARGIN_MS: Final = 250
REPORT_MARGIN_MS: Final = 3_000
"""Milliseconds to wait after the end of a reply by the clock: for a client without reports, and for one whose report is due."""


NOTICES_LIMIT: Final = 16

CancelledBy = Literal["barge_in", "client", "text", "end", "failure", "handoff"]


def user_said(d: Draft, text: str, *, source: Literal["speech", "text"], stamps: Stamps, **audio: Any) -> None:
    """Record what the user said as a new turn, and let the agent answer."""
    cancel_reply(d, "text" if source == "text" else "barge_in")
    resolve_cut(d, None)
    d.speech.resume, d.speech.redo = "", 0
    ledger.settle(d)
    turn = ledger.begin(d)
    d.append(ev.UserSaid(text=text, turn=turn, source=source, **audio))
    memory.remember_user(d, text)
    begin_reply(d, turn, stamps, reopens=d.settings.reopens if source == "speech" else 0)


def begin_reply(d: Draft, turn: int, stamps: Stamps, *, reopens: int = 0, usage: ev.Usage | None = None) -> None:
    """Ask the language model for an answer to the conversation so far. If a handoff is about to happen, its target is asked later instead.
    `usage` is what the turn has cost so far."""
    d.counters.generation += 1
    d.pending.results = ()
    d.speech.unplayed = None
    d.speech.reply = Reply(
        generation=d.counters.generation,
        turn=turn,
        speaker=speaker(d),
        stamps=stamps,
        closed=rounds.leaves(d),
        usage=usage or ev.Usage(),
        reopens=reopens,
    )
    if not rounds.leaves(d):
        rounds.ask(d)


def say(d: Draft, text: str, *, turn: int, stamps: Stamps | None = None, failed: bool = False) -> Reply:
    """Begin a reply whose words are known: a greeting, a notice, an apology."""
    d.counters.generation += 1
    d.speech.reply = reply = Reply(
        generation=d.counters.generation,
        turn=turn,
        kind=_failed(d) if failed else "words",
        speaker=speaker(d),
        round=Round(unsplit=text),
        closed=True,
        stamps=stamps or Stamps(),
    )
    d.speech.unplayed = None
    d.set_timer("turn", d.settings.turn_timeout_s * 1_000)
    return reply


def apologise(d: Draft, apology: str) -> None:
    """End the current reply with an apology, because the model cannot go on: its existing pieces are said first."""
    reply = d.current_reply
    if not reply.pieces and not reply.round.uses:
        say(d, apology, turn=reply.turn, stamps=reply.stamps, failed=True)
        return
    _cancel_calls(d, reply, "failure")
    if reply.round.uses:
        memory.remember_round(d, reply)
        reply = rounds.new_round(reply)
    written = replace(reply.round, effect=None, calls=(), unsplit=apology)
    d.speech.reply = replace(reply, kind=_failed(d), round=written, closed=True)
    d.set_timer("turn", d.settings.turn_timeout_s * 1_000)


def notice(d: Draft, text: str) -> None:
    """Have the agent say something when no one is speaking. Beyond `NOTICES_LIMIT`, new notices are dropped."""
    if len(d.pending.notices) < NOTICES_LIMIT:
        d.pending.notices = (*d.pending.notices, text)


def announce(d: Draft, spoken: str) -> None:
    """Show the client the text of the reply that is being spoken."""
    reply = d.current_reply
    d.tell(PartialTranscript("assistant", spoken, turn=reply.turn, generation=reply.generation))


def playback(d: Draft, generation: int, played_ms: int, state: str) -> None:
    """Apply the client's report of how far it has played a generation."""
    d.client.reported = d.client.reports_playback
    trailing.reported(d, generation, played_ms, state, _close_turn)
    cut, reply = d.speech.cut, d.reply
    if cut is not None and generation == cut.generation and state != "playing":
        resolve_cut(d, played_ms)
    interruption.reported(d, generation, played_ms, done=state != "playing")
    if reply is None or generation != reply.generation:
        return
    played(d, played_ms)
    if not spoken_out(d.current_reply) or not reply.pieces or reply.synthesis.held or reply.goes_on:
        return
    if state == "finished":
        finish_reply(d)
    elif d.team.handoff is None:
        _wait_until_heard(d)


def played(d: Draft, played_ms: int) -> None:
    """Record that audio of the current reply is being heard."""
    reply = d.current_reply
    stamps = reply.stamps
    if stamps.first_audio_heard is None and (playout.model_ms(reply.pieces, played_ms) or not playout.fillers(reply.pieces)):
        stamps = replace(stamps, first_audio_heard=d.now)
    d.speech.reply = replace(
        reply,
        playback=replace(reply.playback, playing=True, played_ms=max(reply.playback.played_ms, played_ms), played_at=d.now),
        stamps=stamps,
    )


def spoken_out(reply: Reply) -> bool:
    """Check whether a reply is closed and completely synthesised."""
    return reply.closed and not reply.round.unsplit and all(piece.done for piece in reply.pieces)


def end_of_sound(d: Draft) -> None:
    """Mark the end of a reply that is completely made, and wait until it was heard."""
    reply = d.current_reply
    d.outputs.append(out.FinishSpeech(reply.generation))
    d.cancel_timers("turn")
    _wait_until_heard(d)


def _wait_until_heard(d: Draft) -> None:
    reply = d.current_reply
    since = reply.playback.played_at if reply.playback.played_at is not None else reply.playback.sent
    elapsed = (reply.playback.played_ms if reply.playback.played_at is not None else 0) + (
        (d.now - since) // 1_000 if since is not None else 0
    )
    waits = trailing.left_ms(d) if reply.playback.sent is None else 0
    d.set_timer("played", waits + playout.made_ms(reply) - elapsed + (REPORT_MARGIN_MS if d.client.reported else PLAYED_MARGIN_MS))


def finish_reply(d: Draft) -> None:
    """Finish a reply that was heard to its end."""
    reply = d.current_reply
    trailing.heard_to_the_end(d, _close_turn)
    text, filler = playout.text(reply.pieces), playout.fillers(reply.pieces)
    d.cancel(*(piece.effect for piece in reply.pieces if piece.filler and not piece.done))
    if text or filler:
        spoken = playout.made_ms(reply) if d.team.output == "audio" else None
        d.append(trailing.said(d, reply, text, played_ms=spoken, filler=filler))
    _remember_reply(d, reply)
    if not reply.goes_on:
        _close_turn(d, reply, "failed" if reply.failed else "completed")
    d.speech.reply = None
    d.cancel_timers("played", "turn")


def hand_on(d: Draft, *, goes_on: bool = True) -> None:
    """Close the reply and let another one follow as soon as it was played; with `goes_on`, that one continues the turn."""
    interruption.settle(d, None)
    reply = d.current_reply
    reply = replace(reply, round=replace(reply.round, calls=(), effect=None), closed=True, goes_on=goes_on)
    d.cancel(*(piece.effect for piece in reply.pieces if piece.filler and not piece.done))
    if d.team.output == "audio":
        d.outputs.append(out.FinishSpeech(reply.generation))
    _remember_reply(d, reply)
    d.speech.reply = None
    d.cancel_timers("played", "turn")
    trailing.follow(d, replace(reply, remembered=True), _close_turn)


def _remember_reply(d: Draft, reply: Reply) -> None:
    if not (reply.failed or reply.remembered):  # a model would copy an apology in the history
        memory.remember_text(
            d, " ".join(filter(None, [reply.round.before, *(piece.text for piece in reply.pieces[reply.round.first_piece :])]))
        )


def cancel_reply(d: Draft, by: CancelledBy) -> None:
    """Stop the reply now: its effects, calls and audio. Its heard part is settled when the client has reported."""
    interruption.settle(d, None)
    trailing.recall(d)
    reply = d.reply
    if reply is None:
        return
    resolve_cut(d, None)
    if interruption.was_heard(reply):
        finish_reply(d)
        return
    d.cancel(reply.round.effect, *(piece.effect for piece in reply.pieces if not piece.done))
    d.append(ev.GenerationCancelled(generation=reply.generation, by=by))
    d.outputs.append(out.Flush(reply.generation))
    if reply.connection:
        stop_playing(d, reply.connection)
    d.cancel_timers("turn", "played")
    cut_trailing(d)
    _cancel_calls(d, reply, by)
    if reply.round.uses:
        memory.remember_round(d, reply)
        reply = rounds.new_round(reply)
    rest = " ".join(filter(None, [*(piece.text for piece in reply.pieces), reply.round.unsplit]))
    d.speech.redo = reply.turn if by == "barge_in" and not rest and d.state.realtime is None else 0
    d.speech.reply = None
    kind = "failed" if by == "failure" and not reply.failed else reply.kind
    d.speech.cut = replace(reply, kind=kind, round=replace(reply.round, calls=(), effect=None), goes_on=False)
    d.speech.cut_by_speech = by == "barge_in"
    if reply.playback.sent is None:
        resolve_cut(d, 0)
    else:
        d.set_timer("heard", REPORT_WAIT_MS if d.client.reports_playback else 0)


def stop_playing(d: Draft, effect: int) -> None:
    """Stop playing a connection's audio as the current reply: further audio belongs to the next reply, and its ms are counted anew."""
    d.outputs.append(out.Play(effect, 0))
    if d.state.realtime is not None:
        d.state.realtime = replace(d.state.realtime, response=replace(d.state.realtime.response, counted_ms=0))


def _cancel_calls(d: Draft, reply: Reply, by: CancelledBy) -> None:
    why = "The reply failed." if by == "failure" else "Cancelled by the user."
    for call in reply.round.calls:
        d.cancel_timers(f"call:{call.call_id}")
        d.append(ev.ToolCancelled(call_id=call.call_id, name=call.name, reason=by))
        d.forget_call(call.call_id)
        d.pending.results = (*d.pending.results, (call.call_id, failed_result(Code.CANCELLED.value, why)))


def resolve_cut(d: Draft, played_ms: int | None) -> None:
    """Settle what was heard of the stopped reply; by the clock if `played_ms` is None, when the client did not report."""
    cut = d.speech.cut
    if cut is None:
        return
    d.speech.cut = None
    d.cancel_timers("heard")
    if played_ms is None:
        played_ms = playout.estimate(cut, d.now)
    played_ms = min(played_ms, playout.made_ms(cut))
    if cut.connection and cut.playback.left_ms is not None:
        played_ms = min(played_ms, cut.playback.left_ms)
    said, unheard = playout.split(cut.pieces, played_ms)
    unheard, filler = " ".join(one for one in (unheard, cut.round.unsplit.strip()) if one), playout.fillers(cut.pieces, played_ms)
    if said or unheard or filler:
        d.append(trailing.said(d, cut, said, unheard=unheard, interrupted=True, played_ms=played_ms, filler=filler))
    earlier = playout.split(cut.pieces[: cut.round.first_piece], played_ms)[0]
    last = said[len(earlier) :].strip() or cut.round.part
    if cut.remembered:
        trailing.shorten(d, cut, said)
    elif not cut.failed:
        memory.remember_text(d, " ".join(filter(None, [cut.round.before, last])))
    if cut.connection:
        left = unheard or not cut.closed or playout.made_ms(cut) > played_ms
        d.speech.broken = (said, False) if d.speech.cut_by_speech and d.settings.owns_up and left else None
        d.outputs.append(out.CutShort(cut.connection, playout.model_ms(cut.pieces, played_ms)))
    if cut.goes_on and _goes_on(d, cut, said):
        return
    d.speech.resume = unheard if d.speech.cut_by_speech and d.state.realtime is None else ""
    _close_turn(d, cut, "failed" if cut.failed else "interrupted")


def cut_trailing(d: Draft) -> None:
    """Cut off all trailing replies: nothing more of them is heard."""
    trailing.cut(d, _close_turn)


def trailed(d: Draft) -> None:
    """Record the trailing replies as heard, by the clock."""
    trailing.heard_to_the_end(d, _close_turn)


def sent(d: Draft, generation: int) -> None:
    """Tell the trailing replies that the first frame of a generation was sent."""
    trailing.sent(d, generation, _close_turn)


def _goes_on(d: Draft, cut: Reply, said: str) -> bool:
    """Keep what was heard for the realtime model that goes on after it. Return whether it will."""
    realtime = d.state.realtime
    if realtime is None or not (realtime.owed.go_on or (realtime.owed.turn and realtime.owed.turn == cut.turn)):
        return False
    d.state.realtime = replace(realtime, owed=replace(realtime.owed, said=" ".join(filter(None, [realtime.owed.said, said]))))
    return True


def no_words(d: Draft) -> None:
    """Go on with what speech without words had cut off."""
    resolve_cut(d, None)
    rest, turn, d.speech.resume, d.speech.redo = d.speech.resume, d.speech.redo, "", 0
    d.set_timer("idle", d.settings.idle_timeout_s * 1_000)
    if d.reply is None and rest:
        say(d, rest, turn=0)
    elif d.reply is None and turn:  # the old turn was completed when it was cut off
        begin_reply(d, ledger.begin(d), Stamps(speech_ended=d.now))


def _close_turn(d: Draft, reply: Reply, reason: ev.TurnReason) -> None:
    if reply.turn:
        usage = turns_usage.added(reply.usage, d.conversation.uncounted)
        d.conversation.uncounted = ev.Usage()
        ledger.complete(d, reply.turn, reason, latency=turns_usage.latency(reply.stamps), usage=usage)
        realtime = d.state.realtime
        if realtime is not None and realtime.owed.turn == reply.turn:
            realtime = replace(realtime, owed=replace(realtime.owed, turn=0))
            if reason == "completed":  # the provider may report the end of the model's turn only later
                realtime = replace(
                    realtime,
                    owed=replace(realtime.owed, question="", repeated=False, said=""),
                    tries=0,
                    resumption=replace(realtime.resumption, deaths=0),
                )
            d.state.realtime = realtime
    d.set_timer("idle", d.settings.idle_timeout_s * 1_000)


def speaker(d: Draft) -> Speaker:
    """Return the speaker of a reply; it is empty if the agent has no name."""
    return Speaker(agent=d.team.agent.name, voice=d.team.voice) if d.team.agent.name else Speaker()


def _failed(d: Draft) -> Literal["failed", "apology"]:
    """Return the kind of a reply whose model failed."""
    return "apology" if d.settings.owns_up else "failed"


def made(reply: Reply) -> bool:
    """Check whether a reply's completion has ended and all its text so far was synthesised."""
    return reply.round.effect is None and not reply.round.unsplit and all(piece.done for piece in reply.pieces)
