"""The core of a voice session: `step(state, input, now) -> (state, outputs)`. Pure.

It makes every decision of a session and performs none of them. The time of each input (µs of the Unix clock) is an argument, results of
effects arrive as inputs, and audio never enters the core: the shell routes frames as the last step told it.

This module passes each input to the module that handles it: `listening` for speech, `speaking` for the output of cascade models,
`responses` and `connection` for realtime models, `turns` for what is said and heard. A crash loses only what is not in the journal.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from voxbridge.services.voice.core import ending, handoff, inputs, opening, presence, provider_events, takeover, transition
from voxbridge.services.voice.core import outputs as out
from voxbridge.services.voice.core.cascade import listening, model_retry, slow_model, speaking
from voxbridge.services.voice.core.realtime import connection as realtime_connection
from voxbridge.services.voice.core.realtime import faults, noises, responses, tool_calls, transcripts, unanswered
from voxbridge.services.voice.core.state import Mark, Piece, Reply, Stamps, State
from voxbridge.services.voice.core.transition import ANSWER, Draft
from voxbridge.services.voice.core.turns import filler, handoff_request, interruption, ledger, playout, reopening, rounds, trailing, turns
from voxbridge.shared.agents.functions import failed_result
from voxbridge.shared.agents.model import HANDOFF
from voxbridge.shared.errors import Code
from voxbridge.shared.events import gateway, tools
from voxbridge.shared.events import voice as ev
from voxbridge.shared.step.fold import LogInput

TEXTS_KEPT: Final = 64
"""Number of typed texts whose ids are remembered: as many as a client keeps to send again."""

_FROM_A_CLIENT: Final = (
    gateway.TextReceived,
    gateway.PlaybackReported,
    gateway.AudioEnded,
    gateway.InterruptRequested,
    gateway.BrowserCallAnswered,
)
UNPLAYED_MS: Final = 500
"""Milliseconds at the end of a reply that may be unreported only because reports come at intervals; more counts as not played."""


def initial(sid: str) -> State:
    """Return the state before the first input."""
    return State(sid=sid)


def step(state: State, input: Any, now: int) -> tuple[State, Sequence[Any]]:
    """Apply one input. Return the new state and the outputs, which the shell must perform in order."""
    if state.phase == "ended":
        return state, ()
    d = Draft(state, now)
    if isinstance(input, LogInput):
        _event(d, input.recorded.event, input.recorded.ts)
    else:
        _input(d, input)
    if d.pending.ending is not None and d.state.phase == "open" and d.reply is None and d.speech.cut is None:
        ending.end(d, "provider_lost", d.pending.ending)
    handoff.settle(d)
    faults.settle(d)
    realtime_connection.leave_if_due(d)
    filler.watch(d)
    _next_notice(d)
    noises.watch(d)
    ledger.settle(d)
    realtime_connection.watch(d)
    d.show()
    return d.state, d.outputs


def _event(d: Draft, event: Any, ts: int) -> None:
    if d.client.presumed and isinstance(event, _FROM_A_CLIENT):
        presence.back(d)
    match event:
        case gateway.SessionRequested():
            d.state.request, d.state.requested_at = event, ts
        case gateway.TextReceived(text_id=text_id) if text_id and text_id in d.pending.texts:
            pass  # sent again: the client could not know that it had arrived
        case gateway.TextReceived() if d.pending.ending is not None:
            turns.cancel_reply(d, "text")  # no model is left to answer it
        case gateway.TextReceived(text=text, text_id=text_id) if d.state.realtime is not None:
            _remember(d, text_id)
            responses.typed(d, text, text_id)
        case gateway.TextReceived(text=text, text_id=text_id) if d.state.request is not None and d.state.request.mode != "echo":
            _remember(d, text_id)
            reopening.give_up(d)
            turns.cancel_reply(d, "text")
            turns.user_said(d, text, source="text", stamps=Stamps(speech_ended=d.now), text_id=text_id)
        case gateway.PlaybackReported(generation=generation, played_ms=played_ms, state=playback):
            if playback == "finished" and d.state.realtime is not None:
                transcripts.final(d)  # the user's words precede the reply that was heard
            turns.playback(d, generation, played_ms, playback)
        case gateway.AudioEnded() if d.state.realtime is not None:
            transcripts.activity_over(d)
            d.outputs.append(out.EndAudio(d.state.realtime.effect))
        case gateway.AudioEnded():
            listening.microphone_closed(d)
        case gateway.InterruptRequested() if d.state.realtime is not None:
            responses.stop(d)
        case gateway.InterruptRequested():
            reopening.give_up(d)
            turns.cancel_reply(d, "client")
        case gateway.BrowserCallAnswered(call_id=call_id, result=result):
            _answered(d, call_id, result)
        case gateway.HandoffRequested(target=target, reason=reason):
            handoff_request.asked_for(d, target, reason=reason)
        case gateway.ClientConnected():
            presence.connected(d, event)
        case gateway.ClientDisconnected(connection=connection) if d.client.connection in ("", connection):
            d.client.presumed = False
            presence.away(d)
        case gateway.SessionEndRequested(reason=reason):
            ending.end(d, reason)
        case tools.ToolCompleted(call_id=call_id, result=result):
            _answered(d, call_id, result)
        case tools.ToolFailed(call_id=call_id, error=error):
            _answered(d, call_id, failed_result(error.code, error.message))
        case tools.ToolInterrupted(call_id=call_id, name=name):
            message = f"{name} was interrupted; whether it took effect is not known."
            _answered(d, call_id, failed_result(Code.INTERRUPTED.value, message))
        case tools.TaskCompleted(announce=announce) if announce:
            turns.notice(d, announce)
        case tools.TaskFailed(function=function, error=error):
            turns.notice(d, f"{function.replace('_', ' ')} failed: {error.message}")


def _remember(d: Draft, text_id: str) -> None:
    if text_id:
        d.pending.texts = (*d.pending.texts, text_id)[-TEXTS_KEPT:]


def _answered(d: Draft, call_id: str, result: dict[str, Any]) -> None:
    if tool_calls.waits_for(d, call_id):
        tool_calls.answered(d, call_id, result)
    else:
        rounds.answered(d, call_id, result)


def _said_by_provider(d: Draft, input: Any) -> None:
    realtime = d.state.realtime
    if d.state.phase != "open" or realtime is None or input.effect != realtime.effect:
        return
    match input:
        case provider_events.ProviderReady():
            handoff.completed(d, realtime_connection.ready(d, input) or "log")
        case provider_events.ProviderLost():
            faults.lost(d, input)
            if realtime_connection.given_up(d) and not handoff.unreached(d, input.error):
                if unanswered.owns_up_to_loss(d):
                    d.pending.ending = input.error
                else:
                    ending.end(d, "provider_lost", input.error)
        case provider_events.GoingAway():
            realtime_connection.going_away(d, input)
        case provider_events.HandleUpdated():
            realtime_connection.handle_updated(d, input)
        case provider_events.UserVoice():
            transcripts.user_voice(d, input)
        case provider_events.UserWords():
            transcripts.user_words(d, input)
        case provider_events.AgentAudio():
            responses.agent_audio(d, input)
        case provider_events.AgentWords():
            responses.agent_words(d, input)
        case provider_events.AgentText():
            responses.agent_text(d, input)
        case provider_events.CallRequested():
            tool_calls.call_requested(d, input)
        case provider_events.CallsCancelled():
            tool_calls.calls_cancelled(d, input)
        case provider_events.Interrupted():
            responses.interrupted(d, input)
        case provider_events.GenerationDone():
            responses.generation_done(d, input)
        case provider_events.ModelTurnDone():
            responses.model_turn_done(d, input)
        case provider_events.TokensCounted():
            responses.count(d, input)


def _input(d: Draft, input: Any) -> None:
    match input:
        case inputs.VoiceStarted(audio_ms=audio_ms) if d.state.realtime is not None:
            transcripts.activity(d, speaking=True, audio_ms=audio_ms)
        case inputs.VoiceStopped(audio_ms=audio_ms) if d.state.realtime is not None:
            transcripts.activity(d, speaking=False, audio_ms=audio_ms)
        case inputs.VoiceStarted(audio_ms=audio_ms):
            listening.voice_started(d, audio_ms)
        case inputs.VoiceStopped(audio_ms=audio_ms, silence_ms=silence_ms):
            listening.voice_stopped(d, audio_ms, silence_ms)
        case inputs.Transcribed():
            listening.transcribed(d, input)
        case inputs.TurnJudged():
            listening.judged(d, input)
        case inputs.TextDelta():
            speaking.text_delta(d, input)
        case inputs.ToolRequested(name=name) if name == HANDOFF:
            handoff_request.requested(d, input)
        case inputs.ToolRequested():
            speaking.tool_requested(d, input)
        case inputs.Completed():
            speaking.completed(d, input)
        case inputs.AudioMade():
            speaking.audio_made(d, input)
        case inputs.AudioSent(generation=generation, sequence=sequence):
            speaking.audio_sent(d, generation, sequence)
        case inputs.MicrophoneAt(samples=samples, sequence=sequence, time_ms=time_ms):
            d.client.microphone = Mark(samples=samples, sequence=sequence, time_ms=time_ms)
        case inputs.EffectFailed():
            listening.effect_failed(d, input)
            if not handoff.refused(d, input):
                speaking.effect_failed(d, input)
        case inputs.TimerFired(name=name):
            _timer(d, name)
        case inputs.CauseFound():
            slow_model.cause_found(d, input)
        case _:
            _of_the_worker(d, input)


def _of_the_worker(d: Draft, input: Any) -> None:
    match input:
        case inputs.Opened():
            opening.open_session(d, input)
        case inputs.Refused(worker=worker, term=term, error=error):
            if d.state.phase == "new":
                d.append(ev.SessionOwned(worker=worker, term=term))
            ending.end(d, "refused", error)
        case inputs.TakenOver():
            if d.state.phase == "open":
                takeover.taken_over(d, input)
            if d.client.away_since:
                d.set_timer("grace", max(presence.GRACE_MS, presence.window_ms(d) - (d.now - d.client.away_since) // 1_000))
        case inputs.Released(worker=worker, term=term, reason=why):
            d.append(ev.SessionReleased(worker=worker, term=term, reason=why))
            d.ownership.released = True
            d.outputs.append(out.Close())
        case inputs.LimitReached(reason=reason, error=error):
            if d.state.phase == "open":
                ending.end(d, reason, error)
        case inputs.GatewayLost(gateway=lost):
            if d.client.gateway == lost and not d.client.away_since and d.state.phase == "open":
                presence.away(d)
                d.client.presumed = True
        case inputs.Broken(error=error):
            ending.end(d, "worker_lost", error)
        case inputs.Orphaned():
            ending.end(d, "worker_lost", ev.Failure(code="INTERRUPTED", message="The voice worker of this session died.", retryable=True))
        case _:
            _said_by_provider(d, input)


def _timer(d: Draft, name: str) -> None:
    match name:
        case "idle":
            ending.idle(d)
        case filler.TIMER:
            filler.due(d)
        case noises.TIMER:
            noises.due(d)
        case filler.QUIET:
            filler.over(d)
        case _ if name == ANSWER:
            d.pending.watched = False
            if d.state.realtime is not None:
                unanswered.timed_out(d)
        case "turn" if d.state.realtime is not None and (
            d.reply is None or d.reply.connection or d.reply.filler
        ):  # journals older than `ANSWER`
            unanswered.timed_out(d)
        case "turn":
            speaking.silent_model(d)
        case transcripts.PAUSE if d.state.realtime is not None:
            transcripts.activity_over(d)
        case transition.WORDS if d.state.realtime is not None:
            transcripts.final(d)
        case realtime_connection.LEAVE:
            realtime_connection.rotate(d)
        case "endpoint":
            listening.end_of_turn(d)
        case "partial":
            listening.partial_due(d)
        case "heard":
            turns.resolve_cut(d, None)
        case "paused":
            interruption.settle(d, None)
        case transition.LATE:
            slow_model.due(d)
        case model_retry.TIMER:
            listening.try_again(d)
            speaking.try_again(d)
        case trailing.TIMER:
            turns.trailed(d)
        case "played":
            _played_by_the_clock(d)
        case "grace":
            ending.end(d, "client_gone")
        case _ if name.startswith("call:") and tool_calls.waits_for(d, name.removeprefix("call:")):
            tool_calls.call_timed_out(d, name.removeprefix("call:"))
        case _ if name.startswith("call:"):
            rounds.call_timed_out(d, name.removeprefix("call:"))


def _played_by_the_clock(d: Draft) -> None:
    reply = d.reply
    if reply is None:
        return
    turns.finish_reply(d)
    if d.client.reported and reply.turn and playout.made_ms(reply) - reply.playback.played_ms > UNPLAYED_MS:
        d.speech.unplayed = reply


def _next_notice(d: Draft) -> None:
    if d.state.phase != "open" or d.ownership.released:
        return
    reply = d.reply
    if reply is not None and not interruption.waits(d):
        if interruption.was_heard(reply):
            turns.finish_reply(d)
        elif (reply.closed and reply.round.unsplit) or any(not piece.done and piece.effect is None for piece in _first_unspoken(reply)):
            speaking.speak(d)
    while d.pending.notices and _nobody_speaks(d):
        text, *rest = d.pending.notices
        d.pending.notices = tuple(rest)
        if d.state.realtime is not None:
            responses.notice(d, text)
        else:
            turns.say(d, text, turn=0)
            speaking.speak(d)


def _nobody_speaks(d: Draft) -> bool:
    """Check whether an announcement can start: no one is speaking, and no answer is pending."""
    realtime = d.state.realtime
    if d.utterance is not None or d.reply is not None or d.speech.cut is not None or d.client.away_since or d.team.handoff is not None:
        return False
    if realtime is None:
        return True
    owed = realtime.owed
    return realtime.ready and not (owed.asking or owed.announces or owed.go_on or owed.turn or realtime.hearing.active)


def _first_unspoken(reply: Reply) -> tuple[Piece, ...]:
    return next(((piece,) for piece in reply.pieces if not piece.done), ())
