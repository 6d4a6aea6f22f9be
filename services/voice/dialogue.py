"""A conversation with a realtime model: what it hears, says and calls, as turns like any other. Pure.

The model takes the turns; this keeps the record. A response is a reply whose sound is the provider's (`State.reply` with `line`), so that
hearing, barge-in and history work as with the cascade. The user's words come beside the answer and in no order: they are final when
the provider says so, or soon after the answer began. Calls outlive the response that asked for them. `live` keeps the connection.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from services.voice import calltext, handoffs, live, phrases, provider, speaking, turns
from services.voice import outputs as out
from services.voice.draft import Draft
from services.voice.state import Line, OpenCall, Piece, Reply, Stamps
from shared.agents import HANDOFF
from shared.events import voice as ev
from shared.moments import PartialTranscript

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
TEXT_LIMIT: Final = 8_000
CALLS_LIMIT: Final = 32
"""Calls that may be open at a time."""

BEFORE_ONSET_MS: Final = 1_000
"""Interruptions are told of this much after the speech began."""

ANSWER_AGAIN: Final = "Please answer what I just said."
ANNOUNCE: Final = "Say this to the user now, in your own voice and nothing else: {}"
RESULT: Final = "The result of {name}, which you asked for before, is: {result}"


def user_words(d: Draft, input: provider.UserWords) -> None:
    """More of what the user said."""
    line = _line(d)
    if input.item and input.item in line.final:
        return
    items = dict(line.words)
    text = input.text if input.whole else items.get(input.item, "") + input.text
    items[input.item] = text[:WORDS_LIMIT]
    words = tuple((item, text) for item, text in items.items() if text)
    answering = line.turn != 0
    live.change(d, words=words, ended_at=d.now, audio_ms=input.audio_ms, asking=line.asking or not answering)
    shown = _joined(words)
    if shown:
        d.tell(PartialTranscript("user", shown, turn=line.turn or d.state.turns + 1))
    if answering and input.whole:
        words_final(d)
    elif not answering:
        _wait_for_an_answer(d)
        d.cancel_timers("idle")


def user_voice(d: Draft, input: provider.UserVoice) -> None:
    """The provider's detector."""
    line = _line(d)
    if input.speaking:
        words_final(d)
        d.append(ev.SpeechStarted(source="provider", audio_ms=input.audio_ms))
        live.change(d, asking=True, from_ms=max(line.from_ms, input.audio_ms - BEFORE_ONSET_MS), audio_ms=input.audio_ms)
        d.cancel_timers("idle")
        _wait_for_an_answer(d)
    else:
        d.append(ev.SpeechEnded(source="provider", audio_ms=input.audio_ms))
        live.change(d, ended_at=d.now)
        _wait_for_an_answer(d)


def activity(d: Draft, *, speaking: bool, audio_ms: int) -> None:
    """The installation's own detector, where the model is told when the user speaks. A short pause is none."""
    line = _line(d)
    if speaking:
        if not line.active:
            words_final(d)
            d.append(ev.SpeechStarted(source="vad", audio_ms=audio_ms))
            from_ms = max(line.from_ms, audio_ms - BEFORE_ONSET_MS)
            live.change(d, active=True, asking=True, from_ms=from_ms, go_on=False, audio_ms=audio_ms)
            d.outputs.append(out.Activity(line.effect, speaking=True))
            if d.reply is not None:
                live.change(d, cut=True, going_on=0, said="", written="")
                turns.cancel_reply(d, "barge_in")
        d.cancel_timers(PAUSE, "idle")
    elif line.active:
        live.change(d, pause_ms=audio_ms)
        d.set_timer(PAUSE, PAUSE_MS)


def activity_over(d: Draft) -> None:
    """The user has been silent for long enough."""
    line = _line(d)
    if line.active:
        live.change(d, active=False, ended_at=d.now)
        d.append(ev.SpeechEnded(source="vad", audio_ms=line.pause_ms))
        d.outputs.append(out.Activity(line.effect, speaking=False))
        _wait_for_an_answer(d)


def words_final(d: Draft) -> None:
    """What was transcribed so far is what the user said."""
    line = _line(d)
    text, turn = _joined(line.words), line.turn
    d.cancel_timers(WORDS)
    if not turn:
        return
    final = (*line.final, *(item for item, _ in line.words if item))[-FINAL_LIMIT:]
    live.change(d, words=(), turn=0, final=final)
    if text:
        turns.resolve_cut(d, None)  # what was heard before comes before
        d.append(ev.UserSaid(text=text, turn=turn, source="speech"))
        turns.remember_user(d, text)
        if _line(d).going_on == turn:  # else it was answered meanwhile
            live.change(d, asked=text)


def typed(d: Draft, text: str) -> None:
    """The user typed."""
    _finish_words(d)
    _mute(d)
    turns.cancel_reply(d, "text")
    turns.resolve_cut(d, None)
    _leave_unanswered(d)
    d.state.turns += 1
    d.append(ev.UserSaid(text=text, turn=d.state.turns, source="text"))
    turns.remember_user(d, text)
    live.change(
        d, asked=text, asking=True, going_on=d.state.turns, go_on=False, said="", asked_again=False, notice=False, ended_at=d.now
    )
    if _line(d).ready:
        live.say(d, text)
    else:
        live.change(d, go_on=True)
    _wait_for_an_answer(d)


def notice(d: Draft, text: str) -> None:
    """Have the model say something of its own accord."""
    live.change(d, notice=True, announced=text, asked="", asked_again=True)
    live.say(d, ANNOUNCE.format(text))
    _wait_for_an_answer(d)


def agent_audio(d: Draft, input: provider.AgentAudio) -> None:
    """The model speaks."""
    if _line(d).muted:
        return
    reply = _response(d, input.audio_ms)
    *earlier, last = reply.pieces or (Piece(text="", done=True),)
    last = msgspec.structs.replace(last, ms=max(last.ms, input.ms - sum(piece.ms for piece in earlier)))
    stamps = msgspec.structs.replace(reply.stamps, tts_first_audio=reply.stamps.tts_first_audio or d.now)
    d.state.reply = msgspec.structs.replace(reply, pieces=(*earlier, last), stamps=stamps)
    _wait_for_an_answer(d)


def agent_words(d: Draft, input: provider.AgentWords) -> None:
    """More of the transcript of what the model speaks. It may come after the audio it belongs to."""
    line, reply = _line(d), d.reply
    if line.muted:
        return
    if reply is None or reply.line != line.effect or (reply.closed and line.over):
        reply = _response(d, line.audio_ms)
    *earlier, last = reply.pieces or (Piece(text="", done=True),)
    room = TEXT_LIMIT - sum(len(piece.text) for piece in reply.pieces)
    ms = max(last.ms, input.ms - sum(piece.ms for piece in earlier))
    last = msgspec.structs.replace(last, text=(last.text + input.text[: max(0, room)]).lstrip(), ms=ms)
    stamps = msgspec.structs.replace(reply.stamps, llm_first_token=reply.stamps.llm_first_token or d.now)
    d.state.reply = reply = msgspec.structs.replace(reply, pieces=(*earlier, last), stamps=stamps)
    turns.announce(d, " ".join(filter(None, (piece.text.strip() for piece in reply.pieces))))


def agent_text(d: Draft, input: provider.AgentText) -> None:
    """The model wrote what it does not speak: of no use while it speaks too, spoken for it if it does not."""
    line = _line(d)
    if not line.muted:
        live.change(d, written=(line.written + input.text)[:TEXT_LIMIT])


def interrupted(d: Draft, input: provider.Interrupted) -> None:
    """The user spoke over the model, or typed: then it is the response before the typed question that ends here."""
    line = _line(d)
    words_final(d)
    typed_over = line.muted and bool(line.asked) and not line.go_on
    if not typed_over:
        _leave_unanswered(d)
    live.change(
        d,
        cut=True,
        muted=False,
        asking=True,
        go_on=False,
        asked=line.asked if typed_over else "",
        going_on=line.going_on if typed_over else 0,
        said="",
        written="",
        audio_ms=input.audio_ms,
        from_ms=max(line.from_ms, input.audio_ms - BEFORE_ONSET_MS),
    )
    turns.cancel_reply(d, "barge_in")
    _wait_for_an_answer(d)


def stop(d: Draft) -> None:
    """The user wants the model to be silent."""
    if _mute(d):
        d.outputs.append(out.Interrupt(_line(d).effect))
    live.change(d, go_on=False, asked="")
    turns.cancel_reply(d, "client")
    if _line(d).asking or _line(d).going_on:
        _wait_for_an_answer(d)


def generation_done(d: Draft, input: provider.GenerationDone) -> None:
    """All of the response was made."""
    reply = d.reply
    if reply is not None and reply.line == _line(d).effect and not reply.closed and input.ms:
        _close(d, input.ms)


def model_turn_done(d: Draft, input: provider.ModelTurnDone) -> None:
    """The model's turn is over."""
    line, reply = _line(d), d.reply
    mine = reply if reply is not None and reply.line == line.effect else None
    written = line.written
    live.change(d, muted=False, cut=False, written="", called=False, over=True, answered_at=d.now)
    if line.muted or line.cut:
        return
    if mine is not None:
        usage = ev.Usage(input_tokens=input.input_tokens, output_tokens=input.output_tokens)
        d.state.reply = mine = msgspec.structs.replace(mine, usage=usage)
        if input.quiet and input.ms:
            _unanswered(d, "The model's audio is silent.")
            return
        if d.state.cut is None and not live.can(line).detects_voice:
            words_final(d)
        live.change(d, tries=0, deaths=0, asked="", asked_again=False, said="", going_on=0)
        if not mine.closed:
            _close(d, input.ms)
    elif written and not line.calls:
        _written(d, written)
    elif line.said and line.going_on and not line.called:
        _said_all(d)
    elif (line.asking or line.asked) and not line.called:
        _unanswered(d, f"The model ended its turn without a word{': ' + input.reason if input.reason else ''}.")


def _said_all(d: Draft) -> None:
    """Asked to go on after what was heard, the model has nothing to add."""
    d.append(ev.TurnCompleted(number=_line(d).going_on, reason="completed"))
    live.change(d, tries=0, asking=False, asked="", asked_again=False, said="", going_on=0)
    d.cancel_timers("turn")
    d.set_timer("idle", d.state.idle_timeout_s * 1_000)


def silent(d: Draft) -> None:
    """Nothing came for the time a turn may take."""
    line, reply = _line(d), d.reply
    if line.calls or not line.ready:
        d.set_timer("turn", d.state.turn_timeout_s * 1_000)
        return
    if reply is not None and not reply.closed and reply.line == line.effect:
        live.break_off(d)
    elif line.words and not line.turn and line.ended_at < line.answered_at:
        # Said beside the model's words, and the model let it pass.
        _finish_words(d)
        live.change(d, asked="", going_on=0)
        d.append(ev.TurnCompleted(number=d.state.turns, reason="no_speech"))
        d.set_timer("idle", d.state.idle_timeout_s * 1_000)
        return
    elif not (line.words or line.asked or line.go_on or line.notice or line.going_on):
        live.change(d, asking=False)  # what sounded like speech had no words
        d.set_timer("idle", d.state.idle_timeout_s * 1_000)
        return
    _unanswered(d, f"Nothing came for {d.state.turn_timeout_s} s.", reconnect=True)


def call_requested(d: Draft, input: provider.CallRequested) -> None:
    """The model wants a function called."""
    _begin_turn(d)
    words_final(d)
    line = _line(d)
    live.change(d, from_ms=max(line.from_ms, line.audio_ms))  # a call is an answer too
    if input.name == HANDOFF:
        refusal = handoffs.called(d, input.arguments)
        if refusal:
            error = {"error": {"code": "INVALID_ARGUMENT", "message": refusal}}
            d.outputs.append(out.Answer(effect=line.effect, ref=input.ref, name=input.name, result=error))
            live.change(d, called=True, over=False)
            _wait_for_an_answer(d)
        return
    if len(line.calls) >= CALLS_LIMIT:
        error = {"error": {"code": "OVERLOADED", "message": f"At most {CALLS_LIMIT} calls may be open."}}
        d.outputs.append(out.Answer(effect=line.effect, ref=input.ref, name=input.name, result=error))
        return
    call_id, function, timeout_ms = turns.open_call(d, input.name, input.arguments, turn=d.state.turns)
    browser = function is not None and function.kind == "browser"
    call = OpenCall(call_id=call_id, name=input.name, arguments=input.arguments, ref=input.ref, effect=line.effect, browser=browser)
    live.change(d, calls=(*_line(d).calls, call), called=True, over=False)
    d.set_timer(f"call:{call_id}", timeout_ms + turns.CALL_MARGIN_MS)


def waits_for(d: Draft, call_id: str) -> bool:
    """Whether a realtime model asked for this call."""
    return d.state.line is not None and any(call.call_id == call_id for call in d.state.line.calls)


def answered(d: Draft, call_id: str, result: dict[str, Any]) -> None:
    """A call has its result: a response on the connection that asked for it, content on any other."""
    line = _line(d)
    call = next(call for call in line.calls if call.call_id == call_id)
    live.change(d, calls=tuple(other for other in line.calls if other is not call))
    d.cancel_timers(f"call:{call_id}")
    turns.remember_call(d, out.ToolUse(call_id=call_id, name=call.name, arguments=call.arguments), result)
    if line.ready and call.effect == line.effect:
        d.append(ev.ToolDelivered(call_id=call_id, how="response"))
        d.outputs.append(out.Answer(effect=line.effect, ref=call.ref, name=call.name, result=result))
    else:
        d.append(ev.ToolDelivered(call_id=call_id, how="content"))
        live.change(d, go_on=False)
        live.say(d, RESULT.format(name=call.name, result=turns.as_text(result)))
    _wait_for_an_answer(d)


def call_timed_out(d: Draft, call_id: str) -> None:
    """No executor answered in time."""
    call = next(call for call in _line(d).calls if call.call_id == call_id)
    d.append(ev.ToolCancelled(call_id=call_id, name=call.name, reason="timed_out"))
    answered(d, call_id, {"error": {"code": "TIMED_OUT", "message": f"{call.name} did not answer in time."}})
    d.forget_call(call_id)


def calls_cancelled(d: Draft, input: provider.CallsCancelled) -> None:
    """The provider takes calls back: their results are recorded and told to nobody."""
    line = _line(d)
    for call in line.calls:
        if call.ref in input.refs and call.effect == line.effect:
            d.cancel_timers(f"call:{call.call_id}")
            d.append(ev.ToolCancelled(call_id=call.call_id, name=call.name, reason="provider"))
            d.forget_call(call.call_id)
    live.change(d, calls=tuple(call for call in line.calls if call.call_id not in d.state.dropped))


def pause(d: Draft, by: Any, *, left_ms: int | None = None) -> None:
    """The reply is stopped by a fault: what was heard of it is settled, and the model goes on after it when there is somebody to
    hear it. `left_ms` is how much of its audio had left for the client, where that is known."""
    reply = d.reply
    if reply is None:
        return
    line = _line(d)
    d.append(ev.GenerationCancelled(generation=reply.generation, by=by))
    d.outputs.append(out.Flush(reply.generation))
    d.cancel_timers("turn", "played")
    reply = msgspec.structs.replace(reply, left_ms=left_ms)
    live.change(d, muted=line.muted or (line.ready and not reply.closed), go_on=True, going_on=line.going_on or reply.turn)
    d.state.reply = None
    d.state.cut = msgspec.structs.replace(reply, goes_on=True)
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
    words_final(d)
    line = _line(d)
    if d.reply is not None:
        pause(d, "takeover", left_ms=left_ms)
        live.change(d, go_on=not (line.called and line.calls))
    elif line.asked and not line.calls:  # the result of a call is an answer's beginning
        _ask_again_later(d, line)
    d.state.generation += 1  # one may have begun that the journal does not know
    d.outputs.append(out.Flush(d.state.generation))
    live.taken_over(d)


def lost(d: Draft, input: provider.ProviderLost) -> None:
    """The connection is lost: what it was saying is heard as far as it came, and gone on with over the next one."""
    line = _line(d)
    if input.effect != line.effect:
        return
    words_final(d)
    line = _line(d)
    if d.reply is not None and d.reply.line == line.effect and not d.reply.closed:
        live.break_off(d)
    elif line.asked and not line.calls and not (d.reply is not None and d.reply.line == line.effect):
        _ask_again_later(d, line)
    live.lost(d, input)


def settle(d: Draft) -> None:
    """Have the model go on with what a fault cut off, as soon as it can be told and somebody is there to hear it."""
    line = d.state.line
    if line is None or not (line.go_on and line.ready) or d.state.cut is not None or d.state.away_since:
        return
    text = ""
    if line.said:
        text = live.GO_ON.format(line.said)
    elif line.asked:
        text = live.ASKED.format(line.asked)
    elif line.going_on:
        text = ANSWER_AGAIN
    elif d.reply is not None and d.reply.goes_on:
        turns.hand_on(d)
    if text:
        text = " ".join([*_found(d), text])
    live.change(d, go_on=False, asking=bool(text and line.going_on) or line.asking, notice=bool(text) and not line.going_on)
    if text:
        live.say(d, text)
        _wait_for_an_answer(d)


def _found(d: Draft) -> list[str]:
    """What the calls of the turn that goes on have found: who is asked again must not make them again."""
    history = d.state.history
    asked = max((index for index, one in enumerate(history) if one.role == "user"), default=0)
    names = {use.call_id: use.name for one in history[asked:] for use in one.uses}
    return [RESULT.format(name=names[one.call_id], result=one.text) for one in history[asked:] if one.call_id in names]


def _response(d: Draft, audio_ms: int) -> Reply:
    """The reply that the model is making; a new one where it makes none."""
    line, reply = _line(d), d.reply
    if reply is not None and reply.line == line.effect and not reply.closed:
        return reply
    if reply is not None and reply.turn != line.going_on and not reply.goes_on:
        turns.finish_reply(d)
    elif reply is not None:
        turns.hand_on(d)
    if not (line.asking or line.notice or line.going_on):
        live.change(d, asking=True)  # the words that it answers are still to come
    _begin_turn(d)
    line = _line(d)
    turn = 0 if line.notice else line.going_on or d.state.turns
    d.state.generation += 1
    stamps = Stamps(speech_ended=line.ended_at or None)
    reply = Reply(generation=d.state.generation, turn=turn, line=line.effect, agent=d.state.agent.name, voice=d.state.voice, stamps=stamps)
    d.state.reply, d.state.unplayed = reply, None
    d.outputs.append(out.Play(line.effect, reply.generation))
    live.change(d, from_ms=audio_ms, audio_ms=audio_ms, notice=False, over=False, cut=False)
    return reply


def _begin_turn(d: Draft) -> None:
    """The model begins to answer what the user said."""
    line = _line(d)
    if not line.asking:
        return
    if line.going_on and not line.words:
        live.change(d, asking=False)
        return
    _leave_unanswered(d)
    d.state.turns += 1
    live.change(d, asking=False, turn=d.state.turns, going_on=d.state.turns, go_on=False, said="", notice=False)
    d.set_timer(WORDS, FINAL_WORDS_MS if live.can(line).detects_voice else WORDS_MS)


def _leave_unanswered(d: Draft) -> None:
    """Something else is answered from now on: a turn that is not over and that no reply ends is over."""
    going_on = _line(d).going_on
    if going_on and all(reply is None or reply.turn != going_on or reply.goes_on for reply in (d.reply, d.state.cut)):
        d.append(ev.TurnCompleted(number=going_on, reason="interrupted"))
        live.change(d, going_on=0)


def _finish_words(d: Draft) -> None:
    """Something else was said: what was transcribed so far was a turn of its own."""
    line = _line(d)
    if _joined(line.words) and not line.turn:
        _begin_turn(d)
        live.change(d, from_ms=max(line.from_ms, line.audio_ms))  # it is not to be heard again
    words_final(d)


def _ask_again_later(d: Draft, line: Line) -> None:
    """What was asked last is asked over the next connection, once."""
    notes = tuple(note for note in line.notes if not note.respond)
    live.change(d, go_on=True, going_on=line.going_on or (0 if line.notice else d.state.turns), notes=notes)


def _mute(d: Draft) -> bool:
    """What is left of the response that is being made is not wanted; whether there is one."""
    line, reply = _line(d), d.reply
    if reply is None or reply.line != line.effect or reply.closed:
        return False
    live.change(d, muted=True)
    return True


def _close(d: Draft, ms: int) -> None:
    """All of the response is there."""
    reply = d.reply
    if reply is None:
        return
    *earlier, last = reply.pieces or (Piece(text="", done=True),)
    last = msgspec.structs.replace(last, text=last.text.strip(), ms=max(last.ms, ms - sum(one.ms for one in earlier)))
    pieces = tuple(piece for piece in (*earlier, last) if piece.text or piece.ms)
    d.state.reply = msgspec.structs.replace(reply, closed=True, pieces=pieces)
    d.cancel_timers("turn")
    speaking.end_speech(d)


def _written(d: Draft, text: str) -> None:
    """The model answered in text alone: a call that it wrote is one, other words are spoken by the cascade's voice."""
    line = _line(d)
    found = calltext.find(text, d.state.functions)
    if found is not None:
        ref = f"written-{d.state.calls + 1}"
        call_requested(d, provider.CallRequested(effect=0, ref=ref, name=found[0], arguments=found[1]))
        calls = tuple(msgspec.structs.replace(call, effect=0) if call.ref == ref else call for call in _line(d).calls)
        live.change(d, calls=calls)
        return
    _begin_turn(d)
    turn = 0 if line.notice else d.state.turns
    live.change(d, tries=0, asked="", asked_again=False, going_on=0, notice=False)
    d.append(
        ev.ProviderFailed(
            part="tts",
            error=ev.Failure(code="PROVIDER_REFUSED", message="The model wrote its answer and did not speak it.", retryable=True),
            turn=turn,
            handled=True,
        )
    )
    turns.say(d, phrases.written(text), turn=turn)


def _unanswered(d: Draft, message: str, *, reconnect: bool = False) -> None:
    """The model has nothing to say to the user: ask it once more, then own up to it."""
    line, reply = _line(d), d.reply
    asking = line.asking or bool(line.asked) or line.go_on or line.notice or bool(line.going_on)
    if not asking:
        return
    _finish_words(d)  # asked again in text, or owned up to
    line = _line(d)
    error = ev.Failure(code="TIMED_OUT" if reconnect else "PROVIDER_REFUSED", message=message, retryable=True)
    again = not line.asked_again
    d.append(ev.ProviderFailed(part="llm", error=error, turn=d.state.turns, handled=again))
    if reply is not None and reply.line == line.effect and not reply.closed:
        d.outputs.append(out.Flush(reply.generation))
        d.state.reply = None
    if again:
        live.change(d, asked_again=True, asked=line.asked or ANSWER_AGAIN)
        if reconnect:
            live.change(d, lost_at=d.now, restoring=True, go_on=bool(line.asked or line.going_on) or line.go_on)
            live.connect(d)
        else:
            live.say(d, line.asked or ANSWER_AGAIN)
        _wait_for_an_answer(d)
        return
    live.change(d, asking=False, asked="", asked_again=False, go_on=False, said="", notice=False)
    d.cancel_timers("turn")
    if d.reply is not None and d.reply.goes_on:  # there is nothing it could go on with
        turns.hand_on(d)
    turn, state = line.going_on or line.turn, d.state
    words_final(d)
    if turn:
        d.append(ev.TurnCompleted(number=turn, reason="failed"))
    live.change(d, going_on=0)
    d.set_timer("idle", state.idle_timeout_s * 1_000)


def _wait_for_an_answer(d: Draft) -> None:
    d.set_timer("turn", d.state.turn_timeout_s * 1_000)


def _joined(words: tuple[tuple[str, str], ...]) -> str:
    return " ".join(filter(None, (text.strip() for _, text in words)))


def _line(d: Draft) -> Line:
    if d.state.line is None:
        raise RuntimeError("a connection was expected")
    return d.state.line
