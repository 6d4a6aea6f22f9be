"""Working data of a step in progress: the copied state, the time, and the outputs so far. Pure."""

from __future__ import annotations

from typing import Final

from msgspec.structs import replace

from voxbridge.services.voice.core import outputs as out
from voxbridge.services.voice.core.state import (
    Client,
    Conversation,
    Counters,
    Display,
    Hearing,
    Late,
    Owed,
    Ownership,
    Pending,
    RealtimeState,
    Reply,
    Response,
    Settings,
    Speech,
    State,
    Team,
    Utterance,
)
from voxbridge.shared import events
from voxbridge.shared.bus import moments
from voxbridge.shared.events.voice import ToolCalled
from voxbridge.shared.step.fold import Append

DROPPED_LIMIT: Final = 64
CALLED_LIMIT: Final = 32
"""Names of functions called in one turn that are told with its reply."""

_OVERDUE: Final = "It takes longer than usual."
LATE: Final = "late"
"""Timer that fires when a model is late with its first output."""

LATE_MS: Final = 3_000
"""Milliseconds without output after which a model counts as late; a warm model needs a third of that on an idle machine."""
WORDS: Final = "words"
"""Timer for the words of the user that a realtime model is answering."""

ANSWER: Final = "answer"
"""Timer for an answer of a realtime model. A reply that the cascade speaks meanwhile has its own timer, `turn`."""

_AWAY: Final = "The {} is not there. Trying again."
_LATE: Final = "{}, so this takes longer."


class Transition:
    """Result of a step under construction, which the modules of the core write to; `state` is a copy and may be changed."""

    def __init__(self, state: State, now: int) -> None:
        self.state = state.copied()
        self.now = now
        self.outputs: list[out.Output] = []
        self.watched = 0
        """Number of outputs in which `consent` has looked for what was heard."""

    def append(self, event: events.Event) -> None:
        """Write an event to the log."""
        if isinstance(event, ToolCalled):
            turn, names = self.display.called
            self.display.called = (event.turn, (*(names if turn == event.turn else ()), event.name)[-CALLED_LIMIT:])
        self.outputs.append(Append(event))

    def start(self, effect: out.Effect) -> int:
        """Start an effect. Return its id, unique in the session."""
        self.counters.effects += 1
        self.outputs.append(out.StartEffect(self.counters.effects, effect))
        if isinstance(effect, out.Complete | out.Transcribe) or (isinstance(effect, out.Synthesize) and not effect.whole):
            self.set_timer(LATE, LATE_MS)
        return self.counters.effects

    def cancel(self, *effects: int | None) -> None:
        """Cancel the effects that are not None."""
        self.outputs.extend(out.CancelEffect(effect) for effect in effects if effect is not None)

    def set_timer(self, name: str, after_ms: int) -> None:
        """Set or replace a timer."""
        if name == ANSWER:
            self.pending.watched = True
        self.outputs.append(out.SetTimer(name, max(0, after_ms)))

    def cancel_timers(self, *names: str) -> None:
        """Cancel timers."""
        if ANSWER in names:
            self.pending.watched = False
        self.outputs.extend(out.CancelTimer(name) for name in names)

    def tell(self, moment: moments.Moment) -> None:
        """Send a moment to the client; not the user's unfinished words where it does not want them."""
        if isinstance(moment, moments.PartialTranscript) and moment.role == "user" and not self.settings.options.interim:
            return
        self.outputs.append(out.Tell(moment))

    def forget_call(self, call_id: str) -> None:
        """Record that a late result of this call is to be dropped."""
        self.pending.dropped = (*self.pending.dropped, call_id)[-DROPPED_LIMIT:]

    @property
    def utterance(self) -> Utterance | None:
        """Current utterance of the user."""
        return self.state.utterance

    @property
    def reply(self) -> Reply | None:
        """Current reply of the agent."""
        return self.state.speech.reply

    @property
    def current_reply(self) -> Reply:
        """Current reply of the agent. Raises RuntimeError if there is none."""
        if self.state.speech.reply is None:
            raise RuntimeError("a reply was expected")
        return self.state.speech.reply

    @property
    def realtime(self) -> RealtimeState:
        """State of the agent's realtime model. Raises RuntimeError for a cascade agent; see `State.realtime`."""
        if self.state.realtime is None:
            raise RuntimeError("a realtime model was expected")
        return self.state.realtime

    @realtime.setter
    def realtime(self, realtime: RealtimeState) -> None:
        self.state.realtime = realtime

    @property
    def hearing(self) -> Hearing:
        """The user's speech, as the realtime model heard it."""
        return self.realtime.hearing

    @hearing.setter
    def hearing(self, hearing: Hearing) -> None:
        self.realtime = replace(self.realtime, hearing=hearing)

    @property
    def owed(self) -> Owed:
        """The words that the realtime model owes."""
        return self.realtime.owed

    @owed.setter
    def owed(self, owed: Owed) -> None:
        self.realtime = replace(self.realtime, owed=owed)

    @property
    def response(self) -> Response:
        """The realtime model's current turn."""
        return self.realtime.response

    @response.setter
    def response(self, response: Response) -> None:
        self.realtime = replace(self.realtime, response=response)

    @property
    def settings(self) -> Settings:
        """Settings of the session."""
        return self.state.settings

    @property
    def ownership(self) -> Ownership:
        """The worker's hold on the session, which may be changed."""
        return self.state.ownership

    @property
    def counters(self) -> Counters:
        """Counters, which may be changed."""
        return self.state.counters

    @property
    def team(self) -> Team:
        """Agents, which may be changed."""
        return self.state.team

    @property
    def client(self) -> Client:
        """The client, which may be changed."""
        return self.state.client

    @property
    def conversation(self) -> Conversation:
        """The conversation as its models know it, which may be changed."""
        return self.state.conversation

    @property
    def speech(self) -> Speech:
        """The newest replies, which may be changed."""
        return self.state.speech

    @property
    def pending(self) -> Pending:
        """Open work, which may be changed."""
        return self.state.pending

    @property
    def display(self) -> Display:
        """State shown to the client, which may be changed."""
        return self.state.display

    def show(self) -> None:
        """Send the state and its reason to the client, if they changed."""
        realtime = self.state.realtime
        if self.reply is not None or self.utterance is not None or (realtime is not None and realtime.owed.asking):
            self.display.trouble = ""
        state, reason = shown_state(self.state), shown_reason(self.state)
        if (state, reason) != self.display.shown:
            self.display.shown = (state, reason)
            self.tell(moments.StateChanged(state, reason))


def shown_state(state: State) -> moments.State:
    """Return the state shown to users (docs/protocol.md, `state`)."""
    if state.phase == "ended":
        return "ended"
    if state.phase == "new":
        return "connecting"
    if state.utterance is not None and state.utterance.to_ms is None and not state.utterance.spares:
        return "user_speaking"
    reply, realtime = state.speech.reply, state.realtime
    if reply is not None and reply.playback.playing and not reply.playback.quiet:
        return "speaking"
    if realtime is not None and realtime.hearing.active:
        return "user_speaking"
    if (reply is not None and reply.round.calls) or (realtime is not None and realtime.tool_calls.open):
        return "calling_tool"
    waited_for = reply is not None or state.utterance is not None or (realtime is not None and realtime.awaited)
    return "thinking" if waited_for else "listening"


def shown_reason(state: State) -> str:
    """Return why nothing can be heard while a model is awaited; empty if there is nothing to explain."""
    utterance, reply = state.utterance, state.speech.reply
    if utterance is not None and utterance.stt_away:
        return _AWAY.format("speech recognition")
    if reply is not None and (reply.round.away_since or reply.synthesis.away_since):
        return _AWAY.format("language model" if reply.round.away_since else "voice")
    late, waiting = state.display.late, waited_for(state)
    if late is not None and late.cause and waiting is not None and waiting.effect == late.effect:
        return _LATE.format(late.cause[0].upper() + late.cause[1:])
    return _OVERDUE if state.display.overdue else state.display.trouble


def waited_for(state: State) -> Late | None:
    """Return the model that has produced nothing yet while the user hears nothing; None if there is none."""
    utterance, reply = state.utterance, state.speech.reply
    if utterance is not None:
        if utterance.to_ms is None or utterance.final_effect is None:
            return None
        return Late(effect=utterance.final_effect, part="stt")
    if reply is None or reply.round.calls or reply.round.uses:
        return None
    words = [piece for piece in reply.pieces if not piece.filler]
    if reply.round.effect is not None and not words and not reply.round.unsplit:
        return Late(effect=reply.round.effect, part="llm")
    silent = next((piece for piece in words if not piece.done), None) if not reply.playback.playing else None
    return Late(effect=silent.effect, part="tts") if silent is not None and silent.effect is not None and not silent.ms else None
