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
from voxbridge.services.voice.core.transition import ANSWER, Draft
from voxbridge.services.voice.core.turns import filler, handoff_request, playout, turns
from voxbridge.shared.agents.model import REASON_LIMIT, Agent
from voxbridge.shared.errors import Code
from voxbridge.shared.events import voice as ev

ARRIVAL: Final = "(Note: It is your turn now. Go on with what the user wants.)"


def unreached(d: Draft, error: ev.Failure) -> bool:
    """Return the conversation to the source if the target's model cannot be connected. Return False if no handoff was in progress."""
    realtime, handoff = d.state.realtime, d.team.handoff
    if realtime is None or handoff is None or not connection.arriving(d.state):
        return False
    if realtime.outage is not None and realtime.outage.worker:  # `session.restored` is due, and no connection of this agent will write it
        connection.restored(d, "reseeded", realtime.outage)
    notes = tuple(note for note in realtime.notes if note.text != _arrival(d.team.agent))
    d.realtime = replace(realtime, tries=0, notes=notes, outage=None, resumption=replace(realtime.resumption, deaths=0))
    _give_back(d, handoff.source, error)
    return True


def refused(d: Draft, input: inputs.EffectFailed) -> bool:
    """Return the conversation to the source if the language model of a cascade target refuses its first answer. Return whether it did."""
    reply, (source, turn) = d.reply, d.team.handed
    if reply is None or reply.round.effect != input.effect or reply.turn != turn or d.team.returned == turn or d.team.handoff is not None:
        return False
    begun = playout.has_words(reply.pieces) or reply.round.uses or reply.round.unsplit or reply.synthesis.held or reply.failed
    # A model that refuses a request with functions is asked once more without them; see `speaking`.
    final = not input.error.retryable and (reply.round.plain or input.error.code != Code.PROVIDER_REFUSED)
    if begun or not final or agents.thinks_here(d.team.agent) or all(agent.name != source for agent in d.team.agents):
        return False
    d.append(ev.ProviderFailed(part="llm", error=input.error, turn=turn, handled=True))
    d.speech.reply = replace(reply, round=replace(reply.round, effect=None))
    _give_back(d, source, input.error)
    return True


def _give_back(d: Draft, first: str, error: ev.Failure) -> None:
    """Start a handoff from an agent that cannot be reached back to `first`, which had handed over to it."""
    unreached = d.team.agent.name
    reason = f"{unreached} cannot be reached: {error.message}"[:REASON_LIMIT]
    d.append(ev.HandoffStarted(source=unreached, target=first, reason=reason))
    note = f"(Note: {reason} The conversation is with you, {first}, as before.)"
    d.team.handoff = Handoff(source=unreached, target=first, at=d.now, note=note, back=True)


def settle(d: Draft) -> None:
    """Let the target begin as soon as the source's words are made."""
    state, handoff = d.state, d.team.handoff
    if handoff is None or state.team.agent.name == handoff.target or state.speech.cut is not None or _user_speaks(state):
        return
    if state.realtime is not None and state.realtime.ready and state.realtime.words_due:
        return
    if d.reply is not None and d.reply.filler:
        filler.give_way(d)  # the handoff does not wait for filler words
    reply = d.reply
    if reply is not None and not reply.connection and (reply.round.calls or not turns.made(reply)):
        return
    agent = next(agent for agent in state.team.agents if agent.name == handoff.target)
    turn = handoff_request.turn(d)
    state.team.handed = (handoff.source, turn)
    state.team.returned = turn if handoff.back else -1
    if reply is not None and reply.turn == turn:
        turns.hand_on(d)
    elif reply is not None:  # it belongs to another turn
        turns.hand_on(d, goes_on=False)
    realtime = state.realtime
    memory.remember_note(d, handoff.note)
    agents.enter(d, agent)
    d.outputs.append(out.Route(listening.route_of(d)))
    arrival = ARRIVAL if handoff.back else _arrival(agent)
    if agent.realtime is not None:
        connection.begin(d, agent)
        connection.say(d, arrival)
        asked = f"{handoff.note} {arrival}"
        d.owed = replace(d.owed, asking=False, question=asked, go_on=False, said="", turn=turn, announcement=None if turn else "")
        d.hearing = replace(d.hearing, words=(), turn=0)
        d.set_timer(ANSWER, state.settings.turn_timeout_s * 1_000)
        return
    if realtime is not None:
        for call in realtime.tool_calls.open:
            d.cancel_timers(f"call:{call.call_id}")
            d.append(ev.ToolCancelled(call_id=call.call_id, name=call.name, reason="handoff"))
            d.forget_call(call.call_id)
        connection.leave(d)
    if agent.arrival and not handoff.back:
        memory.remember_note(d, f"(Note: {agent.arrival})")
    completed(d, "log")
    turns.begin_reply(d, turn, _stamps(reply, realtime, turn))
    if d.reply is not None and reply is not None and reply.turn == turn:
        d.speech.reply = replace(d.reply, usage=reply.usage)


def _user_speaks(state: State) -> bool:
    """Check whether the source is listening to the user; a handoff now would lose the end of the utterance."""
    return state.utterance is not None or (state.realtime is not None and state.realtime.hearing.active)


def completed(d: Draft, history: Literal["handle", "seed", "summary", "log"]) -> None:
    """Complete the handoff: the target can speak. Do nothing without a handoff to the current agent."""
    handoff, agent = d.team.handoff, d.team.agent
    if handoff is None or agent.name != handoff.target:
        return
    d.team.handoff = None
    d.append(
        ev.HandoffCompleted(
            source=handoff.source,
            target=handoff.target,
            voice=agent.voice,
            model=d.team.model,
            ms=(d.now - handoff.at) // 1_000,
            history=history,
        )
    )


def _stamps(reply: Reply | None, realtime: RealtimeState | None, turn: int) -> Stamps:
    """Return the stamps with which the target continues the turn. They are empty if the source spoke and it is not known yet when its
    words, the first of the turn, are heard."""
    if reply is None or reply.turn != turn:
        return Stamps(speech_ended=realtime.hearing.ended_at or None) if realtime is not None and turn else Stamps()
    silent = not any(piece.text for piece in reply.pieces)
    return reply.stamps if silent or reply.stamps.first_audio_heard is not None else Stamps()


def _arrival(agent: Agent) -> str:
    return agent.arrival or ARRIVAL
