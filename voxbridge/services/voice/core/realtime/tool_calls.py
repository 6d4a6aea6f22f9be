"""Function calls of a realtime model. They outlive the response and the connection that requested them. Pure.

A result is sent as a response on the connection that requested the call, and as content on any other: no model acts on the response to a
call that it did not make. The tools service executes each call, once.
"""

from __future__ import annotations

from typing import Any, Final

from msgspec.structs import replace

from voxbridge.services.voice.core import outputs as out
from voxbridge.services.voice.core import page_functions, provider_events
from voxbridge.services.voice.core.cascade import speaking
from voxbridge.services.voice.core.prompt import memory
from voxbridge.services.voice.core.realtime import connection, transcripts
from voxbridge.services.voice.core.state import OpenCall
from voxbridge.services.voice.core.transition import Transition
from voxbridge.services.voice.core.turns import handoff_request, open_calls, playout, rounds
from voxbridge.shared.agents.functions import failed_result
from voxbridge.shared.agents.model import HANDOFF
from voxbridge.shared.errors import Code
from voxbridge.shared.events import voice as ev

CALLS_LIMIT: Final = 32
"""Number of calls that may be open at a time."""
ROUNDS: Final = "A turn may have {rounds} rounds of calls, and this one has had them: answer with what you have."
RESULT: Final = "The result of {name}, which you asked for before, is: {result}"


def call_requested(t: Transition, input: provider_events.CallRequested) -> None:
    """Open a call that the model requested, or refuse it."""
    turns_before = t.counters.turns
    transcripts.expect(t)
    transcripts.begin_turn(t)
    if not t.realtime.words_due:
        transcripts.final(t)
    if t.reply is not None and t.reply.connection == t.realtime.effect and not t.reply.closed and t.counters.turns != turns_before:
        speaking.close(t, playout.made_ms(t.reply))  # it belongs to an earlier turn, or to none
    realtime = t.realtime
    t.hearing = replace(t.hearing, from_ms=max(realtime.hearing.from_ms, realtime.hearing.audio_ms))  # a call counts as an answer
    if input.name == HANDOFF:
        refusal = handoff_request.called(t, input.arguments)
        if refusal:
            error = failed_result(Code.INVALID_ARGUMENT.value, refusal)
            t.outputs.append(out.Answer(effect=realtime.effect, ref=input.ref, name=input.name, result=error))
            t.response = replace(t.response, stage="called")
            transcripts.wait_for_an_answer(t)
        return
    if len(realtime.tool_calls.open) >= CALLS_LIMIT:
        _refuse(t, input, f"At most {CALLS_LIMIT} calls may be open.")
        return
    if not _in_a_round(t):
        _refuse(t, input, ROUNDS.format(rounds=t.settings.tool_rounds))
        t.response = replace(t.response, stage="called")
        transcripts.wait_for_an_answer(t)
        return
    quiet_since = t.now if realtime.hearing.active else realtime.hearing.ended_at
    ended_at = quiet_since if quiet_since != t.client.typed_at else None
    call_id, function, timeout_ms = open_calls.open_call(t, input.name, input.arguments, turn=t.counters.turns, ended_at=ended_at)
    browser = function is not None and function.kind == "browser"
    call = OpenCall(call_id=call_id, name=input.name, arguments=input.arguments, ref=input.ref, effect=realtime.effect, browser=browser)
    t.realtime = replace(t.realtime, tool_calls=replace(t.realtime.tool_calls, open=(*t.realtime.tool_calls.open, call)))
    t.response = replace(t.response, stage="called")
    t.realtime = replace(t.realtime, awaited=True)
    if absent := page_functions.absent(t.client, function):
        _give_up(t, call, Code.UNAVAILABLE, absent)
    else:
        t.set_timer(f"call:{call_id}", page_functions.wait_ms(function, timeout_ms, rounds.CALL_MARGIN_MS))


def _in_a_round(t: Transition) -> bool:
    """Count the round that a call belongs to. Return whether the turn may have that round."""
    realtime = t.realtime
    turn, rounds = realtime.tool_calls.rounds
    if turn != t.counters.turns:
        rounds = 0
    if not rounds or realtime.tool_calls.answered:
        rounds += 1
    if rounds > t.settings.tool_rounds > 0:
        return False
    t.realtime = replace(t.realtime, tool_calls=replace(t.realtime.tool_calls, rounds=(t.counters.turns, rounds), answered=False))
    return True


def _refuse(t: Transition, input: provider_events.CallRequested, message: str) -> None:
    error = failed_result(Code.OVERLOADED.value, message)
    if input.effect:
        t.outputs.append(out.Answer(effect=input.effect, ref=input.ref, name=input.name, result=error))
    else:  # the model wrote the call as text
        connection.say(t, RESULT.format(name=input.name, result=memory.as_text(error)))


def waits_for(t: Transition, call_id: str) -> bool:
    """Check whether this is an open call of a realtime model."""
    return t.state.realtime is not None and any(call.call_id == call_id for call in t.state.realtime.tool_calls.open)


def answered(t: Transition, call_id: str, result: dict[str, Any]) -> None:
    """Give a call's result to the model: as a response on the connection that requested it, as content on any other. Of several calls of
    lost connections, only the last result asks for an answer: the model would answer each request separately."""
    realtime = t.realtime
    call = next(call for call in realtime.tool_calls.open if call.call_id == call_id)
    left = tuple(other for other in realtime.tool_calls.open if other is not call)
    t.realtime = replace(realtime, tool_calls=replace(realtime.tool_calls, open=left, answered=True))
    t.cancel_timers(f"call:{call_id}")
    memory.remember_call(t, out.ToolUse(call_id=call_id, name=call.name, arguments=call.arguments), result)
    if realtime.ready and call.effect == realtime.effect:
        t.append(ev.ToolDelivered(call_id=call_id, how="response"))
        t.outputs.append(out.Answer(effect=realtime.effect, ref=call.ref, name=call.name, result=result))
    else:
        t.append(ev.ToolDelivered(call_id=call_id, how="content"))
        t.owed = replace(t.owed, go_on=False)
        others = realtime.ready and any(other.effect != realtime.effect for other in left)
        connection.say(t, RESULT.format(name=call.name, result=memory.as_text(result)), respond=not others)
    transcripts.wait_for_an_answer(t)


def call_timed_out(t: Transition, call_id: str) -> None:
    """Cancel a call that no executor answered in time, and give the model an error as its result."""
    call = next(call for call in t.realtime.tool_calls.open if call.call_id == call_id)
    _give_up(t, call, Code.TIMED_OUT, f"{call.name} did not answer in time.")


def _give_up(t: Transition, call: OpenCall, code: Code, message: str) -> None:
    open_calls.withdraw(t, call, code.value.lower())
    answered(t, call.call_id, failed_result(code.value, message))


def calls_cancelled(t: Transition, input: provider_events.CallsCancelled) -> None:
    """Cancel calls that the provider took back: their results are recorded and given to no model."""
    realtime = t.realtime
    for call in realtime.tool_calls.open:
        if call.ref in input.refs and call.effect == realtime.effect:
            open_calls.withdraw(t, call, "provider")
    kept = tuple(call for call in realtime.tool_calls.open if not (call.ref in input.refs and call.effect == realtime.effect))
    t.realtime = replace(t.realtime, tool_calls=replace(t.realtime.tool_calls, open=kept))
    t.realtime = replace(t.realtime, awaited=realtime.awaited and bool(kept))
    if realtime.owed.turn:
        transcripts.wait_for_an_answer(t)
