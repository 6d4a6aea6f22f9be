"""Rounds of the language model in a cascade reply: what it is asked, and the functions that it calls. Pure."""

from __future__ import annotations

from typing import Any, Final

from msgspec.structs import replace

from voxbridge.services.voice.core import agents, page_functions
from voxbridge.services.voice.core import outputs as out
from voxbridge.services.voice.core.prompt import memory, prompt
from voxbridge.services.voice.core.state import Call, Reply
from voxbridge.services.voice.core.transition import Draft
from voxbridge.shared.agents.functions import Function, failed_result
from voxbridge.shared.agents.model import HANDOFF
from voxbridge.shared.errors import Code
from voxbridge.shared.events import voice as ev

CALL_MARGIN_MS: Final = 5_000
ROUNDS: Final = 5
"""Rounds of calls in a turn, for a session that was opened without a limit."""
CALLS_LIMIT: Final = 8
REFUSALS_LIMIT: Final = 2 * CALLS_LIMIT
"""Calls in one round that get an answer: those that were made, then those that were refused; more are ignored."""


def leaves(d: Draft) -> bool:
    """Check whether a handoff to another agent can happen now. While the user speaks, the current agent stays."""
    handoff = d.team.handoff
    return handoff is not None and handoff.target != d.team.agent.name and d.utterance is None


def ask(d: Draft, *, plain: bool = False) -> None:
    """Start one round of the language model for the current reply; a `plain` one offers no functions."""
    reply = new_round(d.current_reply)
    d.speech.reply = replace(
        reply, round=replace(reply.round, plain=plain, number=reply.round.number + 1, unsplit="", calls=()), closed=False
    )
    d.pending.results = ()
    _complete(d)


def ask_again(d: Draft) -> None:
    """Start the current round once more, because its completion did not finish. The text it had written is kept, and text that the
    new completion writes beyond it follows."""
    reply = d.current_reply
    d.speech.reply = replace(reply, round=replace(reply.round, known=reply.round.written, again=""))
    _complete(d)


def _complete(d: Draft) -> None:
    reply = d.current_reply
    functions = d.team.functions if reply.round.number <= (d.settings.tool_rounds or ROUNDS) and not reply.round.plain else ()
    if reply.turn == d.team.handed[1]:
        functions = tuple(function for function in functions if function.name != HANDOFF)
    limit = prompt.room(d.team.agent) >> reply.round.halved
    messages = prompt.window(d.team.instructions, d.conversation.history, limit=limit, earlier=d.conversation.earlier)
    llm = d.team.agent.llm
    model = d.team.model if llm.provider in ("", "local") else llm.model
    shared = agents.shared(d.state)
    effect = d.start(out.Complete(provider=llm.provider, model=model, messages=messages, functions=functions, shared=shared))
    d.speech.reply = replace(reply, round=replace(reply.round, effect=effect))
    d.set_timer("turn", d.settings.turn_timeout_s * 1_000)


def new_round(reply: Reply) -> Reply:
    """Return the reply at the beginning of its next round: what it said so far is in the history."""
    return replace(
        reply, round=replace(reply.round, uses=(), first_piece=len(reply.pieces), before="", part="", written="", known="", again="")
    )


def call_function(d: Draft, name: str, arguments: dict[str, Any]) -> None:
    """Open a call that the model requested, within the limits of a round."""
    reply = d.current_reply
    if len(reply.round.uses) >= CALLS_LIMIT:
        if len(reply.round.uses) < REFUSALS_LIMIT:
            refuse_call(d, name, arguments, f"At most {CALLS_LIMIT} functions are called at once: this one was not.", Code.OVERLOADED)
        return
    call_id, function, timeout_ms = open_call(d, name, arguments, turn=reply.turn)
    call = Call(call_id=call_id, name=name, browser=function is not None and function.kind == "browser")
    use = out.ToolUse(call_id=call_id, name=name, arguments=arguments)
    d.speech.reply = replace(reply, round=replace(reply.round, calls=(*reply.round.calls, call), uses=(*reply.round.uses, use)), reopens=0)
    d.set_timer(f"call:{call_id}", page_functions.wait_ms(function, timeout_ms, CALL_MARGIN_MS))


def refuse_call(d: Draft, name: str, arguments: dict[str, Any], message: str, code: Code = Code.INVALID_ARGUMENT) -> None:
    """Refuse a call of the model: it gets the reason with the other results of the round."""
    reply = d.current_reply
    d.counters.calls += 1
    use = out.ToolUse(call_id=f"fc_{d.state.sid[:8]}_{d.counters.calls}", name=name, arguments=arguments)
    d.speech.reply = replace(reply, round=replace(reply.round, uses=(*reply.round.uses, use)), reopens=0)
    d.pending.results = (*d.pending.results, (use.call_id, failed_result(code.value, message)))


def open_call(d: Draft, name: str, arguments: dict[str, Any], *, turn: int) -> tuple[str, Function | None, int]:
    """Request the execution of a function. Return the call's id, the function (None if unknown) and the timeout in ms."""
    d.counters.calls += 1
    call_id = f"fc_{d.state.sid[:8]}_{d.counters.calls}"
    function = next((f for f in d.team.functions if f.name == name), None)
    kind = function.kind if function is not None else "server"
    timeout_ms = int((function.timeout_s if function is not None else 30) * 1_000)
    account = d.state.request.account if d.state.request is not None else "local"
    d.append(ev.ToolCalled(call_id=call_id, name=name, arguments=arguments, kind=kind, turn=turn, deadline_ms=timeout_ms, account=account))
    return call_id, function, timeout_ms


def answered(d: Draft, call_id: str, result: dict[str, Any]) -> None:
    """Give a call's result to the model, or drop it if no reply waits for it any more."""
    reply = d.reply
    if reply is None or all(call.call_id != call_id for call in reply.round.calls):
        if call_id in d.pending.dropped:
            d.pending.dropped = tuple(dropped for dropped in d.pending.dropped if dropped != call_id)
            d.append(ev.ToolDelivered(call_id=call_id, how="dropped"))
        return
    d.cancel_timers(f"call:{call_id}")
    d.append(ev.ToolDelivered(call_id=call_id, how="response"))
    d.pending.results = (*d.pending.results, (call_id, result))
    d.speech.reply = replace(reply, round=replace(reply.round, calls=tuple(call for call in reply.round.calls if call.call_id != call_id)))
    d.set_timer("turn", d.settings.turn_timeout_s * 1_000)
    next_round(d)


def call_timed_out(d: Draft, call_id: str) -> None:
    """Cancel a call that no executor answered in time, and tell the model."""
    reply = d.reply
    call = next((call for call in reply.round.calls if call.call_id == call_id), None) if reply is not None else None
    if call is None:
        return
    d.append(ev.ToolCancelled(call_id=call_id, name=call.name, reason="timed_out"))
    answered(d, call_id, failed_result(Code.TIMED_OUT.value, f"{call.name} did not answer in time."))
    d.forget_call(call.call_id)


def next_round(d: Draft) -> None:
    """Let the model go on with the results, once it has stopped and every call is answered."""
    reply = d.current_reply
    if reply.round.effect is not None or reply.round.calls or not reply.round.uses:
        return
    words = reply_in_result(d, reply)
    memory.remember_round(d, reply)
    if leaves(d):
        d.speech.reply = replace(new_round(reply), closed=True)
    elif words:
        reply = new_round(reply)
        d.speech.reply = replace(reply, round=replace(reply.round, unsplit=words), closed=True)
    else:
        ask(d)


def reply_in_result(d: Draft, reply: Reply) -> str:
    """Return the `spoken` text of the round's only result, if the session says it instead of asking the model again; else empty."""
    results = dict(d.pending.results)
    if not d.settings.speak_results or len(reply.round.uses) != 1:
        return ""
    spoken = results.get(reply.round.uses[0].call_id, {}).get("spoken")
    return spoken if isinstance(spoken, str) else ""
