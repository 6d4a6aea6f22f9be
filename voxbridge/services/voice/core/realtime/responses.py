"""Responses of a realtime model, recorded as turns like those of a cascade. Pure.

The model decides about turns; this module records them. A response is a reply whose audio is the provider's (`State.reply` with `line`),
so that playback, barge-in and history work as with the cascade. `transcripts` handles what the user says, `tool_calls` the model's calls,
`faults` lost connections, workers and clients; `connection` keeps the connection.
"""

from __future__ import annotations

from typing import Final

from msgspec.structs import replace

from voxbridge.services.voice.core import outputs as out
from voxbridge.services.voice.core import provider_events
from voxbridge.services.voice.core.cascade import segmenter, speaking
from voxbridge.services.voice.core.prompt import memory
from voxbridge.services.voice.core.realtime import connection, textual_calls, tool_calls, transcripts
from voxbridge.services.voice.core.state import Reply, Speaker, Stamps
from voxbridge.services.voice.core.transition import ANSWER, Draft
from voxbridge.services.voice.core.turns import filler, ledger, playout, turns, usage
from voxbridge.shared.events import voice as ev

TEXT_LIMIT: Final = 8_000
ANNOUNCE: Final = "Say this to the user now, in your own voice and nothing else: {}"


def typed(d: Draft, text: str, text_id: str) -> None:
    """Handle typed text: stop the response, and put the text to the model as a new turn."""
    transcripts.finish(d)
    _mute(d)
    turns.cancel_reply(d, "text")
    turns.resolve_cut(d, None)
    transcripts.leave_unanswered(d)
    turn = ledger.begin(d)
    d.append(ev.UserSaid(text=text, turn=turn, source="text", text_id=text_id))
    memory.remember_user(d, text)
    connection.put_back_notice(d)
    connection.change(d, asked=text, asking=True, going_on=turn, go_on=False, said="", asked_again=False, awaited=True, ended_at=d.now)
    if transcripts.line_of(d).ready:
        connection.say(d, text)
    else:
        connection.change(d, go_on=True)
    transcripts.wait_for_an_answer(d)


def notice(d: Draft, text: str) -> None:
    """Have the model make an announcement, which answers no turn."""
    connection.change(d, notice=True, announced=text, asked="", asked_again=False)
    connection.say(d, ANNOUNCE.format(text))
    transcripts.wait_for_an_answer(d)


def agent_audio(d: Draft, input: provider_events.AgentAudio) -> None:
    """Record audio of the model, in the current reply or a new one."""
    if transcripts.line_of(d).muted:
        return
    before_ms = transcripts.line_of(d).counted_ms
    reply, begins = _response(d, input.audio_ms)
    earlier, last = playout.newest(reply.pieces)
    last = replace(last, ms=max(last.ms, _sounded_ms(input, begins, before_ms) - playout.model_ms(earlier)))
    reply = playout.resumed(reply, d.now)
    d.speech.reply = replace(reply, pieces=(*earlier, last), stamps=speaking.sounds(reply, d.now))
    # A connection opened during a long answer need not hear the microphone audio of that whole answer again.
    connection.change(d, audio_ms=max(transcripts.line_of(d).audio_ms, input.audio_ms))
    transcripts.wait_for_an_answer(d)


def agent_words(d: Draft, input: provider_events.AgentWords) -> None:
    """Record further transcript of what the model speaks. It may come after its audio."""
    line, reply = transcripts.line_of(d), d.reply
    if line.muted:
        return
    before_ms, begins = 0, False
    elsewhere = reply is not None and line.going_on not in (0, reply.turn)  # a call opened another turn since: its answer begins
    if reply is None or reply.connection != line.effect or (reply.closed and (line.over or elsewhere)):
        before_ms = line.counted_ms
        reply, begins = _response(d, line.audio_ms)
        transcripts.wait_for_an_answer(d)
    elif line.awaited:
        reply = _comes(d, reply)
    earlier, last = playout.newest(reply.pieces)
    room = TEXT_LIMIT - sum(len(piece.text) for piece in reply.pieces)
    ms = max(last.ms, _sounded_ms(input, begins, before_ms) - playout.model_ms(earlier))
    last = replace(last, text=(last.text + input.text[: max(0, room)]).lstrip(), ms=ms)
    stamps = replace(reply.stamps, llm_first_token=reply.stamps.llm_first_token or d.now)
    d.speech.reply = reply = replace(reply, pieces=(*earlier, last), stamps=stamps)
    turns.announce(d, " ".join(filter(None, (piece.text.strip() for piece in reply.pieces))))


def agent_text(d: Draft, input: provider_events.AgentText) -> None:
    """Record text that the model wrote and does not speak. It is used only if the model does not speak at all in this turn."""
    line = transcripts.line_of(d)
    if not line.muted:
        connection.change(d, written=(line.written + input.text)[:TEXT_LIMIT])


def interrupted(d: Draft, input: provider_events.Interrupted) -> None:
    """Handle an interruption: the user spoke over the model, or typed. If typed, it ends the response before the typed question."""
    transcripts.final(d)
    connection.put_back_notice(d)
    line = transcripts.line_of(d)
    typed_over = (line.muted or d.reply is None or d.reply.filler) and bool(line.asked) and not line.go_on
    if not typed_over:
        transcripts.leave_unanswered(d)
    connection.change(
        d,
        cut=True,
        counted_ms=0,
        muted=False,
        asking=True,
        awaited=typed_over,
        called=False,
        go_on=False,
        asked=line.asked if typed_over else "",
        going_on=line.going_on if typed_over else 0,
        said="",
        written="",
        audio_ms=input.audio_ms,
        from_ms=max(line.from_ms, input.audio_ms - transcripts.BEFORE_ONSET_MS),
    )
    turns.cancel_reply(d, "barge_in")
    transcripts.wait_for_an_answer(d)


def stop(d: Draft) -> None:
    """Silence the model, as the user asked."""
    line = transcripts.line_of(d)
    due = line.ready and (line.notice or line.going_on != 0) and not line.go_on  # the model was asked and has not begun
    if _mute(d) or (due and (d.reply is None or d.reply.connection != line.effect)):
        d.outputs.append(out.Interrupt(line.effect))
        connection.change(d, muted=True)
    connection.change(d, awaited=False)
    turns.cancel_reply(d, "client")
    connection.change(
        d, go_on=False, asked="", asked_again=False, said="", notice=False, announced="", asking=bool(line.words) or line.active
    )
    transcripts.leave_unanswered(d)
    if transcripts.line_of(d).asking or transcripts.line_of(d).muted:
        transcripts.wait_for_an_answer(d)


def generation_done(d: Draft, input: provider_events.GenerationDone) -> None:
    """Close the reply: the model has made all of its response."""
    reply = d.reply
    if reply is not None and reply.connection == transcripts.line_of(d).effect and not reply.closed and input.ms:
        speaking.close(d, input.ms)


def model_turn_done(d: Draft, input: provider_events.ModelTurnDone) -> None:
    """Handle the end of the model's turn: close its reply, or deal with a turn that brought none."""
    line, reply = transcripts.line_of(d), d.reply
    mine = reply if reply is not None and reply.connection == line.effect and line.going_on in (0, reply.turn) else None
    written = line.written
    count(d, input)
    connection.change(d, muted=False, cut=False, written="", called=False, over=True, counted_ms=0, answered_at=d.now)
    if line.muted or line.cut:
        return
    connection.change(d, awaited=bool(line.calls))
    if mine is not None:
        if input.quiet and input.ms:
            _unanswered(d, "The model's audio is silent.")
            return
        if d.speech.cut is None and not connection.can(line).detects_voice:
            transcripts.final(d)
        connection.change(d, tries=0, deaths=0, asked="", asked_again=False, said="", going_on=0)
        if not mine.closed:
            speaking.close(d, input.ms)
    elif written and not line.calls:
        _written(d, written)
    elif line.said and line.going_on and not line.called:
        _said_all(d)
    elif not line.over:
        return  # its reply was finished before; an open question belongs to its next turn
    elif line.notice and line.announced and not line.called:
        _passed_over(d, "The model passed over what it was to announce.")
    elif line.notice and not line.called:  # a continuation that answers no turn
        connection.change(d, notice=False, asked="", asked_again=False, said="")
        d.cancel_timers(ANSWER)
    elif input.waiting:
        _unfinished(d)
    elif (line.asking or line.asked) and not line.called:
        _unanswered(d, f"The model ended its turn without a word{': ' + input.reason if input.reason else ''}.")


def count(d: Draft, input: provider_events.ModelTurnDone | provider_events.TokensCounted) -> None:
    """Add tokens, which count for the next turn that is completed."""
    d.conversation.uncounted = usage.added(d.conversation.uncounted, usage.counted(d.state, input.input_tokens, input.output_tokens))


def _unfinished(d: Draft) -> None:
    """Complete the turn without an answer: the model waits for the user to go on."""
    transcripts.finish(d)
    going_on = transcripts.line_of(d).going_on
    if going_on:
        ledger.complete(d, going_on, "completed")
    connection.change(d, asking=False, asked="", asked_again=False, tries=0, going_on=0)
    d.cancel_timers(ANSWER)
    d.set_timer("idle", d.settings.idle_timeout_s * 1_000)


def _said_all(d: Draft) -> None:
    """Complete a turn whose model was asked to go on after the heard words and has nothing to add."""
    line, reply = transcripts.line_of(d), d.reply
    turn = line.going_on
    spoke_up = bool(line.words) and not line.turn  # words that the model may still answer
    connection.change(d, tries=0, asking=line.asking and spoke_up, asked="", asked_again=False, said="", going_on=0)
    if reply is not None and reply.turn == turn:  # its audio is still being heard
        d.speech.reply = replace(reply, goes_on=False)
        speaking.end_speech(d)
    else:
        ledger.complete(d, turn, "completed")
    if not transcripts.line_of(d).asking:
        d.cancel_timers(ANSWER)
    d.set_timer("idle", d.settings.idle_timeout_s * 1_000)


def silent(d: Draft) -> None:
    """Handle the answer timer: nothing came from the model within the turn timeout."""
    connection.change(d, speaking=False)
    line, reply = transcripts.line_of(d), d.reply
    if line.calls or not line.ready or (reply is not None and not (reply.connection or reply.filler)):
        transcripts.wait_for_an_answer(d)
        return
    connection.change(d, muted=False)
    if reply is not None and not reply.closed and reply.connection == line.effect:
        connection.break_off(d)
    elif line.words and line.asking and not line.turn and line.ended_at < line.answered_at:
        # Words said while the model spoke, which it did not answer.
        transcripts.finish(d)
        connection.change(d, asked="", going_on=0)
        ledger.complete(d, d.counters.turns, "no_speech")
        d.set_timer("idle", d.settings.idle_timeout_s * 1_000)
        return
    elif not (line.words or line.asked or line.go_on or line.notice or line.going_on):
        transcripts.leave_reply(d)
        connection.change(d, asking=False, said="")  # what sounded like speech had no words
        d.set_timer("idle", d.settings.idle_timeout_s * 1_000)
        return
    message = f"Nothing came for {d.settings.turn_timeout_s} s."
    if line.notice and line.announced:
        _passed_over(d, message)
    else:
        _unanswered(d, message, reconnect=True)


def _sounded_ms(input: provider_events.AgentAudio | provider_events.AgentWords, begins: bool, before_ms: int) -> int:
    """Return the ms of audio that belong to the reply. An event that begins a reply counts only the audio that came with it: the
    connection restarts its count there, and earlier audio of the response belongs to no reply."""
    return input.piece_ms if begins and input.piece_ms is not None else input.ms - before_ms


def _response(d: Draft, audio_ms: int) -> tuple[Reply, bool]:
    """Return the reply that the model is making and whether it begins here. A new reply is begun if there is none."""
    line, reply = transcripts.line_of(d), d.reply
    if reply is not None and reply.connection == line.effect and not reply.closed:
        return _comes(d, reply) if line.awaited else reply, False
    begun = None
    if reply is not None and reply.filler:
        begun, d.speech.reply = _comes(d, reply), None
    elif reply is not None and not (reply.connection or turns.made(reply)):
        turns.cancel_reply(d, "handoff")  # a reply of the installation's voice: the model speaks itself after all
    elif reply is not None:
        turns.hand_on(d, goes_on=reply.goes_on or reply.turn == line.going_on)
    transcripts.expect(d)
    transcripts.begin_turn(d)
    line = transcripts.line_of(d)
    turn = 0 if line.notice else line.going_on or d.counters.turns
    stamps = Stamps(speech_ended=line.ended_at or None)
    if begun is not None:
        reply = replace(begun, kind="words", goes_on=False)
    else:
        d.counters.generation += 1
        reply = Reply(generation=d.counters.generation, turn=turn)
    reply = replace(reply, turn=turn, connection=line.effect, speaker=Speaker(agent=d.team.agent.name, voice=d.team.voice), stamps=stamps)
    d.speech.reply, d.speech.unplayed = reply, None
    d.outputs.append(out.Play(line.effect, reply.generation))
    connection.change(d, from_ms=audio_ms, audio_ms=audio_ms, notice=False, announced="", over=False, cut=False, counted_ms=0)
    connection.change(d, awaited=False, speaking=False)
    return reply, True


def _comes(d: Draft, reply: Reply) -> Reply:
    """End the wait for the model: drop a filler without audio, and return the reply."""
    filler.give_way(d)
    connection.change(d, awaited=False)
    d.speech.reply = playout.after_a_wait(d.reply or reply, d.now)
    return d.speech.reply


def _mute(d: Draft) -> bool:
    """Mute the rest of the response that is being made. Return whether its reply was still open."""
    line, reply = transcripts.line_of(d), d.reply
    if reply is None or reply.connection != line.effect:
        return False
    if not line.over:
        connection.change(d, muted=True)
    return not reply.closed


def _written(d: Draft, text: str) -> None:
    """Handle an answer in text alone: a call written as text is made, other text is spoken by the cascade's voice."""
    line = transcripts.line_of(d)
    found = textual_calls.find(text, d.team.functions)
    if found is not None:
        ref = f"written-{d.counters.calls + 1}"
        tool_calls.call_requested(d, provider_events.CallRequested(effect=0, ref=ref, name=found[0], arguments=found[1]))
        of_nobody = (replace(call, effect=0) if call.ref == ref else call for call in transcripts.line_of(d).calls)
        connection.change(d, calls=tuple(of_nobody))
        return
    transcripts.begin_turn(d)
    turn = 0 if line.notice else d.counters.turns
    connection.change(d, tries=0, asked="", asked_again=False, going_on=0, notice=False, announced="", said="")
    d.append(
        ev.ProviderFailed(
            part="tts",
            error=ev.Failure(code="PROVIDER_REFUSED", message="The model wrote its answer and did not speak it.", retryable=True),
            turn=turn,
            handled=True,
        )
    )
    transcripts.leave_reply(d)
    if d.reply is not None:
        turns.hand_on(d, goes_on=d.reply.goes_on)
    turns.say(d, segmenter.written(text), turn=turn)


def _passed_over(d: Draft, message: str) -> None:
    """Handle an announcement that the model did not make: ask it once more, then have the installation's own voice say it."""
    line = transcripts.line_of(d)
    again = not line.asked_again
    error = ev.Failure(code="PROVIDER_REFUSED", message=message, retryable=True)
    d.append(ev.ProviderFailed(part="llm", error=error, turn=0, handled=True))
    if again:
        connection.change(d, asked_again=True)
        connection.say(d, ANNOUNCE.format(line.announced))
        transcripts.wait_for_an_answer(d)
    else:
        connection.change(d, notice=False, announced="", asked_again=False)
        d.cancel_timers(ANSWER)
        if d.settings.owns_up:
            _own_up(d, "", 0, instead=line.announced)


def _unanswered(d: Draft, message: str, *, reconnect: bool = False) -> None:
    """Handle a model that does not answer: ask it once more, then apologise for it."""
    line, reply = transcripts.line_of(d), d.reply
    asking = line.asking or bool(line.asked) or line.go_on or line.notice or bool(line.going_on)
    if not asking:
        return
    transcripts.finish(d)  # it is asked again in text, or apologised for
    line = transcripts.line_of(d)
    error = ev.Failure(code="TIMED_OUT" if reconnect else "PROVIDER_REFUSED", message=message, retryable=True)
    again = not line.asked_again
    d.append(ev.ProviderFailed(part="llm", error=error, turn=d.counters.turns, handled=again))
    if reply is not None and reply.connection == line.effect and not reply.closed:
        d.outputs.append(out.Flush(reply.generation))
        d.speech.reply = None
        turns.cut_trailing(d)
    if again:
        connection.change(d, asked_again=True, asked=line.asked or connection.ANSWER_AGAIN)
        if reconnect:
            connection.change(d, lost_at=d.now, restoring=True, go_on=bool(line.asked or line.said or line.going_on) or line.go_on)
            connection.connect(d)
        else:
            connection.say(d, line.asked or connection.ANSWER_AGAIN)
        connection.change(d, awaited=True)
        transcripts.wait_for_an_answer(d)
        return
    connection.change(d, asking=False, asked="", asked_again=False, go_on=False, said="", notice=False, announced="", awaited=False)
    d.cancel_timers(ANSWER)
    transcripts.leave_reply(d)
    turn = line.going_on or line.turn
    transcripts.final(d)
    connection.change(d, going_on=0)
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
    line = transcripts.line_of(d)
    if d.client.away_since or not d.settings.owns_up:
        return False
    transcripts.leave_reply(d)
    turn = line.going_on or line.turn
    transcripts.final(d)
    connection.change(d, asking=False, asked="", go_on=False, said="", notice=False, announced="", going_on=0)
    d.team.handoff = None  # it cannot complete any more, and would keep the apology from being finished
    _own_up(d, speaking.APOLOGIES["lost"], turn)
    return True
