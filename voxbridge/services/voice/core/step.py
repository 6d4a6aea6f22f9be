"""The core of a voice session: `step(state, input, now) -> (state, outputs)`. Pure.

It makes every decision of a session and performs none of them. The time of each input (µs of the Unix clock) is an argument, results of
effects arrive as inputs, and audio never enters the core: the shell routes frames as the last step told it.

This module passes each input to the module that handles it: `listening` for speech, `speaking` for the output of cascade models,
`responses` and `connection` for realtime models, `turns` for what is said and heard. What follows from it for all of them is decided by
the rules of `settling`, in their order. A crash loses only what is not in the journal.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from voxbridge.services.voice.core import (
    agents,
    allowance,
    child,
    ending,
    executor,
    handoff,
    inputs,
    opening,
    presence,
    provider_events,
    reset,
    settling,
    takeover,
    text_mode,
    transition,
)
from voxbridge.services.voice.core import outputs as out
from voxbridge.services.voice.core.cascade import listening, model_retry, slow_model, speaking
from voxbridge.services.voice.core.realtime import connection as realtime_connection
from voxbridge.services.voice.core.realtime import faults, noises, responses, tool_calls, transcripts, unanswered
from voxbridge.services.voice.core.state import Mark, Stamps, State
from voxbridge.services.voice.core.transition import ANSWER, Transition
from voxbridge.services.voice.core.turns import (
    consent,
    filler,
    handoff_request,
    open_calls,
    paused_reply,
    playout,
    reopening,
    rounds,
    screen,
    trailing,
    turns,
)
from voxbridge.shared import events
from voxbridge.shared.agents.model import HANDOFF
from voxbridge.shared.events import gateway
from voxbridge.shared.events import voice as ev
from voxbridge.shared.step.journal import LogInput

TEXTS_KEPT: Final = 64
"""Number of typed texts whose ids are remembered: as many as a client keeps to send again."""

_FROM_A_CLIENT: Final = (
    gateway.TextReceived,
    gateway.PlaybackReported,
    gateway.AudioEnded,
    gateway.InterruptRequested,
    gateway.ResetRequested,
    gateway.OutputRequested,
    gateway.BrowserCallAnswered,
)
UNPLAYED_MS: Final = 500
"""Milliseconds at the end of a reply that may be unreported only because reports come at intervals; more counts as not played."""


def initial(sid: str) -> State:
    """Return the state before the first input."""
    return State(sid=sid)


def step(state: State, input: inputs.Input | LogInput, now: int) -> tuple[State, Sequence[out.Output]]:
    """Apply one input. Return the new state and the outputs, which the shell must perform in order."""
    if state.phase == "ended":
        return state, ()
    t = Transition(state, now)
    if isinstance(input, LogInput):
        _event(t, input.recorded.event, input.recorded.ts)
    else:
        _input(t, input)
    settling.settle(t)
    t.show()
    return t.state, t.outputs


def _event(t: Transition, event: events.Event, ts: int) -> None:  # noqa: C901, PLR0912 - one case for each event
    if t.client.presumed and isinstance(event, _FROM_A_CLIENT):
        presence.back(t)
    match event:
        case gateway.SessionRequested():
            t.state.request, t.state.requested_at = event, ts
        case gateway.TextReceived(text_id=text_id) if text_id and text_id in t.pending.texts:
            pass  # sent again: the client could not know that it had arrived
        case gateway.TextReceived() if t.pending.ending is not None:
            turns.cancel_reply(t, "text")  # no model is left to answer it
        case gateway.TextReceived(text=text, text_id=text_id) if t.state.realtime is not None:
            _remember(t, text_id)
            responses.typed(t, text, text_id)
        case gateway.TextReceived(text=text, text_id=text_id) if t.state.request is not None and t.state.request.mode != "echo":
            _remember(t, text_id)
            reopening.give_up(t)
            turns.cancel_reply(t, "text")
            turns.user_said(t, text, source="text", stamps=Stamps(speech_ended=t.now), text_id=text_id)
        case gateway.PlaybackReported(generation=generation, played_ms=played_ms, state=playback):
            if playback == "finished" and t.state.realtime is not None:
                transcripts.final(t)  # the user's words precede the reply that was heard
            turns.playback(t, generation, played_ms, playback)
        case gateway.AudioEnded() if t.state.realtime is not None:
            transcripts.activity_over(t)
            t.outputs.append(out.EndAudio(t.state.realtime.effect))
        case gateway.AudioEnded():
            listening.microphone_closed(t)
        case gateway.InterruptRequested() if t.state.realtime is not None:
            responses.stop(t)
        case gateway.InterruptRequested():
            reopening.give_up(t)
            turns.cancel_reply(t, "client")
        case gateway.ResetRequested():
            reset.reset(t)
        case gateway.OutputRequested(output=output):
            text_mode.switch(t, output)
        case gateway.BrowserCallAnswered(call_id=call_id, result=result):
            executor.answered(t, call_id, result)
        case gateway.HandoffRequested(target=target, reason=reason):
            handoff_request.asked_for(t, target, reason=reason)
        case gateway.ClientConnected():
            presence.connected(t, event)
        case gateway.ClientDisconnected(connection=connection) if t.client.connection in ("", connection):
            t.client.presumed = False
            presence.away(t)
        case gateway.SessionEndRequested(reason=reason):
            ending.end(t, reason)
        case _:
            executor.took(t, event)


def _remember(t: Transition, text_id: str) -> None:
    if text_id:
        t.pending.texts = (*t.pending.texts, text_id)[-TEXTS_KEPT:]


def _said_by_provider(t: Transition, input: provider_events.ProviderInput) -> None:  # noqa: C901, PLR0912 - one case for each input
    realtime = t.state.realtime
    if t.state.phase != "open" or realtime is None or input.effect != realtime.effect:
        return
    match input:
        case provider_events.ProviderReady():
            how = realtime_connection.ready(t, input)
            handoff.completed(t, how or "log")
            if how != "handle":
                screen.connected(t)
        case provider_events.ProviderLost():
            faults.lost(t, input)
            if realtime_connection.given_up(t) and not handoff.unreached(t, input.error) and not text_mode.unreached(t, input.error):
                if unanswered.owns_up_to_loss(t):
                    t.pending.ending = input.error
                else:
                    ending.end(t, "provider_lost", input.error)
        case provider_events.GoingAway():
            realtime_connection.going_away(t, input)
        case provider_events.HandleUpdated():
            realtime_connection.handle_updated(t, input)
        case provider_events.UserVoice():
            transcripts.user_voice(t, input)
        case provider_events.UserWords():
            transcripts.user_words(t, input)
        case provider_events.AgentAudio():
            responses.agent_audio(t, input)
        case provider_events.AgentWords():
            responses.agent_words(t, input)
        case provider_events.AgentText():
            responses.agent_text(t, input)
        case provider_events.CallRequested():
            tool_calls.call_requested(t, input)
        case provider_events.CallsCancelled():
            tool_calls.calls_cancelled(t, input)
        case provider_events.Interrupted():
            responses.interrupted(t, input)
        case provider_events.GenerationDone():
            responses.generation_done(t, input)
        case provider_events.ModelTurnDone():
            responses.model_turn_done(t, input)
        case provider_events.TokensCounted():
            responses.count(t, input)


def _input(t: Transition, input: inputs.Input) -> None:  # noqa: C901, PLR0912 - one case for each input
    match input:
        case inputs.VoiceStarted(audio_ms=audio_ms) if t.state.realtime is not None:
            transcripts.activity(t, speaking=True, audio_ms=audio_ms)
        case inputs.VoiceStopped(audio_ms=audio_ms) if t.state.realtime is not None:
            transcripts.activity(t, speaking=False, audio_ms=audio_ms)
        case inputs.VoiceStarted(audio_ms=audio_ms):
            listening.voice_started(t, audio_ms)
        case inputs.VoiceStopped(audio_ms=audio_ms, silence_ms=silence_ms):
            listening.voice_stopped(t, audio_ms, silence_ms)
        case inputs.VoicePaused(audio_ms=audio_ms):
            listening.voice_paused(t, audio_ms)
        case inputs.Transcribed():
            listening.transcribed(t, input)
        case inputs.TurnJudged():
            listening.judged(t, input)
        case inputs.TextDelta():
            speaking.text_delta(t, input)
        case inputs.ToolRequested(name=name) if name == HANDOFF:
            handoff_request.requested(t, input)
        case inputs.ToolRequested():
            speaking.tool_requested(t, input)
        case inputs.Completed():
            speaking.completed(t, input)
        case inputs.AudioMade():
            speaking.audio_made(t, input)
        case inputs.AudioSent(generation=generation, sequence=sequence):
            speaking.audio_sent(t, generation, sequence)
        case inputs.MicrophoneAt(samples=samples, sequence=sequence, time_ms=time_ms):
            t.client.microphone = Mark(samples=samples, sequence=sequence, time_ms=time_ms)
        case inputs.EffectFailed():
            listening.effect_failed(t, input)
            if not handoff.refused(t, input):
                speaking.effect_failed(t, input)
        case inputs.TimerFired(name=name):
            _timer(t, name)
        case inputs.CauseFound():
            slow_model.cause_found(t, input)
        case _:
            _of_the_worker(t, input)


def _of_the_worker(t: Transition, input: inputs.WorkerInput | provider_events.ProviderInput) -> None:
    match input:
        case inputs.Opened():
            opening.open_session(t, input)
        case inputs.UnheardChanged() | inputs.ScreenChanged() | inputs.MacrosChanged() | inputs.NamesChanged():
            _of_the_account(t, input)
        case inputs.ParentOver(reason=reason):
            child.left_alone(t, reason)
        case inputs.Refused(worker=worker, term=term, error=error):
            if t.state.phase == "new":
                t.append(ev.SessionOwned(worker=worker, term=term))
            ending.end(t, "refused", error)
        case inputs.TakenOver():
            if t.state.phase == "open":
                takeover.taken_over(t, input)
            if t.client.away_since:
                t.set_timer("grace", max(presence.GRACE_MS, presence.window_ms(t) - (t.now - t.client.away_since) // 1_000))
        case inputs.Released(worker=worker, term=term, reason=why):
            t.append(ev.SessionReleased(worker=worker, term=term, reason=why))
            t.ownership.released = True
            t.outputs.append(out.Close())
        case inputs.LimitReached(reason=reason, error=error):
            if t.state.phase == "open":
                ending.end(t, reason, error)
        case inputs.GatewayLost(gateway=lost):
            if t.client.gateway == lost and not t.client.away_since and t.state.phase == "open":
                presence.away(t)
                t.client.presumed = True
        case inputs.Broken(error=error):
            ending.end(t, "worker_lost", error)
        case inputs.Orphaned():
            ending.end(t, "worker_lost", ev.Failure(code="INTERRUPTED", message="The voice worker of this session died.", retryable=True))
        case _:
            _said_by_provider(t, input)


def _of_the_account(
    t: Transition, input: inputs.UnheardChanged | inputs.ScreenChanged | inputs.MacrosChanged | inputs.NamesChanged
) -> None:
    if isinstance(input, inputs.UnheardChanged):
        t.pending.unheard = input.tasks if opening.is_told(t.state) else ()
    elif not opening.is_the_accounts(t.state):
        return  # an agent in the background, and a stranger, have no screen, no macros and no names
    elif isinstance(input, inputs.ScreenChanged):
        screen.know(t, input.view)
    elif isinstance(input, inputs.NamesChanged):
        agents.know_names(t, input.names)
    else:
        agents.know_macros(t, input.macros)


def _timer(t: Transition, name: str) -> None:  # noqa: C901, PLR0912, PLR0915 - one case for each timer
    match name:
        case "idle":
            ending.idle(t)
        case filler.TIMER:
            filler.due(t)
        case noises.TIMER:
            noises.due(t)
        case filler.QUIET:
            filler.over(t)
        case _ if name == ANSWER:
            t.pending.watched = False
            if t.state.realtime is not None:
                unanswered.timed_out(t)
        case "turn" if t.state.realtime is not None and (
            t.reply is None or t.reply.connection or t.reply.filler
        ):  # journals older than `ANSWER`
            unanswered.timed_out(t)
        case "turn":
            speaking.silent_model(t)
        case transcripts.PAUSE if t.state.realtime is not None:
            transcripts.activity_over(t)
        case transition.WORDS if t.state.realtime is not None:
            transcripts.final(t)
        case realtime_connection.LEAVE:
            realtime_connection.rotate(t)
        case "endpoint":
            listening.end_of_turn(t)
        case "partial":
            listening.partial_due(t)
        case "heard":
            turns.resolve_cut(t, None)
        case consent.TIMER:
            consent.waited(t)
        case "paused":
            paused_reply.settle(t, None)
        case screen.TIMER:
            screen.due(t)
        case transition.LATE:
            slow_model.due(t)
        case model_retry.TIMER:
            listening.try_again(t)
            speaking.try_again(t)
        case trailing.TIMER:
            turns.trailed(t)
        case "played":
            _played_by_the_clock(t)
        case "grace":
            ending.end(t, "client_gone")
        case child.TIMER:
            child.due(t)
        case allowance.TIMER:
            allowance.due(t)
        case _ if name.startswith(open_calls.TIMER):
            rounds.begin_call(t, name.removeprefix(open_calls.TIMER))
        case _ if name.startswith("call:") and tool_calls.waits_for(t, name.removeprefix("call:")):
            tool_calls.call_timed_out(t, name.removeprefix("call:"))
        case _ if name.startswith("call:"):
            rounds.call_timed_out(t, name.removeprefix("call:"))


def _played_by_the_clock(t: Transition) -> None:
    reply = t.reply
    if reply is None:
        return
    turns.finish_reply(t)
    if t.client.reported and reply.turn and playout.made_ms(reply) - reply.playback.played_ms > UNPLAYED_MS:
        t.speech.unplayed = reply
