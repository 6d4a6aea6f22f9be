"""Rounds of the language model in a cascade reply: what it is asked, and the functions that it calls. Pure."""

from __future__ import annotations

from typing import Any, Final

from msgspec.structs import replace

from voxbridge.services.voice.core import agents, page_functions
from voxbridge.services.voice.core import outputs as out
from voxbridge.services.voice.core.prompt import memory, prompt
from voxbridge.services.voice.core.state import Call, Order, Piece, Reply
from voxbridge.services.voice.core.transition import Transition
from voxbridge.services.voice.core.turns import consent, open_calls, screen
from voxbridge.shared.agents.functions import failed_result
from voxbridge.shared.agents.model import HANDOFF
from voxbridge.shared.errors import Code
from voxbridge.shared.events import voice as ev

CALL_MARGIN_MS: Final = 5_000
ROUNDS: Final = 5
"""Rounds of calls in a turn, for a session that was opened without a limit."""
CALLS_LIMIT: Final = 8
LEFT: Final = "One thing first; please ask me for the rest again after it."
"""Words before a question, which is the last thing that is said, where the user's words hold another wish."""

REFUSALS_LIMIT: Final = 2 * CALLS_LIMIT
"""Calls in one round that get an answer: those that were made, then those that were refused; more are ignored."""


def leaves(t: Transition) -> bool:
    """Check whether a handoff to another agent can happen now. While the user speaks, the current agent stays."""
    handoff = t.team.handoff
    return handoff is not None and handoff.target != t.team.agent.name and t.utterance is None


def ask(t: Transition, *, plain: bool = False, said: str = "") -> None:
    """Start one round of the language model for the current reply, after words that are `said` as they are; a `plain` one offers no
    functions."""
    reply = new_round(t.current_reply)
    if said:
        reply = replace(reply, pieces=(*reply.pieces, Piece(text=said, done=t.team.output == "text")))
    t.speech.reply = replace(
        reply, round=replace(reply.round, plain=plain, number=reply.round.number + 1, unsplit="", calls=()), closed=False
    )
    t.pending.results, t.pending.more = (), False
    _complete(t)


def ask_again(t: Transition) -> None:
    """Start the current round once more, because its completion did not finish. The text it had written is kept, and text that the
    new completion writes beyond it follows."""
    reply = t.current_reply
    t.speech.reply = replace(reply, round=replace(reply.round, known=reply.round.written, again=""))
    _complete(t)


def _complete(t: Transition) -> None:
    reply = t.current_reply
    functions = t.team.functions if reply.round.number <= (t.settings.tool_rounds or ROUNDS) and not reply.round.plain else ()
    if reply.turn == t.team.handed[1]:
        functions = tuple(function for function in functions if function.name != HANDOFF)
    limit = prompt.room(t.team.agent) >> reply.round.halved
    messages = prompt.window(
        t.team.instructions, t.conversation.history, limit=limit, earlier=t.conversation.earlier, asides=screen.asides(t.state)
    )
    llm = t.team.agent.llm
    model = t.team.model if llm.provider in ("", "local") else llm.model
    shared = agents.shared(t.state)
    background = t.state.request is not None and t.state.request.child is not None
    asked = out.Complete(provider=llm.provider, model=model, messages=messages, functions=functions, shared=shared, background=background)
    effect = t.start(asked)
    t.speech.reply = replace(reply, round=replace(reply.round, effect=effect))
    t.set_timer("turn", t.settings.turn_timeout_s * 1_000)


def read_ahead(t: Transition, said: str) -> None:
    """Have the installation's own model read what it will be asked if this is all that the user says. Not while it is open what was heard
    of the reply before, or what the model is to know of the screen: the request would begin otherwise."""
    conversation, agent = t.conversation, t.team.agent
    settled = t.reply is None and t.speech.cut is None and conversation.screen.known == conversation.screen.told
    if not said or not settled or not agents.thinks_here(agent):
        return
    history = (*conversation.history, out.Message(role="user", text=said))
    limit, asides = prompt.room(agent), screen.asides(t.state)
    messages = prompt.window(t.team.instructions, history, limit=limit, earlier=conversation.earlier, asides=asides)
    shared = agents.shared(t.state)
    t.outputs.append(out.ReadAhead(model=t.team.model, messages=messages, functions=t.team.functions, shared=shared, asked=True))


def begin_order(t: Transition, order: Order) -> None:
    """Make the call of the user's own words in the reply that has just begun."""
    reply = t.current_reply
    t.speech.reply = replace(reply, round=replace(reply.round, number=1, order=order), closed=False)
    t.set_timer("turn", t.settings.turn_timeout_s * 1_000)
    call_function(t, order.name, order.arguments)


def new_round(reply: Reply) -> Reply:
    """Return the reply at the beginning of its next round: what it said so far is in the history."""
    return replace(
        reply,
        round=replace(reply.round, uses=(), first_piece=len(reply.pieces), before="", part="", written="", known="", again="", order=None),
    )


def call_function(t: Transition, name: str, arguments: dict[str, Any]) -> None:
    """Open a call that the model requested, within the limits of a round."""
    reply = t.current_reply
    if len(reply.round.uses) >= CALLS_LIMIT:
        if len(reply.round.uses) < REFUSALS_LIMIT:
            refuse_call(t, name, arguments, f"At most {CALLS_LIMIT} functions are called at once: this one was not.", Code.OVERLOADED)
        return
    ended_at = reply.stamps.speech_ended if reply.reopens else None
    call_id, function, timeout_ms = open_calls.open_call(t, name, arguments, turn=reply.turn, ended_at=ended_at)
    call = Call(call_id=call_id, name=name, browser=function is not None and function.kind == "browser")
    use = out.ToolUse(call_id=call_id, name=name, arguments=arguments)
    reopens = reply.reopens if open_calls.is_held(t, call_id) else 0
    written = replace(reply.round, calls=(*reply.round.calls, call), uses=(*reply.round.uses, use))
    t.speech.reply = replace(reply, round=written, reopens=reopens)
    if absent := page_functions.absent(t.client, function):
        _give_up(t, call, Code.UNAVAILABLE, absent)
    else:
        t.set_timer(f"call:{call_id}", page_functions.wait_ms(function, timeout_ms, CALL_MARGIN_MS))


def refuse_call(t: Transition, name: str, arguments: dict[str, Any], message: str, code: Code = Code.INVALID_ARGUMENT) -> None:
    """Refuse a call of the model: it gets the reason with the other results of the round."""
    reply = t.current_reply
    t.counters.calls += 1
    use = out.ToolUse(call_id=f"fc_{t.state.sid[:8]}_{t.counters.calls}", name=name, arguments=arguments)
    t.speech.reply = replace(reply, round=replace(reply.round, uses=(*reply.round.uses, use)), reopens=0)
    t.pending.results = (*t.pending.results, (use.call_id, failed_result(code.value, message)))


def answered(t: Transition, call_id: str, result: dict[str, Any]) -> None:
    """Give a call's result to the model, or drop it if no reply waits for it any more."""
    reply = t.reply
    if reply is None or all(call.call_id != call_id for call in reply.round.calls):
        if call_id in t.pending.dropped:
            t.pending.dropped = tuple(dropped for dropped in t.pending.dropped if dropped != call_id)
            t.append(ev.ToolDelivered(call_id=call_id, how="dropped"))
        return
    t.cancel_timers(f"call:{call_id}")
    t.append(ev.ToolDelivered(call_id=call_id, how="response"))
    t.pending.results = (*t.pending.results, (call_id, result))
    t.speech.reply = replace(reply, round=replace(reply.round, calls=tuple(call for call in reply.round.calls if call.call_id != call_id)))
    t.set_timer("turn", t.settings.turn_timeout_s * 1_000)
    next_round(t)


def begin_call(t: Transition, call_id: str) -> None:
    """Begin a call that was held because the user might go on speaking; from now on the turn cannot be reopened."""
    speaking = t.utterance is not None or (t.state.realtime is not None and t.state.realtime.hearing.active)
    if open_calls.begin(t, call_id, speaking=speaking) and t.reply is not None:
        t.speech.reply = replace(t.reply, reopens=0)


def call_timed_out(t: Transition, call_id: str) -> None:
    """Cancel a call that no executor answered in time, and tell the model."""
    reply = t.reply
    call = next((call for call in reply.round.calls if call.call_id == call_id), None) if reply is not None else None
    if call is not None:
        _give_up(t, call, Code.TIMED_OUT, f"{call.name} did not answer in time.")


def _give_up(t: Transition, call: Call, code: Code, message: str) -> None:
    open_calls.withdraw(t, call, code.value.lower())
    t.pending.dropped = tuple(dropped for dropped in t.pending.dropped if dropped != call.call_id)
    answered(t, call.call_id, failed_result(code.value, message))
    t.forget_call(call.call_id)


def next_round(t: Transition) -> None:
    """Let the model go on with the results, once it has stopped and every call is answered."""
    reply = t.current_reply
    if reply.round.effect is not None or reply.round.calls or not reply.round.uses:
        return
    question = _question(t, reply)
    words = f"{LEFT} {question}" if question and t.pending.more else question or reply_in_result(t, reply)
    memory.remember_round(t, reply)
    if leaves(t):
        t.speech.reply = replace(new_round(reply), closed=True)
    elif words and t.pending.more and not question:
        ask(t, said=words)
    elif words:
        reply = new_round(reply)
        t.speech.reply = replace(reply, round=replace(reply.round, unsplit=words), closed=True)
    else:
        ask(t)


def _question(t: Transition, reply: Reply) -> str:
    """Return the request for approval that is the answer to the round's only call: it is said word for word."""
    results = dict(t.pending.results)
    return consent.asks(t, results.get(reply.round.uses[0].call_id, {})) if len(reply.round.uses) == 1 else ""


def reply_in_result(t: Transition, reply: Reply) -> str:
    """Return the `spoken` text of the round's only result, if the session says it instead of asking the model again; else empty."""
    results = dict(t.pending.results)
    alone = reply.round.order is not None or t.pending.more
    if not (t.settings.speak_results or reply.round.order is not None) or len(reply.round.uses) != 1:
        return ""
    result = results.get(reply.round.uses[0].call_id, {})
    spoken = result.get("spoken") or (result.get("error") if alone else "")
    return spoken if isinstance(spoken, str) else ""
