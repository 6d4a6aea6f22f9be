"""Going on in text, or by voice, in the same conversation: whether replies are spoken or only written, and who hears the microphone. Pure.

A model that speaks itself cannot write. In text a language model of its provider writes in its place, and each knows what the user and the
other one said. If the model that speaks cannot be reached in a conversation that began in text, it goes on in text.
"""

from __future__ import annotations

from typing import Final, Literal

from voxbridge.services.voice.core import agents, handoff
from voxbridge.services.voice.core import outputs as out
from voxbridge.services.voice.core.cascade import listening, speaking
from voxbridge.services.voice.core.realtime import connection, transcripts
from voxbridge.services.voice.core.state import Stamps
from voxbridge.services.voice.core.transition import Transition
from voxbridge.services.voice.core.turns import open_calls, reopening, turns
from voxbridge.shared.agents.model import Agent
from voxbridge.shared.events import voice as ev

AWAY: Final = "The voice is away at the moment, so we go on in text. {}"


def switch(t: Transition, output: Literal["audio", "text"]) -> None:
    """Have replies spoken, or only written, from here on. A reply that is under way is stopped: it is made for one of them. What the user
    is saying is dropped, and what it had cut off goes on."""
    request = t.state.request
    if t.state.phase != "open" or t.pending.ending is not None or request is None or request.mode == "echo":
        return
    agent = _answering(t, output)
    if agent == t.team.agent:
        return
    reopening.give_up(t)
    turns.cancel_reply(t, "client")
    interrupted = t.utterance is not None
    listening.forget(t)
    if t.state.realtime is not None:
        turns.resolve_cut(t, None)
        transcripts.leave_unanswered(t)
    _enter(t, agent)
    t.append(ev.OutputChanged(output=agent.output))
    t.outputs.append(out.Route(listening.route_of(t)))
    if interrupted:
        turns.no_words(t)
        speaking.speak(t)


def unreached(t: Transition, error: ev.Failure) -> bool:
    """Go on in text where the conversation began there and the model that speaks cannot be reached: what it owes is answered in writing.
    Return False for any other conversation."""
    if not connection.may_write(t.state) or t.pending.ending is not None:
        return False
    turn, agent = t.owed.turn, _answering(t, "text")
    turns.resolve_cut(t, None)
    if t.reply is not None:
        turns.hand_on(t, goes_on=False)
    if not turn:
        transcripts.leave_unanswered(t)
    _enter(t, agent)
    t.append(ev.OutputChanged(output=agent.output, reason=AWAY.format(error.message)))
    t.outputs.append(out.Route(listening.route_of(t)))
    if turn:
        turns.begin_reply(t, turn, Stamps(speech_ended=t.now))
    return True


def _answering(t: Transition, output: Literal["audio", "text"]) -> Agent:
    """Have all agents answer so, and return the one that speaks as it does then."""
    t.team.agents = agents.answering_in(t.team.agents, output, t.settings.rules)
    (agent,) = agents.answering_in((t.team.agent,), output, t.settings.rules)
    return agent


def _enter(t: Transition, agent: Agent) -> None:
    if agent.realtime is None:
        agents.answers_in(t, agent)
        return
    if t.state.realtime is not None:
        transcripts.final(t)
        for call in t.realtime.tool_calls.open:
            open_calls.withdraw(t, call, "client")
        connection.leave(t)
    agents.enter(t, agent)
    if agent.speaks_itself:
        connection.begin(t, agent)
    else:
        handoff.completed(t, "log")  # the conversation had been handed to it, and it was not there yet
