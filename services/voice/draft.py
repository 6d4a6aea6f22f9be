"""One step in the making: the copied state, the time, and the outputs so far. Pure."""

from __future__ import annotations

import copy
from typing import Any, Final

from services.voice import outputs as out
from services.voice.state import Reply, State, Utterance
from shared import events, moments
from shared.step import Append

DROPPED_LIMIT: Final = 64
_LATE: Final = "It takes longer than usual."
_AWAY: Final = "The {} is not there. Trying again."


class Draft:
    """What the parts of the core write into; `state` is a copy and may be changed."""

    def __init__(self, state: State, now: int) -> None:
        self.state = copy.copy(state)
        self.now = now
        self.outputs: list[Any] = []

    def append(self, event: events.Event) -> None:
        """Write an event to the log."""
        self.outputs.append(Append(event))

    def start(self, effect: out.Effect) -> int:
        """Start an effect; returns its id, unique in the session."""
        self.state.effects += 1
        self.outputs.append(out.StartEffect(self.state.effects, effect))
        return self.state.effects

    def cancel(self, *effects: int | None) -> None:
        """Cancel those of the effects that are there."""
        self.outputs.extend(out.CancelEffect(effect) for effect in effects if effect is not None)

    def set_timer(self, name: str, after_ms: int) -> None:
        """Set or replace a timer."""
        self.outputs.append(out.SetTimer(name, max(0, after_ms)))

    def cancel_timers(self, *names: str) -> None:
        """Forget timers."""
        self.outputs.extend(out.CancelTimer(name) for name in names)

    def tell(self, moment: moments.Moment) -> None:
        """Tell the client about the moment."""
        self.outputs.append(out.Tell(moment))

    def forget_call(self, call_id: str) -> None:
        """Remember that a late result of this call is not wanted."""
        self.state.dropped = (*self.state.dropped, call_id)[-DROPPED_LIMIT:]

    @property
    def utterance(self) -> Utterance | None:
        """What the user is saying."""
        return self.state.utterance

    @property
    def reply(self) -> Reply | None:
        """What the agent is saying."""
        return self.state.reply

    def show(self) -> None:
        """Tell the client the state, if it changed."""
        line = self.state.line
        if self.reply is not None or self.utterance is not None or (line is not None and line.asking):
            self.state.trouble = ""
        state, reason = shown_state(self.state), shown_reason(self.state)
        if (state, reason) != self.state.shown:
            self.state.shown = (state, reason)
            self.tell(moments.StateChanged(state, reason))


def shown_state(state: State) -> moments.State:
    """The state as people see it (docs/protocol.md, `state`)."""
    if state.phase == "ended":
        return "ended"
    if state.phase == "new":
        return "connecting"
    if state.utterance is not None and state.utterance.to_ms is None:
        return "user_speaking"
    reply, line = state.reply, state.line
    if reply is not None and reply.playing and not reply.quiet:
        return "speaking"
    if line is not None and (line.speaking or line.active):
        return "user_speaking"
    if (reply is not None and reply.calls) or (line is not None and line.calls):
        return "calling_tool"
    waited_for = reply is not None or state.utterance is not None or (line is not None and line.awaited)
    return "thinking" if waited_for else "listening"


def shown_reason(state: State) -> str:
    """Why nothing can be heard, where a model is waited for."""
    utterance, reply = state.utterance, state.reply
    if utterance is not None and utterance.stt_away:
        return _AWAY.format("speech recognition")
    if reply is not None and (reply.llm_away or reply.tts_away):
        return _AWAY.format("language model" if reply.llm_away else "voice")
    return _LATE if state.overdue else state.trouble
