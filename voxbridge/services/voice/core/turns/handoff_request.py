"""Requests for a handoff of the conversation to another agent: by a function call of the agent that speaks, or by an operator. Pure.

A request is refused if there is no such agent, if the agent has just handed the conversation over itself, or if a provider that it needs
has no key. Otherwise the handoff begins; `handoff` carries it out.
"""

from __future__ import annotations

from typing import Any, Final, Literal

from voxbridge.services.voice.core import agents, inputs
from voxbridge.services.voice.core.state import Handoff, State
from voxbridge.services.voice.core.transition import WORDS, Transition
from voxbridge.services.voice.core.turns import rounds
from voxbridge.shared.agents.model import REASON_LIMIT, SUMMARY_LIMIT
from voxbridge.shared.agents.notes import note
from voxbridge.shared.errors import Code
from voxbridge.shared.events import voice as ev

WORDS_MS: Final = 1_500
"""Milliseconds a handoff waits for the user's words that it is to answer: they do not arrive over the next connection."""


def called(t: Transition, arguments: dict[str, Any]) -> str:
    """Start the handoff that an agent's function call asks for. Return the refusal to tell the agent; empty if the call was accepted."""
    target, reason, summary = (str(arguments.get(name) or "").strip() for name in ("target", "reason", "summary"))
    if target not in t.team.agent.handoffs or all(agent.name != target for agent in t.team.agents):
        known = ", ".join(name for name in t.team.agent.handoffs)
        return f"There is no agent {target[:64]!r} to hand over to. There is: {known}."
    if (target, turn(t)) == t.team.handed:
        why = "could not be reached" if t.team.returned == turn(t) else "has just handed this conversation over to you"
        return f"{target} {why}: answer the user first."
    keyless = _keyless(t.state, target)
    if keyless:
        return f"{keyless} Go on with the user yourself, and do not hand over to {target}."
    _start(t, target, reason=reason, summary=summary, by="agent")
    return ""


def asked_for(t: Transition, target: str, *, reason: str) -> None:
    """Start the handoff that an operator asks for; if the target has no key, record that in the log."""
    keyless = _keyless(t.state, target)
    if not keyless:
        _start(t, target, reason=reason, by="operator")
    elif target != t.team.agent.name:
        error = ev.Failure(code=Code.PROVIDER_UNAVAILABLE, message=keyless)
        t.append(ev.ProviderFailed(part="llm", error=error, turn=t.counters.turns, handled=True))


def requested(t: Transition, input: inputs.ToolRequested) -> None:
    """Handle a handoff call by the language model of a cascade agent."""
    reply = t.reply
    if reply is None or reply.round.effect != input.effect:
        return
    refusal = called(t, input.arguments)
    if refusal:
        rounds.refuse_call(t, input.name, input.arguments, refusal)


def _start(t: Transition, target: str, *, reason: str = "", summary: str = "", by: Literal["agent", "operator"]) -> None:
    """Start a handoff to an agent of this session. Do nothing if there is no such agent, it speaks already, or a handoff is in progress."""
    state = t.state
    source = state.team.agent.name
    if state.team.handoff is not None or target == source or all(agent.name != target for agent in state.team.agents):
        return
    reason, summary = reason[:REASON_LIMIT], summary[:SUMMARY_LIMIT]
    t.append(ev.HandoffStarted(source=source, target=target, reason=reason, summary=summary, by=by))
    said = " ".join(filter(None, [f"Reason: {reason}." if reason else "", f"Summary: {summary}" if summary else ""]))
    told = note(f"{source or 'the agent before you'} has handed this conversation over to you, {target}. {said}".strip())
    state.team.handoff = Handoff(source=source, target=target, at=t.now, note=told)
    state.team.returned = -1
    if state.realtime is not None and state.realtime.words_due:
        t.set_timer(WORDS, WORDS_MS)


def turn(t: Transition) -> int:
    """Return the turn that the target continues; 0 if nothing was asked."""
    realtime = t.state.realtime
    if realtime is not None and realtime.owed.turn:
        return realtime.owed.turn
    return t.reply.turn if t.reply is not None else 0


def _keyless(state: State, target: str) -> str:
    """Return why an agent cannot take over: the providers it needs that have no key. Empty if it can, or if there is no such agent."""
    agent = next((agent for agent in state.team.agents if agent.name == target), None)
    missing = sorted(agents.providers(agent) - set(state.team.providers)) if agent is not None and state.team.providers else []
    return f"{target} cannot be reached: there is no key for {' and '.join(missing)} here." if missing else ""
