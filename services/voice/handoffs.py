"""One agent hands the conversation over to another. Pure.

What the first one said is heard to its end, and the other one's voice follows it. A realtime model is opened with the other one's
voice, instructions and functions: by resumption where it can take up a conversation under new ones, seeded from the conversation
otherwise; a cascade agent is simply asked. Who goes on is told who handed over and why, and answers what the user had asked. A call
that is open stays open where the same model goes on, and is cancelled where it does not.
"""

from __future__ import annotations

from typing import Any, Final, Literal

import msgspec

from services.voice import cast, inputs, listening, live, turns
from services.voice import outputs as out
from services.voice.draft import Draft
from services.voice.state import Handoff, Line, Reply, Stamps
from shared.agents import REASON_LIMIT, SUMMARY_LIMIT
from shared.events import voice as ev

ARRIVAL: Final = "(Note: It is your turn now. Go on with what the user wants.)"


def called(d: Draft, arguments: dict[str, Any]) -> str:
    """The agent called the function that hands over; what it is to be told where that cannot be done, else nothing."""
    target, reason, summary = (str(arguments.get(name) or "").strip() for name in ("target", "reason", "summary"))
    if target not in d.state.agent.handoffs or all(agent.name != target for agent in d.state.agents):
        known = ", ".join(name for name in d.state.agent.handoffs)
        return f"There is no agent {target[:64]!r} to hand over to. There is: {known}."
    if (target, _turn(d)) == d.state.handed:
        return f"{target} has just handed this conversation over to you: answer the user first."
    start(d, target, reason=reason, summary=summary, by="agent")
    return ""


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


def settle(d: Draft) -> None:
    """Let the other one begin as soon as the first one's words are made."""
    state, handoff = d.state, d.state.handoff
    if handoff is None or state.agent.name == handoff.target or state.cut is not None:
        return
    reply = d.reply
    if reply is not None and not reply.line and (reply.calls or not turns.made(reply)):
        return
    agent = next(agent for agent in state.agents if agent.name == handoff.target)
    turn = _turn(d)
    state.handed = (handoff.source, turn)
    if reply is not None and reply.turn == turn:
        turns.hand_on(d)
    elif reply is not None:  # its turn is another one
        d.outputs.append(out.FinishSpeech(reply.generation))
        turns.finish_reply(d)
    line = state.line
    turns.remember_note(d, handoff.note)
    cast.enter(d, agent)
    d.outputs.append(out.Route(listening.route_of(d)))
    if agent.realtime is not None:
        live.begin(d, agent)
        live.say(d, agent.arrival or ARRIVAL)
        asked = f"{handoff.note} {agent.arrival or ARRIVAL}"
        live.change(d, asking=False, asked=asked, go_on=False, said="", notice=not turn, announced="", going_on=turn, words=(), turn=0)
        d.set_timer("turn", state.turn_timeout_s * 1_000)
        return
    if line is not None:
        for call in line.calls:
            d.cancel_timers(f"call:{call.call_id}")
            d.append(ev.ToolCancelled(call_id=call.call_id, name=call.name, reason="handoff"))
            d.forget_call(call.call_id)
        live.leave(d)
    if agent.arrival:
        turns.remember_note(d, f"(Note: {agent.arrival})")
    completed(d, "log")
    turns.begin_reply(d, turn, _stamps(reply, line, turn))
    if d.reply is not None and reply is not None and reply.turn == turn:
        d.state.reply = msgspec.structs.replace(d.reply, usage=reply.usage)


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


def _turn(d: Draft) -> int:
    """The turn that goes on with the other one; 0 where nothing was asked."""
    line = d.state.line
    if line is not None and line.going_on:
        return line.going_on
    return d.reply.turn if d.reply is not None else 0
