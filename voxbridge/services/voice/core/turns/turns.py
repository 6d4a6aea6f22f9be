"""Turns, independent of the kind of model: what was said and heard, replies, calls, notices. Pure.

A turn begins with what the user said, and ends when the reply was heard, was cut off, or failed. `listening` (speech to text) and
`speaking` (text to speech) call this module.
"""

from __future__ import annotations

from typing import Any, Final, Literal

from msgspec.structs import replace

from voxbridge.services.voice.core import agents, page_functions
from voxbridge.services.voice.core import outputs as out
from voxbridge.services.voice.core.prompt import memory, prompt
from voxbridge.services.voice.core.state import Call, Reply, Round, Speaker, Stamps
from voxbridge.services.voice.core.transition import Draft
from voxbridge.services.voice.core.turns import interruption, ledger, playout, trailing
from voxbridge.services.voice.core.turns import usage as turns_usage
from voxbridge.shared.agents.functions import Function, failed_result
from voxbridge.shared.agents.model import HANDOFF
from voxbridge.shared.bus.moments import PartialTranscript
from voxbridge.shared.errors import Code
from voxbridge.shared.events import voice as ev

REPORT_WAIT_MS: Final = 400
"""Milliseconds a client has after a flush to report what it had played."""

PLAYED_MARGIN_MS: Final = 250
REPORT_MARGIN_MS: Final = 3_000
"""Milliseconds to wait after the end of a reply by the clock: for a client without reports, and for one whose report is due."""

CALL_MARGIN_MS: Final = 5_000
ROUNDS: Final = 5
"""Rounds of calls in a turn, for a session that was opened without a limit."""

CALLS_LIMIT: Final = 8
REFUSALS_LIMIT: Final = 2 * CALLS_LIMIT
"""Calls in one round that get an answer: those that were made, then those that were refused; more are ignored."""
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
        closed=leaves(d),
        usage=usage or ev.Usage(),
        reopens=reopens,
    )
    if not leaves(d):
        ask(d)


def leaves(d: Draft) -> bool:
    """Check whether a handoff to another agent can happen now. While the user speaks, the current agent stays."""
    handoff = d.team.handoff
    return handoff is not None and handoff.target != d.team.agent.name and d.utterance is None


def ask(d: Draft, *, plain: bool = False) -> None:
    """Start one round of the language model for the current reply; a `plain` one offers no functions."""
    reply = new_round(_reply(d))
    d.speech.reply = replace(
        reply, round=replace(reply.round, plain=plain, number=reply.round.number + 1, unsplit="", calls=()), closed=False
    )
    d.pending.results = ()
    _complete(d)


def ask_again(d: Draft) -> None:
    """Start the current round once more, because its completion did not finish. The text it had written is kept, and text that the
    new completion writes beyond it follows."""
    reply = _reply(d)
    d.speech.reply = replace(reply, round=replace(reply.round, known=reply.round.written, again=""))
    _complete(d)


def _complete(d: Draft) -> None:
    reply = _reply(d)
    functions = d.team.functions if reply.round.number <= (d.settings.tool_rounds or ROUNDS) and not reply.round.plain else ()
    if reply.turn == d.team.handed[1]:
        functions = tuple(function for function in functions if function.name != HANDOFF)
    limit = prompt.room(d.team.agent) >> reply.round.halved
    messages = prompt.window(d.team.instructions, d.conversation.history, limit=limit, earlier=d.conversation.earlier)
    llm = d.team.agent.llm
    model = d.team.model if llm.provider in ("", "local") else llm.model
    shared = agents.shared(d.state)
    effect = d.start(out.Complete(provider=llm.provider, model=model, messages=messages, functions=functions, shared=shared))
    d.speech.reply = replace(reply, round=replace(reply.round, effect=effect))
    d.set_timer("turn", d.settings.turn_timeout_s * 1_000)


def new_round(reply: Reply) -> Reply:
    """Return the reply at the beginning of its next round: what it said so far is in the history."""
    return replace(
        reply, round=replace(reply.round, uses=(), first_piece=len(reply.pieces), before="", part="", written="", known="", again="")
    )


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
    reply = _reply(d)
    if not reply.pieces and not reply.round.uses:
        say(d, apology, turn=reply.turn, stamps=reply.stamps, failed=True)
        return
    _cancel_calls(d, reply, "failure")
    if reply.round.uses:
        memory.remember_round(d, reply)
        reply = new_round(reply)
    written = replace(reply.round, effect=None, calls=(), unsplit=apology)
    d.speech.reply = replace(reply, kind=_failed(d), round=written, closed=True)
    d.set_timer("turn", d.settings.turn_timeout_s * 1_000)


def notice(d: Draft, text: str) -> None:
    """Have the agent say something when no one is speaking. Beyond `NOTICES_LIMIT`, new notices are dropped."""
    if len(d.pending.notices) < NOTICES_LIMIT:
        d.pending.notices = (*d.pending.notices, text)


def announce(d: Draft, spoken: str) -> None:
    """Show the client the text of the reply that is being spoken."""
    reply = _reply(d)
    d.tell(PartialTranscript("assistant", spoken, turn=reply.turn, generation=reply.generation))


def call_function(d: Draft, name: str, arguments: dict[str, Any]) -> None:
    """Open a call that the model requested, within the limits of a round."""
    reply = _reply(d)
    if len(reply.round.uses) >= CALLS_LIMIT:
        if len(reply.round.uses) < REFUSALS_LIMIT:
            refuse_call(d, name, arguments, f"At most {CALLS_LIMIT} functions are called at once: this one was not.", Code.OVERLOADED)
        return
    call_id, function, timeout_ms = open_call(d, name, arguments, turn=reply.turn)
    call = Call(call_id=call_id, name=name, browser=function is not None and function.kind == "browser")
    use = out.ToolUse(call_id=call_id, name=name, arguments=arguments)
    d.speech.reply = replace(reply, round=replace(reply.round, calls=(*reply.round.calls, call), uses=(*reply.round.uses, use)), reopens=0)
    d.set_timer(f"call:{call_id}", page_functions.wait_ms(function, timeout_ms, CALL_MARGIN_MS))


def refuse_call(d: Draft, name: str, arguments: dict[str, Any], message: str, code: Code = Code.INVALID_ARGUMENT) -> None:
    """Refuse a call of the model: it gets the reason with the other results of the round."""
    reply = _reply(d)
    d.counters.calls += 1
    use = out.ToolUse(call_id=f"fc_{d.state.sid[:8]}_{d.counters.calls}", name=name, arguments=arguments)
    d.speech.reply = replace(reply, round=replace(reply.round, uses=(*reply.round.uses, use)), reopens=0)
    d.pending.results = (*d.pending.results, (use.call_id, failed_result(code.value, message)))


def open_call(d: Draft, name: str, arguments: dict[str, Any], *, turn: int) -> tuple[str, Function | None, int]:
    """Request the execution of a function. Return the call's id, the function (None if unknown) and the timeout in ms."""
    d.counters.calls += 1
    call_id = f"fc_{d.state.sid[:8]}_{d.counters.calls}"
    function = next((f for f in d.team.functions if f.name == name), None)
    kind = function.kind if function is not None else "server"
    timeout_ms = int((function.timeout_s if function is not None else 30) * 1_000)
    account = d.state.request.account if d.state.request is not None else "local"
    d.append(ev.ToolCalled(call_id=call_id, name=name, arguments=arguments, kind=kind, turn=turn, deadline_ms=timeout_ms, account=account))
    return call_id, function, timeout_ms


def answered(d: Draft, call_id: str, result: dict[str, Any]) -> None:
    """Give a call's result to the model, or drop it if no reply waits for it any more."""
    reply = d.reply
    if reply is None or all(call.call_id != call_id for call in reply.round.calls):
        if call_id in d.pending.dropped:
            d.pending.dropped = tuple(dropped for dropped in d.pending.dropped if dropped != call_id)
            d.append(ev.ToolDelivered(call_id=call_id, how="dropped"))
        return
    d.cancel_timers(f"call:{call_id}")
    d.append(ev.ToolDelivered(call_id=call_id, how="response"))
    d.pending.results = (*d.pending.results, (call_id, result))
    d.speech.reply = replace(reply, round=replace(reply.round, calls=tuple(call for call in reply.round.calls if call.call_id != call_id)))
    d.set_timer("turn", d.settings.turn_timeout_s * 1_000)
    next_round(d)


def call_timed_out(d: Draft, call_id: str) -> None:
    """Cancel a call that no executor answered in time, and tell the model."""
    reply = d.reply
    call = next((call for call in reply.round.calls if call.call_id == call_id), None) if reply is not None else None
    if call is None:
        return
    d.append(ev.ToolCancelled(call_id=call_id, name=call.name, reason="timed_out"))
    answered(d, call_id, failed_result(Code.TIMED_OUT.value, f"{call.name} did not answer in time."))
    d.forget_call(call.call_id)


def next_round(d: Draft) -> None:
    """Let the model go on with the results, once it has stopped and every call is answered."""
    reply = _reply(d)
    if reply.round.effect is not None or reply.round.calls or not reply.round.uses:
        return
    words = reply_in_result(d, reply)
    memory.remember_round(d, reply)
    if leaves(d):
        d.speech.reply = replace(new_round(reply), closed=True)
    elif words:
        reply = new_round(reply)
        d.speech.reply = replace(reply, round=replace(reply.round, unsplit=words), closed=True)
    else:
        ask(d)


def reply_in_result(d: Draft, reply: Reply) -> str:
    """Return the `spoken` text of the round's only result, if the session says it instead of asking the model again; else empty."""
    results = dict(d.pending.results)
    if not d.settings.speak_results or len(reply.round.uses) != 1:
        return ""
    spoken = results.get(reply.round.uses[0].call_id, {}).get("spoken")
    return spoken if isinstance(spoken, str) else ""


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
    if not spoken_out(_reply(d)) or not reply.pieces or reply.synthesis.held or reply.goes_on:
        return
    if state == "finished":
        finish_reply(d)
    elif d.team.handoff is None:
        _wait_until_heard(d)


def played(d: Draft, played_ms: int) -> None:
    """Record that audio of the current reply is being heard."""
    reply = _reply(d)
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
    reply = _reply(d)
    d.outputs.append(out.FinishSpeech(reply.generation))
    d.cancel_timers("turn")
    _wait_until_heard(d)


def _wait_until_heard(d: Draft) -> None:
    reply = _reply(d)
    since = reply.playback.played_at if reply.playback.played_at is not None else reply.playback.sent
    elapsed = (reply.playback.played_ms if reply.playback.played_at is not None else 0) + (
        (d.now - since) // 1_000 if since is not None else 0
    )
    waits = trailing.left_ms(d) if reply.playback.sent is None else 0
    d.set_timer("played", waits + playout.made_ms(reply) - elapsed + (REPORT_MARGIN_MS if d.client.reported else PLAYED_MARGIN_MS))


def finish_reply(d: Draft) -> None:
    """Finish a reply that was heard to its end."""
    reply = _reply(d)
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
    reply = _reply(d)
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
        reply = new_round(reply)
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


def _reply(d: Draft) -> Reply:
    if d.reply is None:
        raise RuntimeError("a reply was expected")
    return d.reply
