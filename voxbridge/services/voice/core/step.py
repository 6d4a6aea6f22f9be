"""The core of a voice session: `step(state, input, now) -> (state, outputs)`. Pure.

It makes every decision of a session and performs none of them. The time of each input (µs of the Unix clock) is an argument, results of
effects arrive as inputs, and audio never enters the core: the shell routes frames as the last step told it.

This module passes each input to the module that handles it: `listening` for speech, `speaking` for the output of cascade models,
`responses` and `connection` for realtime models, `turns` for what is said and heard. A crash loses only what is not in the journal.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import msgspec

from voxbridge.services.voice.core import agents as session_agents
from voxbridge.services.voice.core import handoff, inputs, page_functions, provider_events, takeover, transition
from voxbridge.services.voice.core import outputs as out
from voxbridge.services.voice.core.cascade import listening, model_retry, slow_model, speaking
from voxbridge.services.voice.core.realtime import connection as realtime_connection
from voxbridge.services.voice.core.realtime import faults, noises, responses, tool_calls, transcripts
from voxbridge.services.voice.core.state import Mark, Piece, Reply, Settings, Stamps, State
from voxbridge.services.voice.core.transition import ANSWER, Draft
from voxbridge.services.voice.core.turns import filler, handoff_request, interruption, ledger, playout, reopening, trailing, turns
from voxbridge.shared.agents.functions import failed_result
from voxbridge.shared.agents.model import HANDOFF, Agent
from voxbridge.shared.errors import Code
from voxbridge.shared.events import gateway, tools
from voxbridge.shared.events import voice as ev
from voxbridge.shared.step.fold import LogInput

GRACE_MS: Final = 10_000
"""Milliseconds a session waits for a disconnected client that cannot resume it; a client that can has `resume_window_s`."""

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
        _end(d, "provider_lost", d.pending.ending)
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
        _back(d)
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
            _connected(d, event)
        case gateway.ClientDisconnected(connection=connection) if d.client.connection in ("", connection):
            d.client.presumed = False
            _away(d)
        case gateway.SessionEndRequested(reason=reason):
            _end(d, reason)
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
        turns.answered(d, call_id, result)


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
                if responses.owns_up_to_loss(d):
                    d.pending.ending = input.error
                else:
                    _end(d, "provider_lost", input.error)
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
        case inputs.Opened():
            _open(d, input)
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
        case inputs.Refused(worker=worker, term=term, error=error):
            if d.state.phase == "new":
                d.append(ev.SessionOwned(worker=worker, term=term))
            _end(d, "refused", error)
        case inputs.TakenOver():
            if d.state.phase == "open":
                takeover.taken_over(d, input)
            if d.client.away_since:
                d.set_timer("grace", max(GRACE_MS, _window_ms(d) - (d.now - d.client.away_since) // 1_000))
        case inputs.Released(worker=worker, term=term, reason=why):
            d.append(ev.SessionReleased(worker=worker, term=term, reason=why))
            d.ownership.released = True
            d.outputs.append(out.Close())
        case inputs.LimitReached(reason=reason, error=error):
            if d.state.phase == "open":
                _end(d, reason, error)
        case inputs.GatewayLost(gateway=lost):
            if d.client.gateway == lost and not d.client.away_since and d.state.phase == "open":
                _away(d)
                d.client.presumed = True
        case inputs.CauseFound():
            slow_model.cause_found(d, input)
        case inputs.Broken(error=error):
            _end(d, "worker_lost", error)
        case inputs.Orphaned():
            _end(d, "worker_lost", ev.Failure(code="INTERRUPTED", message="The voice worker of this session died.", retryable=True))
        case _:
            _said_by_provider(d, input)


def _open(d: Draft, input: inputs.Opened) -> None:
    request = d.state.request
    if request is None:
        raise RuntimeError("a session is opened by its request")
    d.ownership.term = input.term
    d.append(ev.SessionOwned(worker=input.worker, term=input.term))
    agents = session_agents.of(request, input)
    code, message = _wrong(request.mode, agents[0], input.providers)
    if not message and request.functions:
        code, message = page_functions.wrong(request.functions, input.functions, agents)
    if message:
        _end(d, "refused", ev.Failure(code=code, message=f"Session start failed: {message}"))
        return
    d.state.phase = "open"
    d.state.settings = Settings(
        idle_timeout_s=input.idle_timeout_s,
        turn_timeout_s=input.turn_timeout_s,
        tool_rounds=input.tool_rounds,
        reopens=input.reopens,
        speak_results=input.speak_results,
        filler=input.filler,
        language=input.language,
        prices=input.prices,
        resume_window_s=input.resume_window_s,
        model_patience_s=input.model_patience_s,
        stt_patience_s=input.stt_patience_s or input.model_patience_s,
        recorded=input.record,
    )
    d.client.reports_playback = request.client.protocol == "voxbridge.v1"
    d.team.catalogue = (*input.functions, *request.functions) if request.mode != "echo" else ()
    d.team.agents = agents if agents[0].name else ()
    d.team.usual = input.model
    d.team.providers = input.providers if input.tool_rounds else ()  # see `Opened.tool_rounds`
    session_agents.enter(d, agents[0])
    d.append(
        ev.SessionStarted(
            mode=request.mode,
            model=d.team.model,
            voice=d.team.voice,
            output=d.team.output,
            tools=tuple(function.name for function in d.team.functions),
            agent=d.team.agent.name,
            agents=tuple(agent.name for agent in d.team.agents),
            pipeline=input.cast.pipeline if input.cast is not None else "",
            recorded=input.record,
        )
    )
    d.outputs.append(out.Route(listening.route_of(d)))
    d.set_timer("idle", d.settings.idle_timeout_s * 1_000)
    if agents[0].realtime is not None:
        realtime_connection.begin(d, agents[0])
    if agents[0].greeting and request.mode != "echo":
        turns.notice(d, agents[0].greeting)


def _wrong(mode: str, agent: Agent, providers: Sequence[str]) -> tuple[Code, str]:
    """Return why a session cannot begin: an unsupported option, or a provider that is not configured here. Empty message: it can."""
    if mode != "echo" and agent.realtime is not None and agent.output == "text":
        model = session_agents.model_of(agent, "")
        return Code.INVALID_ARGUMENT, f"`output` must be audio with {model}, which speaks itself; leave it out, or choose another model."
    missing = sorted({mode} - set(providers) if mode == "echo" else session_agents.providers(agent) - set(providers))
    if not missing:
        return Code.PROVIDER_UNAVAILABLE, ""
    message = f"no provider for mode {mode!r} is configured here; there is {', '.join(providers)}."
    if mode != "echo":
        keys = " and ".join(f"{name.upper()}_API_KEY" for name in missing)
        message += f" Set {keys}, or give the key to POST /api/config/keys."
    return Code.PROVIDER_UNAVAILABLE, message


def _away(d: Draft) -> None:
    """Record that the client is lost, and keep what it has not heard until it is back."""
    if d.client.away_since or d.state.phase != "open":
        return
    d.client.away_since = d.now
    d.set_timer("grace", _window_ms(d))
    if d.state.realtime is not None:
        faults.pause(d, "disconnect")
    else:
        interruption.lose_sight(d)


def _back(d: Draft) -> None:
    d.cancel_timers("grace")
    away, d.client.away_since, d.client.presumed = d.client.away_since, 0, False
    if away and d.reply is not None:
        d.set_timer("turn", d.settings.turn_timeout_s * 1_000)
        interruption.ask(d)


def _window_ms(d: Draft) -> int:
    return d.settings.resume_window_s * 1_000 if d.client.reports_playback else GRACE_MS


def _connected(d: Draft, event: gateway.ClientConnected) -> None:
    """Attach a client's socket, and go on where the client stopped hearing."""
    state = d.state
    state.client.gateway, state.client.connection = event.gateway, event.connection
    if event.resumed and not state.client.away_since:  # the loss of its previous socket was not noticed
        if state.realtime is not None:
            faults.pause(d, "disconnect")
        else:
            interruption.pause(d, "disconnect")
    unplayed, state.speech.unplayed = state.speech.unplayed, None
    _back(d)
    if d.reply is not None:
        return
    if event.resumed and unplayed is not None and d.utterance is None:
        _, _, again = playout.resume(unplayed.pieces, unplayed.playback.played_ms)
        rest = " ".join(piece.text for piece in unplayed.pieces[again:])
        if state.realtime is not None and rest:  # the realtime model says it, in the same voice as before
            turns.notice(d, rest)
        elif rest:
            turns.say(d, rest, turn=0)


def _timer(d: Draft, name: str) -> None:
    match name:
        case "idle":
            _idle(d)
        case filler.TIMER:
            filler.due(d)
        case noises.TIMER:
            noises.due(d)
        case filler.QUIET:
            filler.over(d)
        case _ if name == ANSWER:
            d.pending.watched = False
            if d.state.realtime is not None:
                responses.silent(d)
        case "turn" if d.state.realtime is not None and (
            d.reply is None or d.reply.connection or d.reply.filler
        ):  # journals older than `ANSWER`
            responses.silent(d)
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
            _end(d, "client_gone")
        case _ if name.startswith("call:") and tool_calls.waits_for(d, name.removeprefix("call:")):
            tool_calls.call_timed_out(d, name.removeprefix("call:"))
        case _ if name.startswith("call:"):
            turns.call_timed_out(d, name.removeprefix("call:"))


def _played_by_the_clock(d: Draft) -> None:
    reply = d.reply
    if reply is None:
        return
    turns.finish_reply(d)
    if d.client.reported and reply.turn and playout.made_ms(reply) - reply.playback.played_ms > UNPLAYED_MS:
        d.speech.unplayed = reply


def _idle(d: Draft) -> None:
    """End an idle session; restart the timer of one that is busy. The timer runs for the whole session, so no code path can lose it."""
    request, realtime = d.state.request, d.state.realtime
    busy = realtime is not None and (
        realtime.owed.asking or realtime.hearing.active or realtime.owed.go_on or realtime.tool_calls.open or realtime.owed.announces
    )
    if (request is not None and request.mode == "echo") or d.reply is not None or d.utterance is not None or busy:
        d.set_timer("idle", d.settings.idle_timeout_s * 1_000)
    else:
        _end(d, "idle")


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


def _end(d: Draft, reason: str, error: ev.Failure | None = None) -> None:
    utterance = d.utterance
    if utterance is not None:
        d.cancel(utterance.final_effect, utterance.turn_effect, utterance.partial_effect)
        d.state.utterance = None
    if d.state.realtime is not None:
        transcripts.final(d)
    reopening.give_up(d)
    turns.cancel_reply(d, "end")
    turns.resolve_cut(d, None)
    turns.cut_trailing(d)
    realtime_connection.leave(d)
    d.speech.redo = 0
    ledger.settle(d)
    duration_ms = (d.now - (d.state.requested_at or d.now)) // 1_000
    usage = d.conversation.uncounted if d.conversation.uncounted != ev.Usage() else msgspec.UNSET
    d.append(ev.SessionEnded(reason=reason, turns=d.counters.turns, duration_ms=duration_ms, error=error, usage=usage))
    d.state.phase = "ended"
    d.outputs.append(out.Route("nobody"))
    d.outputs.append(out.Close())
