"""Responses of a realtime model, recorded as turns like those of a cascade. Pure.

The model decides about turns; this module records them. A response is a reply whose audio is the provider's
(`Reply.connection`), so that playback, barge-in and history work as with the cascade. `transcripts` handles what the user says,
`tool_calls` the model's calls, `faults` lost connections, workers and clients; `connection` keeps the connection.
"""

from __future__ import annotations

from typing import Final

from msgspec.structs import replace

from voxbridge.services.voice.core import outputs as out
from voxbridge.services.voice.core import provider_events
from voxbridge.services.voice.core.cascade import speaking
from voxbridge.services.voice.core.prompt import memory
from voxbridge.services.voice.core.realtime import connection, textual_calls, tool_calls, transcripts, unanswered
from voxbridge.services.voice.core.state import Owed, Reply, Response, SpokenBy, Stamps
from voxbridge.services.voice.core.transition import ANSWER, Transition
from voxbridge.services.voice.core.turns import consent, filler, ledger, playout, turns, usage
from voxbridge.services.voice.speakable import markup
from voxbridge.shared.events import voice as ev

TEXT_LIMIT: Final = 8_000


def typed(t: Transition, text: str, text_id: str) -> None:
    """Handle typed text: stop the response, and put the text to the model as a new turn."""
    transcripts.finish(t)
    _mute(t)
    turns.cancel_reply(t, "text")
    turns.resolve_cut(t, None)
    transcripts.leave_unanswered(t)
    turn = ledger.begin(t)
    t.append(ev.UserSaid(text=text, turn=turn, source="text", text_id=text_id))
    memory.remember_user(t, text)
    consent.answered(t, text)
    connection.put_back_notice(t)
    t.owed = replace(t.owed, question=text, asking=True, turn=turn, go_on=False, said="", repeated=False)
    t.realtime = replace(t.realtime, awaited=True)
    t.hearing = replace(t.hearing, ended_at=t.now)
    t.client.typed_at = t.now
    if t.realtime.ready:
        connection.say(t, text)
    else:
        t.owed = replace(t.owed, go_on=True)
    transcripts.wait_for_an_answer(t)


def notice(t: Transition, text: str) -> None:
    """Have the model make an announcement, which answers no turn."""
    t.owed = replace(t.owed, announcement=text, question="", repeated=False)
    connection.say(t, unanswered.ANNOUNCE.format(text))
    transcripts.wait_for_an_answer(t)


def agent_audio(t: Transition, input: provider_events.AgentAudio) -> None:
    """Record audio of the model, in the current reply or a new one."""
    if t.realtime.response.muted:
        return
    before_ms = t.realtime.response.counted_ms
    reply, begins = _response(t, input.audio_ms)
    earlier, last = playout.newest(reply.pieces)
    last = replace(last, ms=max(last.ms, _sounded_ms(input, begins, before_ms) - playout.model_ms(earlier)))
    reply = playout.resumed(reply, t.now)
    t.speech.reply = replace(reply, pieces=(*earlier, last), stamps=speaking.sounds(reply, t.now))
    # A connection opened during a long answer need not hear the microphone audio of that whole answer again.
    t.hearing = replace(t.hearing, audio_ms=max(t.realtime.hearing.audio_ms, input.audio_ms))
    transcripts.wait_for_an_answer(t)


def agent_words(t: Transition, input: provider_events.AgentWords) -> None:
    """Record further transcript of what the model speaks. It may come after its audio."""
    realtime, reply = t.realtime, t.reply
    if realtime.response.muted:
        return
    before_ms, begins = 0, False
    elsewhere = reply is not None and realtime.owed.turn not in (0, reply.turn)  # a call opened another turn since: its answer begins
    if reply is None or reply.connection != realtime.effect or (reply.closed and (realtime.response.over or elsewhere)):
        before_ms = realtime.response.counted_ms
        reply, begins = _response(t, realtime.hearing.audio_ms)
        transcripts.wait_for_an_answer(t)
    elif realtime.awaited:
        reply = _comes(t, reply)
    earlier, last = playout.newest(reply.pieces)
    room = TEXT_LIMIT - sum(len(piece.text) for piece in reply.pieces)
    ms = max(last.ms, _sounded_ms(input, begins, before_ms) - playout.model_ms(earlier))
    last = replace(last, text=(last.text + input.text[: max(0, room)]).lstrip(), ms=ms)
    stamps = replace(reply.stamps, llm_first_token=reply.stamps.llm_first_token or t.now)
    t.speech.reply = reply = replace(reply, pieces=(*earlier, last), stamps=stamps)
    turns.announce(t, " ".join(filter(None, (piece.text.strip() for piece in reply.pieces))))


def agent_text(t: Transition, input: provider_events.AgentText) -> None:
    """Record text that the model wrote and does not speak. It is used only if the model does not speak at all in this turn."""
    realtime = t.realtime
    if not realtime.response.muted:
        t.response = replace(t.response, written=(realtime.response.written + input.text)[:TEXT_LIMIT])


def interrupted(t: Transition, input: provider_events.Interrupted) -> None:
    """Handle an interruption: the user spoke over the model, or typed. If typed, it ends the response before the typed question."""
    transcripts.final(t)
    connection.put_back_notice(t)
    realtime = t.realtime
    typed_over = (realtime.response.muted or t.reply is None or t.reply.filler) and bool(realtime.owed.question) and not realtime.owed.go_on
    if not typed_over:
        transcripts.leave_unanswered(t)
    owed = realtime.owed
    from_ms = max(realtime.hearing.from_ms, input.audio_ms - transcripts.BEFORE_ONSET_MS)
    t.realtime = replace(
        t.realtime,
        hearing=replace(t.hearing, from_ms=from_ms, audio_ms=input.audio_ms),
        owed=Owed(
            asking=True,
            question=owed.question if typed_over else "",
            repeated=owed.repeated,
            turn=owed.turn if typed_over else 0,
            announcement=owed.announcement,
        ),
        awaited=typed_over,
        response=Response(stage="over" if realtime.response.over else "open", cut=True),
    )
    turns.cancel_reply(t, "barge_in")
    transcripts.wait_for_an_answer(t)


def stop(t: Transition) -> None:
    """Silence the model, as the user asked."""
    realtime = t.realtime
    owed = realtime.owed
    due = realtime.ready and (owed.announces or owed.turn != 0) and not owed.go_on  # the model was asked and has not begun
    if _mute(t) or (due and (t.reply is None or t.reply.connection != realtime.effect)):
        t.outputs.append(out.Interrupt(realtime.effect))
        t.response = replace(t.response, muted=True)
    t.realtime = replace(t.realtime, awaited=False)
    turns.cancel_reply(t, "client")
    t.owed = replace(
        t.owed,
        go_on=False,
        question="",
        repeated=False,
        said="",
        announcement=None,
        asking=bool(realtime.hearing.words) or realtime.hearing.active,
    )
    transcripts.leave_unanswered(t)
    if t.realtime.owed.asking or t.realtime.response.muted:
        transcripts.wait_for_an_answer(t)


def generation_done(t: Transition, input: provider_events.GenerationDone) -> None:
    """Close the reply: the model has made all of its response."""
    reply = t.reply
    if reply is not None and reply.connection == t.realtime.effect and not reply.closed and input.ms:
        speaking.close(t, input.ms)


def model_turn_done(t: Transition, input: provider_events.ModelTurnDone) -> None:
    """Handle the end of the model's turn: close its reply, or deal with a turn that brought none."""
    realtime, reply = t.realtime, t.reply
    mine = reply if reply is not None and reply.connection == realtime.effect and realtime.owed.turn in (0, reply.turn) else None
    written = realtime.response.written
    count(t, input)
    t.realtime = replace(t.realtime, response=Response(), answered_at=t.now)
    if realtime.response.muted or realtime.response.cut:
        return
    t.realtime = replace(t.realtime, awaited=bool(realtime.tool_calls.open))
    if mine is not None:
        if input.quiet and input.ms:
            unanswered.ask_again(t, "The model's audio is silent.")
            return
        if t.speech.cut is None and not realtime.can.detects_voice:
            transcripts.final(t)
        t.realtime = replace(t.realtime, tries=0, resumption=replace(t.realtime.resumption, deaths=0))
        t.owed = replace(t.owed, question="", repeated=False, said="", turn=0)
        if not mine.closed:
            speaking.close(t, input.ms)
    elif written and not realtime.tool_calls.open:
        _written(t, written)
    elif realtime.owed.said and realtime.owed.turn and not realtime.response.called:
        _said_all(t)
    elif not realtime.response.over:
        return  # its reply was finished before; an open question belongs to its next turn
    elif realtime.owed.announcement and not realtime.response.called:
        unanswered.passed_over(t, realtime.owed.announcement, "The model passed over what it was to announce.")
    elif realtime.owed.announces and not realtime.response.called:  # a continuation that answers no turn
        t.owed = replace(t.owed, announcement=None, question="", repeated=False, said="")
        t.cancel_timers(ANSWER)
    elif input.waiting:
        _unfinished(t)
    elif (realtime.owed.asking or realtime.owed.question) and not realtime.response.called:
        unanswered.ask_again(t, f"The model ended its turn without a word{': ' + input.reason if input.reason else ''}.")


def count(t: Transition, input: provider_events.ModelTurnDone | provider_events.TokensCounted) -> None:
    """Add tokens, which count for the next turn that is completed."""
    t.counters.tokens += input.input_tokens + input.output_tokens
    t.conversation.uncounted = usage.added(t.conversation.uncounted, usage.counted(t.state, input.input_tokens, input.output_tokens))


def _unfinished(t: Transition) -> None:
    """Complete the turn without an answer: the model waits for the user to go on."""
    transcripts.finish(t)
    going_on = t.realtime.owed.turn
    if going_on:
        ledger.complete(t, going_on, "completed")
    t.owed = replace(t.owed, asking=False, question="", repeated=False, turn=0)
    t.realtime = replace(t.realtime, tries=0)
    t.cancel_timers(ANSWER)
    t.set_timer("idle", t.settings.idle_timeout_s * 1_000)


def _said_all(t: Transition) -> None:
    """Complete a turn whose model was asked to go on after the heard words and has nothing to add."""
    realtime, reply = t.realtime, t.reply
    turn = realtime.owed.turn
    spoke_up = bool(realtime.hearing.words) and not realtime.hearing.turn  # words that the model may still answer
    t.realtime = replace(t.realtime, tries=0)
    t.owed = replace(t.owed, asking=realtime.owed.asking and spoke_up, question="", repeated=False, said="", turn=0)
    if reply is not None and reply.turn == turn:  # its audio is still being heard
        t.speech.reply = replace(reply, goes_on=False)
        speaking.end_speech(t)
    else:
        ledger.complete(t, turn, "completed")
    if not t.realtime.owed.asking:
        t.cancel_timers(ANSWER)
    t.set_timer("idle", t.settings.idle_timeout_s * 1_000)


def _sounded_ms(input: provider_events.AgentAudio | provider_events.AgentWords, begins: bool, before_ms: int) -> int:
    """Return the ms of audio that belong to the reply. An event that begins a reply counts only the audio that came with it: the
    connection restarts its count there, and earlier audio of the response belongs to no reply."""
    return input.piece_ms if begins and input.piece_ms is not None else input.ms - before_ms


def _response(t: Transition, audio_ms: int) -> tuple[Reply, bool]:
    """Return the reply that the model is making and whether it begins here. A new reply is begun if there is none."""
    realtime, reply = t.realtime, t.reply
    if reply is not None and reply.connection == realtime.effect and not reply.closed:
        return _comes(t, reply) if realtime.awaited else reply, False
    begun = None
    if reply is not None and reply.filler:
        begun, t.speech.reply = _comes(t, reply), None
    elif reply is not None and not (reply.connection or turns.made(reply)):
        turns.cancel_reply(t, "handoff")  # a reply of the installation's voice: the model speaks itself after all
    elif reply is not None:
        turns.hand_on(t, goes_on=reply.goes_on or reply.turn == realtime.owed.turn)
    transcripts.expect(t)
    transcripts.begin_turn(t)
    realtime = t.realtime
    turn = 0 if realtime.owed.announces else realtime.owed.turn or t.counters.turns
    stamps = Stamps(speech_ended=realtime.hearing.ended_at or None)
    if begun is not None:
        reply = replace(begun, kind="words", goes_on=False)
    else:
        t.counters.generation += 1
        reply = Reply(generation=t.counters.generation, turn=turn)
    reply = replace(
        reply, turn=turn, connection=realtime.effect, speaker=SpokenBy(agent=t.team.agent.name, voice=t.team.voice), stamps=stamps
    )
    t.speech.reply, t.speech.unplayed = reply, None
    t.outputs.append(out.Play(realtime.effect, reply.generation))
    t.realtime = replace(
        realtime,
        hearing=replace(realtime.hearing, from_ms=audio_ms, audio_ms=audio_ms, speaking=False),
        owed=replace(realtime.owed, announcement=None),
        awaited=False,
        response=replace(realtime.response, stage="called" if realtime.response.called else "open", cut=False, counted_ms=0),
    )
    return reply, True


def _comes(t: Transition, reply: Reply) -> Reply:
    """End the wait for the model: drop a filler without audio, and return the reply."""
    filler.give_way(t)
    t.realtime = replace(t.realtime, awaited=False)
    t.speech.reply = playout.after_a_wait(t.reply or reply, t.now)
    return t.speech.reply


def _mute(t: Transition) -> bool:
    """Mute the rest of the response that is being made. Return whether its reply was still open."""
    realtime, reply = t.realtime, t.reply
    if reply is None or reply.connection != realtime.effect:
        return False
    if not realtime.response.over:
        t.response = replace(t.response, muted=True)
    return not reply.closed


def _written(t: Transition, text: str) -> None:
    """Handle an answer in text alone: a call written as text is made, other text is spoken by the cascade's voice."""
    realtime = t.realtime
    found = textual_calls.find(text, t.team.functions)
    if found is not None:
        ref = f"written-{t.counters.calls + 1}"
        tool_calls.call_requested(t, provider_events.CallRequested(effect=0, ref=ref, name=found[0], arguments=found[1]))
        of_nobody = (replace(call, effect=0) if call.ref == ref else call for call in t.realtime.tool_calls.open)
        t.realtime = replace(t.realtime, tool_calls=replace(t.realtime.tool_calls, open=tuple(of_nobody)))
        return
    transcripts.begin_turn(t)
    turn = 0 if realtime.owed.announces else t.counters.turns
    t.realtime = replace(t.realtime, tries=0)
    t.owed = replace(t.owed, question="", repeated=False, turn=0, announcement=None, said="")
    t.append(
        ev.ProviderFailed(
            part="tts",
            error=ev.Failure(code="PROVIDER_REFUSED", message="The model wrote its answer and did not speak it.", retryable=True),
            turn=turn,
            handled=True,
        )
    )
    transcripts.leave_reply(t)
    if t.reply is not None:
        turns.hand_on(t, goes_on=t.reply.goes_on)
    turns.say(t, markup.written(text), turn=turn)
