"""Turns, independent of the kind of model: what was said and heard, replies, calls, notices. Pure.

A turn begins with what the user said, and ends when the reply was heard, was cut off, or failed. `listening` (speech to text) and
`speaking` (text to speech) call this module.
"""

from __future__ import annotations

from typing import Final, Literal, TypedDict, Unpack

from msgspec.structs import replace

from voxbridge.services.voice.core import inputs
from voxbridge.services.voice.core import outputs as out
from voxbridge.services.voice.core.prompt import memory
from voxbridge.services.voice.core.state import Notice, Order, Reply, Round, SpokenBy, Stamps
from voxbridge.services.voice.core.transition import Transition
from voxbridge.services.voice.core.turns import (
    ledger,
    open_calls,
    paused_reply,
    plain_orders,
    playout,
    rounds,
    screen,
    trailing,
    written,
)
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
GOES_ON: Final = "It goes on, and its result comes later."
"""Result, for the model, of a call whose reply was cut off and that may change something."""


class Source(TypedDict, total=False):
    """Details of the user's words, as in `UserSaid`."""

    language: str
    confidence: float | None
    audio_from_ms: int | None
    audio_to_ms: int | None
    text_id: str


CancelledBy = Literal["barge_in", "client", "text", "end", "failure", "handoff", "reset"]


def user_said(t: Transition, text: str, *, source: Literal["speech", "text"], stamps: Stamps, **details: Unpack[Source]) -> None:
    """Record what the user said as a new turn, and let the agent answer."""
    cancel_reply(t, "text" if source == "text" else "barge_in")
    resolve_cut(t, None)
    t.speech.resume, t.speech.redo = "", 0
    ledger.settle(t)
    turn = ledger.begin(t)
    if not t.pending.steered.auto:
        t.tell(PartialTranscript("user", "", turn=turn))  # the draft was sent, changed or not
    t.append(ev.UserSaid(text=text, turn=turn, source=source, **details))
    screen.turn_begins(t)
    memory.remember_user(t, text)
    answer(t, text, turn, stamps, reopens=t.settings.reopens if source == "speech" else 0, language=details.get("language", ""))


def answer(
    t: Transition, text: str, turn: int, stamps: Stamps, *, reopens: int = 0, usage: ev.Usage | None = None, language: str = ""
) -> None:
    """Let the agent answer the user: plain words that need no model get what they ask for, else the model is asked."""
    settled = plain_orders.meant(t, text, language)
    if isinstance(settled, str) and settled:
        say(t, settled, turn=turn, stamps=stamps)
    else:
        begin_reply(t, turn, stamps, reopens=reopens, usage=usage, order=settled or None)


def begin_reply(
    t: Transition, turn: int, stamps: Stamps, *, reopens: int = 0, usage: ev.Usage | None = None, order: Order | None = None
) -> None:
    """Ask the language model for an answer to the conversation so far, or make the call that the user's words are an `order` for. If a
    handoff is about to happen, its target is asked later instead. `usage` is what the turn has cost so far."""
    t.counters.generation += 1
    t.pending.results, t.pending.more = (), False
    t.speech.unplayed = None
    t.speech.reply = Reply(
        generation=t.counters.generation,
        turn=turn,
        speaker=speaker(t),
        stamps=stamps,
        closed=rounds.leaves(t),
        usage=usage or ev.Usage(),
        reopens=reopens,
    )
    if rounds.leaves(t):
        return
    if order is not None:
        rounds.begin_order(t, order)
    else:
        rounds.ask(t)


def say(t: Transition, text: str, *, turn: int, stamps: Stamps | None = None, failed: bool = False) -> Reply:
    """Begin a reply whose words are known: a greeting, a notice, an apology."""
    t.counters.generation += 1
    t.speech.reply = reply = Reply(
        generation=t.counters.generation,
        turn=turn,
        kind=_failed(t) if failed else "words",
        speaker=speaker(t),
        round=Round(unsplit=text),
        closed=True,
        stamps=stamps or Stamps(),
    )
    t.speech.unplayed = None
    t.set_timer("turn", t.settings.turn_timeout_s * 1_000)
    return reply


def apologise(t: Transition, apology: str) -> None:
    """End the current reply with an apology, because the model cannot go on: its existing pieces are said first."""
    reply = t.current_reply
    if not reply.pieces and not reply.round.uses:
        say(t, apology, turn=reply.turn, stamps=reply.stamps, failed=True)
        return
    _cancel_calls(t, reply, "failure")
    if reply.round.uses:
        memory.remember_round(t, reply)
        reply = rounds.new_round(reply)
    written = replace(reply.round, effect=None, calls=(), unsplit=apology)
    t.speech.reply = replace(reply, kind=_failed(t), round=written, closed=True)
    t.set_timer("turn", t.settings.turn_timeout_s * 1_000)


def notice(t: Transition, text: str, task: str = "", *, greeting: bool = False) -> None:
    """Have the agent say something when no one is speaking. Beyond `NOTICES_LIMIT`, new notices are dropped."""
    if len(t.pending.notices) < NOTICES_LIMIT:
        t.pending.notices = (*t.pending.notices, Notice(text, task, greeting))


def announce(t: Transition, spoken: str) -> None:
    """Show the client the text of the reply that is being spoken."""
    reply = t.current_reply
    t.tell(PartialTranscript("assistant", spoken, turn=reply.turn, generation=reply.generation))


def playback(t: Transition, generation: int, played_ms: int, state: str) -> None:
    """Apply the client's report of how far it has played a generation."""
    t.client.reported = t.client.reports_playback
    trailing.reported(t, generation, played_ms, state, _close_turn)
    cut, reply = t.speech.cut, t.reply
    if cut is not None and generation == cut.generation and state != "playing":
        resolve_cut(t, played_ms)
    paused_reply.reported(t, generation, played_ms, done=state != "playing")
    if reply is None or generation != reply.generation:
        return
    played(t, played_ms)
    if not spoken_out(t.current_reply) or not reply.pieces or reply.synthesis.held or reply.goes_on:
        return
    if state == "finished":
        finish_reply(t)
    elif t.team.handoff is None:
        _wait_until_heard(t)


def played(t: Transition, played_ms: int) -> None:
    """Record that audio of the current reply is being heard."""
    reply = t.current_reply
    stamps = reply.stamps
    if stamps.first_audio_heard is None and (playout.model_ms(reply.pieces, played_ms) or not playout.fillers(reply.pieces)):
        stamps = replace(stamps, first_audio_heard=t.now)
    t.speech.reply = replace(
        reply,
        playback=replace(reply.playback, playing=True, played_ms=max(reply.playback.played_ms, played_ms), played_at=t.now),
        stamps=stamps,
    )


def spoken_out(reply: Reply) -> bool:
    """Check whether a reply is closed and completely synthesised."""
    return reply.closed and not reply.round.unsplit and all(piece.done for piece in reply.pieces)


def end_of_sound(t: Transition) -> None:
    """Mark the end of a reply that is completely made, and wait until it was heard."""
    written.tell(t)  # before its sound ends
    reply = t.current_reply
    t.outputs.append(out.FinishSpeech(reply.generation))
    t.cancel_timers("turn")
    _wait_until_heard(t)


def _wait_until_heard(t: Transition) -> None:
    reply = t.current_reply
    since = reply.playback.played_at if reply.playback.played_at is not None else reply.playback.sent
    elapsed = (reply.playback.played_ms if reply.playback.played_at is not None else 0) + (
        (t.now - since) // 1_000 if since is not None else 0
    )
    waits = trailing.left_ms(t) if reply.playback.sent is None else 0
    t.set_timer("played", waits + playout.made_ms(reply) - elapsed + (REPORT_MARGIN_MS if t.client.reported else PLAYED_MARGIN_MS))


def finish_reply(t: Transition) -> None:
    """Finish a reply that was heard to its end."""
    written.tell(t)
    reply = t.current_reply
    trailing.heard_to_the_end(t, _close_turn)
    text, filler = playout.text(reply.pieces), playout.fillers(reply.pieces)
    t.cancel(*(piece.effect for piece in reply.pieces if piece.filler and not piece.done))
    if text or filler:
        spoken = playout.made_ms(reply) if t.team.output == "audio" else None
        t.append(trailing.said(t, reply, text, played_ms=spoken, filler=filler))
    _remember_reply(t, reply)
    if not reply.goes_on:
        _close_turn(t, reply, "failed" if reply.failed else "completed")
    t.speech.reply = None
    t.cancel_timers("played", "turn")


def hand_on(t: Transition, *, goes_on: bool = True) -> None:
    """Close the reply and let another one follow as soon as it was played; with `goes_on`, that one continues the turn."""
    paused_reply.settle(t, None)
    reply = t.current_reply
    reply = replace(reply, round=replace(reply.round, calls=(), effect=None), closed=True, goes_on=goes_on)
    t.cancel(*(piece.effect for piece in reply.pieces if piece.filler and not piece.done))
    if t.team.output == "audio":
        t.outputs.append(out.FinishSpeech(reply.generation))
    _remember_reply(t, reply)
    t.speech.reply = None
    t.cancel_timers("played", "turn")
    trailing.follow(t, replace(reply, remembered=True), _close_turn)


def _remember_reply(t: Transition, reply: Reply) -> None:
    if not (reply.failed or reply.remembered):  # a model would copy an apology in the history
        memory.remember_text(
            t, " ".join(filter(None, [reply.round.before, *(piece.text for piece in reply.pieces[reply.round.first_piece :])]))
        )


def cancel_reply(t: Transition, by: CancelledBy) -> None:
    """Stop the reply now: its effects, calls and audio. Its heard part is settled when the client has reported."""
    paused_reply.settle(t, None)
    trailing.recall(t)
    reply = t.reply
    if reply is None:
        return
    resolve_cut(t, None)
    if paused_reply.was_heard(reply):
        finish_reply(t)
        return
    t.cancel(reply.round.effect, *(piece.effect for piece in reply.pieces if not piece.done))
    t.append(ev.GenerationCancelled(generation=reply.generation, by=by))
    t.outputs.append(out.Flush(reply.generation))
    if reply.connection:
        stop_playing(t, reply.connection)
    t.cancel_timers("turn", "played")
    cut_trailing(t)
    _cancel_calls(t, reply, by)
    if reply.round.uses:
        memory.remember_round(t, reply)
        reply = rounds.new_round(reply)
    rest = " ".join(filter(None, [*(piece.text for piece in reply.pieces), reply.round.unsplit]))
    t.speech.redo = reply.turn if by == "barge_in" and not rest and t.state.realtime is None else 0
    t.speech.reply = None
    kind = "failed" if by == "failure" and not reply.failed else reply.kind
    t.speech.cut = replace(reply, kind=kind, round=replace(reply.round, calls=(), effect=None), goes_on=False)
    t.speech.cut_by_speech = by == "barge_in"
    if reply.playback.sent is None:
        resolve_cut(t, 0)
    else:
        t.set_timer("heard", REPORT_WAIT_MS if t.client.reports_playback else 0)


def stop_playing(t: Transition, effect: int) -> None:
    """Stop playing a connection's audio as the current reply: further audio belongs to the next reply, and its ms are counted anew."""
    t.outputs.append(out.Play(effect, 0))
    if t.state.realtime is not None:
        t.state.realtime = replace(t.state.realtime, response=replace(t.state.realtime.response, counted_ms=0))


def _cancel_calls(t: Transition, reply: Reply, by: CancelledBy) -> None:
    why = "The reply failed." if by == "failure" else "Cancelled by the user."
    for call in reply.round.calls:
        begun = open_calls.withdraw(t, call, by)
        result = failed_result(Code.CANCELLED.value, why)
        if begun and open_calls.outlives_its_reply(t, call.name):
            result = {"status": "running", "note": GOES_ON}
        t.pending.results = (*t.pending.results, (call.call_id, result))


def resolve_cut(t: Transition, played_ms: int | None) -> None:
    """Settle what was heard of the stopped reply; by the clock if `played_ms` is None, when the client did not report."""
    cut = t.speech.cut
    if cut is None:
        return
    t.speech.cut = None
    t.cancel_timers("heard")
    if played_ms is None:
        played_ms = playout.estimate(cut, t.now)
    played_ms = min(played_ms, playout.made_ms(cut))
    if cut.connection and cut.playback.left_ms is not None:
        played_ms = min(played_ms, cut.playback.left_ms)
    said, unheard = playout.split(cut.pieces, played_ms)
    unheard, filler = " ".join(one for one in (unheard, cut.round.unsplit.strip()) if one), playout.fillers(cut.pieces, played_ms)
    earlier = playout.split(cut.pieces[: cut.round.first_piece], played_ms)[0]
    if t.team.output == "text" and cut.playback.sent is None and t.settings.rules >= inputs.READ:
        said, unheard = written.so_far(playout.text(cut.pieces), cut.round.unsplit), ""
        earlier = playout.text(cut.pieces[: cut.round.first_piece])
    if said or unheard or filler:
        t.append(trailing.said(t, cut, said, unheard=unheard, interrupted=True, played_ms=played_ms, filler=filler))
    last = said[len(earlier) :].strip() or cut.round.part
    if cut.remembered:
        trailing.shorten(t, cut, said)
    elif not cut.failed:
        memory.remember_text(t, " ".join(filter(None, [cut.round.before, last])))
    if cut.connection:
        left = unheard or not cut.closed or playout.made_ms(cut) > played_ms
        t.speech.broken = (said, False) if t.speech.cut_by_speech and t.settings.owns_up and left else None
        t.outputs.append(out.CutShort(cut.connection, playout.model_ms(cut.pieces, played_ms)))
    if cut.goes_on and _goes_on(t, cut, said):
        return
    t.speech.resume = unheard if t.speech.cut_by_speech and t.state.realtime is None else ""
    _close_turn(t, cut, "failed" if cut.failed else "interrupted")


def cut_trailing(t: Transition) -> None:
    """Cut off all trailing replies: nothing more of them is heard."""
    trailing.cut(t, _close_turn)


def trailed(t: Transition) -> None:
    """Record the trailing replies as heard, by the clock."""
    trailing.heard_to_the_end(t, _close_turn)


def sent(t: Transition, generation: int) -> None:
    """Tell the trailing replies that the first frame of a generation was sent."""
    trailing.sent(t, generation, _close_turn)


def _goes_on(t: Transition, cut: Reply, said: str) -> bool:
    """Keep what was heard for the realtime model that goes on after it. Return whether it will."""
    realtime = t.state.realtime
    if realtime is None or not (realtime.owed.go_on or (realtime.owed.turn and realtime.owed.turn == cut.turn)):
        return False
    t.state.realtime = replace(realtime, owed=replace(realtime.owed, said=" ".join(filter(None, [realtime.owed.said, said]))))
    return True


def no_words(t: Transition) -> None:
    """Go on with what speech without words had cut off."""
    resolve_cut(t, None)
    rest, turn, t.speech.resume, t.speech.redo = t.speech.resume, t.speech.redo, "", 0
    t.set_timer("idle", t.settings.idle_timeout_s * 1_000)
    if t.reply is None and rest:
        say(t, rest, turn=0)
    elif t.reply is None and turn:  # the old turn was completed when it was cut off
        begin_reply(t, ledger.begin(t), Stamps(speech_ended=t.now))


def _close_turn(t: Transition, reply: Reply, reason: ev.TurnReason) -> None:
    if reply.turn:
        usage = turns_usage.added(reply.usage, t.conversation.uncounted)
        t.conversation.uncounted = ev.Usage()
        ledger.complete(t, reply.turn, reason, latency=turns_usage.latency(reply.stamps), usage=usage)
        realtime = t.state.realtime
        if realtime is not None and realtime.owed.turn == reply.turn:
            realtime = replace(realtime, owed=replace(realtime.owed, turn=0))
            if reason == "completed":  # the provider may report the end of the model's turn only later
                realtime = replace(
                    realtime,
                    owed=replace(realtime.owed, question="", repeated=False, said=""),
                    tries=0,
                    resumption=replace(realtime.resumption, deaths=0),
                )
            t.state.realtime = realtime
    t.set_timer("idle", t.settings.idle_timeout_s * 1_000)


def speaker(t: Transition) -> SpokenBy:
    """Return the speaker of a reply; it is empty if the agent has no name."""
    return SpokenBy(agent=t.team.agent.name, voice=t.team.voice) if t.team.agent.name else SpokenBy()


def _failed(t: Transition) -> Literal["failed", "apology"]:
    """Return the kind of a reply whose model failed."""
    return "apology" if t.settings.owns_up else "failed"


def made(reply: Reply) -> bool:
    """Check whether a reply's completion has ended and all its text so far was synthesised."""
    return reply.round.effect is None and not reply.round.unsplit and all(piece.done for piece in reply.pieces)
