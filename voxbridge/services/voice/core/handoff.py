"""One agent hands the conversation over to another. Pure.

What the first one said is heard to its end, and the other one's voice follows it. A realtime model is opened with the other one's
voice, instructions and functions: by resumption where it can take up a conversation under new ones, seeded from the conversation
otherwise; a cascade agent is simply asked. Who goes on is told who handed over and why, and answers what the user had asked. A call
that is open stays open where the same model goes on, and is cancelled where it does not.

Nobody is handed over to whose provider has no key here. Where the provider refuses, or cannot be reached, the first one gets the
conversation back, is told why, and goes on: in the log a handoff of its own.
"""

from __future__ import annotations

from typing import Any, Final, Literal

import msgspec

from voxbridge.services.voice.core import agents, inputs
from voxbridge.services.voice.core import outputs as out
from voxbridge.services.voice.core.cascade import listening
from voxbridge.services.voice.core.prompt import memory
from voxbridge.services.voice.core.realtime import connection, transcripts
from voxbridge.services.voice.core.state import Handoff, Line, Reply, Stamps, State
from voxbridge.services.voice.core.transition import ANSWER, Draft
from voxbridge.services.voice.core.turns import filler, playout, turns
from voxbridge.shared.agents.model import REASON_LIMIT, SUMMARY_LIMIT, Agent
from voxbridge.shared.errors import Code
from voxbridge.shared.events import voice as ev

WORDS_MS: Final = 1_500
"""How long a handoff waits for the words that it is to answer: over the next connection they do not come."""

ARRIVAL: Final = "(Note: It is your turn now. Go on with what the user wants.)"


def called(d: Draft, arguments: dict[str, Any]) -> str:
    """The agent called the function that hands over; what it is to be told where that cannot be done, else nothing."""
    target, reason, summary = (str(arguments.get(name) or "").strip() for name in ("target", "reason", "summary"))
    if target not in d.state.agent.handoffs or all(agent.name != target for agent in d.state.agents):
        known = ", ".join(name for name in d.state.agent.handoffs)
        return f"There is no agent {target[:64]!r} to hand over to. There is: {known}."
    if (target, _turn(d)) == d.state.handed:
        why = "could not be reached" if d.state.returned == _turn(d) else "has just handed this conversation over to you"
        return f"{target} {why}: answer the user first."
    keyless = _keyless(d.state, target)
    if keyless:
        return f"{keyless} Go on with the user yourself, and do not hand over to {target}."
    start(d, target, reason=reason, summary=summary, by="agent")
    return ""


def asked_for(d: Draft, target: str, *, reason: str) -> None:
    """An operator wants another one to go on; where that one cannot, the log says so."""
    keyless = _keyless(d.state, target)
    if not keyless:
        start(d, target, reason=reason, by="operator")
    elif target != d.state.agent.name:
        error = ev.Failure(code=Code.PROVIDER_UNAVAILABLE, message=keyless)
        d.append(ev.ProviderFailed(part="llm", error=error, turn=d.state.turns, handled=True))


def requested(d: Draft, input: inputs.ToolRequested) -> None:
    """The language model of a cascade agent called the function that hands over."""
    reply = d.reply
    if reply is None or reply.effect != input.effect:
        return
    refusal = called(d, input.arguments)
    if refusal:
        turns.refuse_call(d, input.name, input.arguments, refusal)


def start(d: Draft, target: str, *, reason: str = "", summary: str = "", by: Literal["agent", "operator"]) -> None:
    """Begin a handoff to an agent of this session; nothing if there is no such agent, or it speaks already."""
    state = d.state
    source = state.agent.name
    if state.handoff is not None or target == source or all(agent.name != target for agent in state.agents):
        return
    reason, summary = reason[:REASON_LIMIT], summary[:SUMMARY_LIMIT]
    d.append(ev.HandoffStarted(source=source, target=target, reason=reason, summary=summary, by=by))
    said = " ".join(filter(None, [f"Reason: {reason}." if reason else "", f"Summary: {summary}" if summary else ""]))
    note = f"(Note: {source or 'the agent before you'} has handed this conversation over to you, {target}. {said}".strip() + ")"
    state.handoff = Handoff(source=source, target=target, at=d.now, note=note)
    state.returned = -1
    if state.line is not None and transcripts.are_due(d):
        d.set_timer(transcripts.WORDS, WORDS_MS)


def unreached(d: Draft, error: ev.Failure) -> bool:
    """There is no connection to the other one's model: have the first one go on. Whether there is such a one."""
    line, handoff = d.state.line, d.state.handoff
    if line is None or handoff is None or not connection.arriving(d.state):
        return False
    if line.worker:  # nobody says it later
        gap_ms = (d.now - line.lost_at) // 1_000 if line.lost_at else 0
        d.append(ev.SessionRestored(worker=line.worker, term=d.state.term, how="reseeded", gap_ms=gap_ms, lost=line.lost))
    notes = tuple(note for note in line.notes if note.text != _arrival(d.state.agent))
    connection.change(d, tries=0, deaths=0, notes=notes, restoring=False, worker="", lost=(), lost_at=0)
    _give_back(d, handoff.source, error)
    return True


def refused(d: Draft, input: inputs.EffectFailed) -> bool:
    """The other one is a cascade agent whose language model refuses its first answer: have the first one go on. Whether it does."""
    reply, (source, turn) = d.reply, d.state.handed
    if reply is None or reply.effect != input.effect or reply.turn != turn or d.state.returned == turn or d.state.handoff is not None:
        return False
    begun = playout.has_words(reply.pieces) or reply.uses or reply.unsplit or reply.held or reply.failed
    # What a model refuses with functions it is asked again without them; see `speaking`.
    final = not input.error.retryable and (reply.plain or input.error.code != Code.PROVIDER_REFUSED)
    if begun or not final or agents.thinks_here(d.state.agent) or all(agent.name != source for agent in d.state.agents):
        return False
    d.append(ev.ProviderFailed(part="llm", error=input.error, turn=turn, handled=True))
    d.state.reply = msgspec.structs.replace(reply, effect=None)
    _give_back(d, source, input.error)
    return True


def _give_back(d: Draft, first: str, error: ev.Failure) -> None:
    """Hand over from an agent that cannot be reached to the one who handed over to it."""
    unreached = d.state.agent.name
    reason = f"{unreached} cannot be reached: {error.message}"[:REASON_LIMIT]
    d.append(ev.HandoffStarted(source=unreached, target=first, reason=reason))
    note = f"(Note: {reason} The conversation is with you, {first}, as before.)"
    d.state.handoff = Handoff(source=unreached, target=first, at=d.now, note=note, back=True)


def settle(d: Draft) -> None:
    """Let the other one begin as soon as the first one's words are made."""
    state, handoff = d.state, d.state.handoff
    if handoff is None or state.agent.name == handoff.target or state.cut is not None or _user_speaks(state):
        return
    if state.line is not None and state.line.ready and transcripts.are_due(d):
        return
    if d.reply is not None and d.reply.filler:
        filler.give_way(d)  # nobody waits for the words that cover a wait
    reply = d.reply
    if reply is not None and not reply.line and (reply.calls or not turns.made(reply)):
        return
    agent = next(agent for agent in state.agents if agent.name == handoff.target)
    turn = _turn(d)
    state.handed = (handoff.source, turn)
    state.returned = turn if handoff.back else -1
    if reply is not None and reply.turn == turn:
        turns.hand_on(d)
    elif reply is not None:  # its turn is another one
        turns.hand_on(d, goes_on=False)
    line = state.line
    memory.remember_note(d, handoff.note)
    agents.enter(d, agent)
    d.outputs.append(out.Route(listening.route_of(d)))
    arrival = ARRIVAL if handoff.back else _arrival(agent)
    if agent.realtime is not None:
        connection.begin(d, agent)
        connection.say(d, arrival)
        asked = f"{handoff.note} {arrival}"
        connection.change(
            d, asking=False, asked=asked, go_on=False, said="", notice=not turn, announced="", going_on=turn, words=(), turn=0
        )
        d.set_timer(ANSWER, state.turn_timeout_s * 1_000)
        return
    if line is not None:
        for call in line.calls:
            d.cancel_timers(f"call:{call.call_id}")
            d.append(ev.ToolCancelled(call_id=call.call_id, name=call.name, reason="handoff"))
            d.forget_call(call.call_id)
        connection.leave(d)
    if agent.arrival and not handoff.back:
        memory.remember_note(d, f"(Note: {agent.arrival})")
    completed(d, "log")
    turns.begin_reply(d, turn, _stamps(reply, line, turn))
    if d.reply is not None and reply is not None and reply.turn == turn:
        d.state.reply = msgspec.structs.replace(d.reply, usage=reply.usage)


def _user_speaks(state: State) -> bool:
    """Whether the user is being listened to by the one who leaves: the end of it would never be heard."""
    return state.utterance is not None or (state.line is not None and state.line.active)


def completed(d: Draft, history: Literal["handle", "seed", "summary", "log"]) -> None:
    """The other one can speak."""
    handoff, agent = d.state.handoff, d.state.agent
    if handoff is None or agent.name != handoff.target:
        return
    d.state.handoff = None
    d.append(
        ev.HandoffCompleted(
            source=handoff.source,
            target=handoff.target,
            voice=agent.voice,
            model=d.state.model,
            ms=(d.now - handoff.at) // 1_000,
            history=history,
        )
    )


def _stamps(reply: Reply | None, line: Line | None, turn: int) -> Stamps:
    """From where the turn's times count on: the first words of a turn are the first one's where there are any, and when those are
    heard is not known yet."""
    if reply is None or reply.turn != turn:
        return Stamps(speech_ended=line.ended_at or None) if line is not None and turn else Stamps()
    silent = not any(piece.text for piece in reply.pieces)
    return reply.stamps if silent or reply.stamps.first_audio_heard is not None else Stamps()


def _keyless(state: State, target: str) -> str:
    """Why an agent cannot be handed a conversation: whom it needs and who has no key here. Empty for one that can, or that there is not."""
    agent = next((agent for agent in state.agents if agent.name == target), None)
    missing = sorted(agents.providers(agent) - set(state.providers)) if agent is not None and state.providers else []
    return f"{target} cannot be reached: there is no key for {' and '.join(missing)} here." if missing else ""


def _arrival(agent: Agent) -> str:
    return agent.arrival or ARRIVAL


def _turn(d: Draft) -> int:
    """The turn that goes on with the other one; 0 where nothing was asked."""
    line = d.state.line
    if line is not None and line.going_on:
        return line.going_on
    return d.reply.turn if d.reply is not None else 0
