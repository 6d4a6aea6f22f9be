"""Going on in text, or by voice, in the same conversation: whether replies are spoken or only written, and who hears the microphone. Pure.

A model that speaks itself cannot write, so its session stays as it is, and its client plays nothing.
"""

from __future__ import annotations

from typing import Literal

from voxbridge.services.voice.core import agents
from voxbridge.services.voice.core import outputs as out
from voxbridge.services.voice.core.cascade import listening, speaking
from voxbridge.services.voice.core.transition import Transition
from voxbridge.services.voice.core.turns import reopening, turns
from voxbridge.shared.events import voice as ev


def switch(t: Transition, output: Literal["audio", "text"]) -> None:
    """Have replies spoken, or only written, from here on. A reply that is under way is stopped: it is made for one of them. What the user
    is saying is dropped, and what it had cut off goes on."""
    request = t.state.request
    if t.state.phase != "open" or t.pending.ending is not None or request is None or request.mode == "echo":
        return
    t.team.agents = agents.answering_in(t.team.agents, output)
    (agent,) = agents.answering_in((t.team.agent,), output)
    if agent == t.team.agent:
        return
    reopening.give_up(t)
    turns.cancel_reply(t, "client")
    interrupted = t.utterance is not None
    listening.forget(t)
    t.team.agent, t.team.output = agent, agent.output
    t.append(ev.OutputChanged(output=agent.output))
    t.outputs.append(out.Route(listening.route_of(t)))
    if interrupted:
        turns.no_words(t)
        speaking.speak(t)
