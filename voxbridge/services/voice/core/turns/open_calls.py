"""Calls on their way to the executor: opened, held for a moment, withdrawn. Pure.

What may change something begins `QUIET_MS` after the user stopped speaking at the earliest: a pause may have been taken for the end of the
sentence, and "delete the old one" may go on with "no, wait". What only reads begins at once, and so does what was typed.
"""

from __future__ import annotations

from typing import Any, Final

from voxbridge.services.voice.core.state import Call, OpenCall
from voxbridge.services.voice.core.transition import Transition
from voxbridge.shared.agents.functions import Function
from voxbridge.shared.agents.model import HANDOFF
from voxbridge.shared.events import voice as ev

QUIET_MS: Final = 600
MACROS: Final = ("create_macro", "run_macro")
"""Functions whose calls have carried what the agent may call since before every call did."""

RUN_TOOL: Final = "run_tool"
TIMER: Final = "begin:"
"""Beginning of the timers of held calls; the rest is the id of the call."""


def open_call(
    t: Transition, name: str, arguments: dict[str, Any], *, turn: int, ended_at: int | None = None
) -> tuple[str, Function | None, int]:
    """Request the execution of a function. Return the call's id, the function (None if unknown) and how long it may take from now, ms.

    `ended_at` is when the user stopped speaking, µs; None if the words were typed.
    """
    t.counters.calls += 1
    call_id = f"fc_{t.state.sid[:8]}_{t.counters.calls}"
    function = next((f for f in t.team.functions if f.name == name), None)
    kind = function.kind if function is not None else "server"
    timeout_ms = int((function.timeout_s if function is not None else 30) * 1_000)
    account = t.state.request.account if t.state.request is not None else "local"
    called = ev.ToolCalled(
        call_id=call_id,
        name=name,
        arguments=arguments,
        kind=kind,
        turn=turn,
        deadline_ms=timeout_ms,
        account=account,
        allowed=_allowed(t) if t.settings.rules or name in MACROS else None,
        unattended=t.state.request is not None and t.state.request.child is not None,
        time_zone=t.settings.options.time_zone,
    )
    quiet_ms = QUIET_MS - (t.now - ended_at) // 1_000 if ended_at else 0
    if quiet_ms > 0 and outlives_its_reply(t, name):
        t.pending.held = (*t.pending.held, called)
        t.set_timer(f"{TIMER}{call_id}", quiet_ms)
        timeout_ms += quiet_ms
    else:
        t.append(called)
    return call_id, function, timeout_ms


def start(t: Transition) -> None:
    """Call the functions that the agent starts with, as far as it may and this session has not; nobody waits for their answers."""
    names = {function.name for function in t.team.functions if function.kind == "async"}
    for name in t.team.agent.starts:
        if name in names and name not in t.pending.started:
            t.pending.started = (*t.pending.started, name)
            open_call(t, name, {}, turn=0)


def _allowed(t: Transition) -> tuple[str, ...] | None:
    """Return the names of the functions that the agent may call; None stands for all, which an agent with `RUN_TOOL` reaches.

    Whoever holds a publishable key has nothing but what the key names and the page brings along, whichever functions those are.
    """
    names = tuple(function.name for function in t.team.functions if function.kind != "browser" and function.name != HANDOFF)
    if t.settings.rules and t.state.request is not None and t.state.request.key is not None:
        return names
    return None if t.team.agent.tools is None or RUN_TOOL in names else names


def is_held(t: Transition, call_id: str) -> bool:
    """Tell whether a call has not begun yet."""
    return any(called.call_id == call_id for called in t.pending.held)


def begin(t: Transition, call_id: str, *, speaking: bool) -> bool:
    """Begin a held call, or wait on while the user speaks. Return whether it began."""
    called = next((one for one in t.pending.held if one.call_id == call_id), None)
    if called is None:
        return False
    if speaking:
        t.set_timer(f"{TIMER}{call_id}", QUIET_MS)
        return False
    t.pending.held = tuple(one for one in t.pending.held if one is not called)
    t.append(called)
    return True


def withdraw(t: Transition, call: Call | OpenCall, reason: str) -> bool:
    """Take a call back: its late result is dropped. Return whether it had begun."""
    t.cancel_timers(f"call:{call.call_id}")
    if is_held(t, call.call_id):
        t.pending.held = tuple(one for one in t.pending.held if one.call_id != call.call_id)
        t.cancel_timers(f"{TIMER}{call.call_id}")
        return False
    t.append(ev.ToolCancelled(call_id=call.call_id, name=call.name, reason=reason))
    t.forget_call(call.call_id)
    return True


def outlives_its_reply(t: Transition, name: str) -> bool:
    """Tell whether a call of this function goes on when its reply is cut off: what only reads is stopped, and a page is told itself."""
    function = next((one for one in t.team.catalogue if one.name == name), None)
    return t.settings.tells_ends and function is not None and function.effect != "read" and function.kind != "browser"
