"""Handoff of the conversation from one agent (the source) to another (the target). Pure.

The source's words are heard to their end, and the target's voice follows. For a realtime target, a connection is opened with its
voice, instructions and functions: by resumption if the model can resume a conversation with new ones, otherwise seeded from the
conversation. A cascade target is asked for a completion. The target is told who handed over and why, and answers what the user had
asked. An open call stays open if the same realtime model goes on; otherwise it is cancelled.

`handoff_request` begins a handoff; this module carries it out. If the provider refuses or cannot be reached, the source gets the
conversation back, is told why, and goes on; the log shows this as another handoff.
"""

from __future__ import annotations

from typing import Final, Literal

from msgspec.structs import replace

from voxbridge.services.voice.core import agents, inputs
from voxbridge.services.voice.core import outputs as out
from voxbridge.services.voice.core.cascade import listening
from voxbridge.services.voice.core.prompt import memory
from voxbridge.services.voice.core.realtime import connection
from voxbridge.services.voice.core.state import Handoff, RealtimeState, Reply, Stamps, State
from voxbridge.services.voice.core.transition import ANSWER, Transition
from voxbridge.services.voice.core.turns import filler, handoff_request, open_calls, playout, turns
from voxbridge.shared.agents.model import REASON_LIMIT, Agent
from voxbridge.shared.agents.notes import note
from voxbridge.shared.errors import Code
from voxbridge.shared.events import voice as ev

ARRIVAL: Final = note("It is your turn now. Go on with what the user wants.")


def unreached(t: Transition, error: ev.Failure) -> bool:
    """Return the conversation to the source if the target's model cannot be connected. Return False if no handoff was in progress."""
    realtime, handoff = t.state.realtime, t.team.handoff
    if realtime is None or handoff is None or not connection.arriving(t.state):
        return False
    if realtime.outage is not None and realtime.outage.worker:  # `session.restored` is due, and no connection of this agent will write it
        connection.restored(t, "reseeded", realtime.outage)
    notes = tuple(one for one in realtime.notes if one.text != _arrival(t.team.agent))
    t.realtime = replace(realtime, tries=0, notes=notes, outage=None, resumption=replace(realtime.resumption, deaths=0))
    _give_back(t, handoff.source, error)
    return True


def refused(t: Transition, input: inputs.EffectFailed) -> bool:
    """Return the conversation to the source if the language model of a cascade target refuses its first answer. Return whether it did."""
    reply, (source, turn) = t.reply, t.team.handed
    if reply is None or reply.round.effect != input.effect or reply.turn != turn or t.team.returned == turn or t.team.handoff is not None:
        return False
    begun = playout.has_words(reply.pieces) or reply.round.uses or reply.round.unsplit or reply.synthesis.held or reply.failed
    # A model that refuses a request with functions is asked once more without them; see `speaking`.
    final = not input.error.retryable and (reply.round.plain or input.error.code != Code.PROVIDER_REFUSED)
    if begun or not final or agents.thinks_here(t.team.agent) or all(agent.name != source for agent in t.team.agents):
        return False
    t.append(ev.ProviderFailed(part="llm", error=input.error, turn=turn, handled=True))
    t.speech.reply = replace(reply, round=replace(reply.round, effect=None))
    _give_back(t, source, input.error)
    return True


def _give_back(t: Transition, first: str, error: ev.Failure) -> None:
    """Start a handoff from an agent that cannot be reached back to `first`, which had handed over to it."""
    unreached = t.team.agent.name
    reason = f"{unreached} cannot be reached: {error.message}"[:REASON_LIMIT]
    t.append(ev.HandoffStarted(source=unreached, target=first, reason=reason))
    told = note(f"{reason} The conversation is with you, {first}, as before.")
    t.team.handoff = Handoff(source=unreached, target=first, at=t.now, note=told, back=True)


def settle(t: Transition) -> None:
    """Let the target begin as soon as the source's words are made."""
    state, handoff = t.state, t.team.handoff
    if handoff is None or state.team.agent.name == handoff.target or state.speech.cut is not None or _user_speaks(state):
        return
    if state.realtime is not None and state.realtime.ready and state.realtime.words_due:
        return
    if t.reply is not None and t.reply.filler:
        filler.give_way(t)  # the handoff does not wait for filler words
    reply = t.reply
    if reply is not None and not reply.connection and (reply.round.calls or not turns.made(reply)):
        return
    agent = next(agent for agent in state.team.agents if agent.name == handoff.target)
    turn = handoff_request.turn(t)
    state.team.handed = (handoff.source, turn)
    state.team.returned = turn if handoff.back else -1
    if reply is not None and reply.turn == turn:
        turns.hand_on(t)
    elif reply is not None:  # it belongs to another turn
        turns.hand_on(t, goes_on=False)
    realtime = state.realtime
    memory.remember_note(t, handoff.note)
    agents.enter(t, agent)
    t.outputs.append(out.Route(listening.route_of(t)))
    arrival = ARRIVAL if handoff.back else _arrival(agent)
    if agent.speaks_itself:
        connection.begin(t, agent)
        connection.say(t, arrival)
        asked = f"{handoff.note} {arrival}"
        t.owed = replace(t.owed, asking=False, question=asked, go_on=False, said="", turn=turn, announcement=None if turn else "")
        t.hearing = replace(t.hearing, words=(), turn=0)
        t.set_timer(ANSWER, state.settings.turn_timeout_s * 1_000)
        return
    if realtime is not None:
        for call in realtime.tool_calls.open:
            open_calls.withdraw(t, call, "handoff")
        connection.leave(t)
    if agent.arrival and not handoff.back:
        memory.remember_note(t, note(agent.arrival))
    completed(t, "log")
    turns.begin_reply(t, turn, _stamps(reply, realtime, turn))
    if t.reply is not None and reply is not None and reply.turn == turn:
        t.speech.reply = replace(t.reply, usage=reply.usage)


def _user_speaks(state: State) -> bool:
    """Check whether the source is listening to the user; a handoff now would lose the end of the utterance."""
    return state.utterance is not None or (state.realtime is not None and state.realtime.hearing.active)


def completed(t: Transition, history: Literal["handle", "seed", "summary", "log"]) -> None:
    """Complete the handoff: the target can speak. Do nothing without a handoff to the current agent."""
    handoff, agent = t.team.handoff, t.team.agent
    if handoff is None or agent.name != handoff.target:
        return
    t.team.handoff = None
    t.append(
        ev.HandoffCompleted(
            source=handoff.source,
            target=handoff.target,
            voice=agent.voice,
            model=t.team.model,
            ms=(t.now - handoff.at) // 1_000,
            history=history,
        )
    )
    open_calls.start(t)


def _stamps(reply: Reply | None, realtime: RealtimeState | None, turn: int) -> Stamps:
    """Return the stamps with which the target continues the turn. They are empty if the source spoke and it is not known yet when its
    words, the first of the turn, are heard."""
    if reply is None or reply.turn != turn:
        return Stamps(speech_ended=realtime.hearing.ended_at or None) if realtime is not None and turn else Stamps()
    silent = not any(piece.text for piece in reply.pieces)
    return reply.stamps if silent or reply.stamps.first_audio_heard is not None else Stamps()


def _arrival(agent: Agent) -> str:
    return agent.arrival or ARRIVAL
