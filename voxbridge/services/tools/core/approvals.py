"""Approval of a call by a person, between its acceptance and its start. Pure.

The caller is answered at once with what to ask: a realtime model is mute while it waits for a function. After a yes the call runs as a
task. Only the user's own words, matched by the voice service, and a click in a client answer; the first answer counts. No model and no text
of a page, a file or a result can.
"""

from __future__ import annotations

from typing import Any, Final, Literal

import msgspec
from msgspec.structs import replace

from voxbridge.services.tools.core import calls, runs
from voxbridge.services.tools.core.outputs import Grant, Output, SetTimer
from voxbridge.services.tools.core.state import Asking, Call, State
from voxbridge.shared.events.tools import ApprovalEnded, ApprovalRequested
from voxbridge.shared.step.fold import Append

EXPIRES_US: Final = 120_000_000
"""µs for which a call waits for an answer."""

QUESTION_CHARACTERS: Final = 200
"""Characters of the arguments in a question."""

Outcome = Literal["approved", "denied", "lapsed", "withdrawn"]


def call_of(state: State, approval: str) -> Call | None:
    """Return the call that waits for this approval."""
    call = state.open.get(approval.removeprefix("approval-"))
    return call if call is not None and isinstance(call.phase, Asking) else None


def ask(state: State, call: Call, now: int) -> calls.Steps:
    """Ask for approval, and answer the caller with the question."""
    call = replace(call, phase=Asking(now + EXPIRES_US))
    requested = ApprovalRequested(
        approval_id=calls.approval_id(call.id),
        call_id=call.id,
        name=call.target.name,
        arguments=call.target.arguments,
        effect=call.rules.effect,
        question=question(call),
        expires_ts=now + EXPIRES_US,
    )
    outputs: list[Output] = [Append(requested)]
    call, told = calls.answered(call, answer(call), now)
    return calls.put(state, call), [*outputs, *told, SetTimer(call.id, now + EXPIRES_US)]


def answer(call: Call) -> dict[str, Any]:
    """Return the result for the caller of a call that waits for approval."""
    return {"status": "needs_approval", "approval_id": calls.approval_id(call.id), "spoken": question(call)}


def question(call: Call) -> str:
    """Return the question for the user: what would be done, with what."""
    given = ", ".join(f"{name.replace('_', ' ')} {_short(value)}" for name, value in call.target.arguments.items())
    given = given if len(given) <= QUESTION_CHARACTERS else f"{given[:QUESTION_CHARACTERS]}…"
    return f"Shall I {calls.words(call.target.name)}{f' with {given}' if given else ''}? Please say yes or no."


def decided(
    state: State, call: Call, outcome: Outcome, now: int, *, by: Literal["", "voice", "click"] = "", scope: str = "once"
) -> calls.Steps:
    """End the question: run the call, or drop it."""
    ended = ApprovalEnded(
        approval_id=calls.approval_id(call.id), call_id=call.id, name=call.target.name, outcome=outcome, by=by, scope=_scope(call, scope)
    )
    if outcome != "approved":
        return calls.drop(state, call, ended)
    granted: list[Output] = [Append(ended)]
    if ended.scope != "once":
        arguments = call.target.arguments if ended.scope == "arguments" else None
        granted.append(Grant(call.account, call.target.name, arguments, call.rules.definition))
    state, outputs = runs.begun(state, call, now) if call.rules.start is not None else calls.begin(state, call, now)
    return state, [*granted, *outputs]


def woken(state: State, call: Call, asking: Asking, now: int) -> calls.Steps:
    """Handle the timer of a call that waits for an answer."""
    return (state, [SetTimer(call.id, asking.expires_at)]) if now < asking.expires_at else decided(state, call, "lapsed", now)


def _scope(call: Call, wanted: str) -> Literal["once", "arguments", "function"]:
    if call.rules.mode == "run":
        return "once" if call.rules.approval == "always" else "arguments"  # one macro's approval is not another's
    if call.rules.approval == "first":
        return "arguments" if wanted == "arguments" else "function"
    return "function" if wanted == "function" else "arguments" if wanted == "arguments" else "once"


def _short(value: Any) -> str:
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()
