"""Approval of a call by a person, between its acceptance and its start. Pure.

The caller is answered at once with what to ask: a realtime model is mute while it waits for a function. After a yes the call runs as a
task. Only the user's own words, matched by the voice service, and a click in a client answer; the first answer counts. No model and no text
of a page, a file or a result can.
"""

from __future__ import annotations

from typing import Any, Final, Literal

import msgspec
from msgspec.structs import replace

from voxbridge.services.tools.core import calls, runs, tasks
from voxbridge.services.tools.core.inputs import Counted, Proposal, Target
from voxbridge.services.tools.core.outputs import Count, Grant, Output, Release, SetTimer
from voxbridge.services.tools.core.state import Approved, Asking, Call, Joined, Running, State
from voxbridge.shared.events.tools import ApprovalEnded, ApprovalRequested, ToolCompleted
from voxbridge.shared.step.fold import Append

EXPIRES_US: Final = 120_000_000
"""µs for which a call waits for an answer."""

GRANTED_KEPT: Final = 8
"""Standing approvals that a session remembers, in case their answer comes again."""

QUESTION_CHARACTERS: Final = 200
"""Characters of the arguments in a question."""

Outcome = Literal["approved", "denied", "lapsed", "withdrawn"]


def call_of(state: State, approval: str) -> Call | None:
    """Return the call that waits for this approval."""
    call = state.open.get(approval.removeprefix("approval-"))
    return call if call is not None and isinstance(call.phase, Asking) else None


def counted_again(state: State, approval: str) -> list[Output]:
    """Return what is left to do for an approval that comes again: its process may have died before the account was asked."""
    call = state.open.get(approval.removeprefix("approval-"))
    return counting(call) if call is not None and isinstance(call.phase, Approved) else []


def propose(state: State, call: Call, running: Running, proposal: Proposal, now: int) -> calls.Steps:
    """Ask whether the function that runs may do what it proposes; after a yes it is called with that. A newer proposal of a function takes
    the place of an older one. Nobody is asked where the call was cancelled, or is not waited for any more."""
    if running.cancelled or call.answered:
        reason = running.cancelled or "nobody waited for its question"
        return calls.cancelled(state, call, reason, now) if call.answered else calls.close(state, call, calls.cancellation(reason), now)
    outputs: list[Output] = []
    for other in list(state.open.values()):
        if _takes_its_place(call, proposal, other):
            state, more = decided(state, other, "withdrawn", now)
            outputs += more
    asking = Asking(now + EXPIRES_US, question=proposal.question, attempt=running.attempt, topic=proposal.topic)
    call = replace(call, target=Target(call.target.name, proposal.arguments), phase=asking)
    state, more = _ask(state, call, now)
    outputs += more
    for other in [one for one in state.open.values() if one.phase == Joined(call.id)]:
        told = ToolCompleted(call_id=other.id, name=other.name, result=calls.repeat(answer(call)), ms=0)
        state, more = calls.drop(state, other, told)
        outputs += more
    return state, outputs


def _takes_its_place(call: Call, proposal: Proposal, other: Call) -> bool:
    """Tell whether a proposal takes the place of another that waits for its answer."""
    asking = other.phase
    same = other.target.name == call.target.name and other.run == call.run
    return isinstance(asking, Asking) and bool(asking.question) and same and asking.topic == proposal.topic


def ask(state: State, call: Call, now: int) -> calls.Steps:
    """Ask for approval, and answer the caller with the question."""
    return _ask(state, replace(call, phase=Asking(now + EXPIRES_US)), now)


def _ask(state: State, call: Call, now: int) -> calls.Steps:
    requested = ApprovalRequested(
        approval_id=calls.approval_id(call.id),
        call_id=call.id,
        name=call.target.name,
        arguments=call.target.arguments,
        effect=call.rules.effect,
        question=question(call),
        expires_ts=now + EXPIRES_US,
        scopes=_scopes(call),
        by_program=call.by_program,
    )
    outputs: list[Output] = [Append(requested)]
    call, told = calls.answered(call, answer(call), now, goes_on="approval")
    return calls.put(state, call), [*outputs, *told, SetTimer(call.id, now + EXPIRES_US)]


def answer(call: Call) -> dict[str, Any]:
    """Return the result for the caller of a call that waits for approval."""
    return {"status": "needs_approval", "approval_id": calls.approval_id(call.id), "spoken": question(call)}


def question(call: Call) -> str:
    """Return the question for the user: what would be done, with what."""
    if isinstance(call.phase, Asking) and call.phase.question:
        return call.phase.question
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
    granted: list[Output] = []
    if ended.scope != "once":
        arguments = call.target.arguments if ended.scope == "arguments" else None
        grant = Grant(ended.approval_id, call.account, call.target.name, arguments, call.rules.definition)
        state = replace(state, granted=calls.kept({**state.granted, ended.approval_id: grant}, GRANTED_KEPT))
        granted = [grant]
    if call.run or call.rules.counted or call.rules.mode == "alarm":
        state, outputs = runs.begun(state, call, now) if call.rules.start is not None else calls.begin(state, call, now)
        return state, [Append(ended), *outputs, *granted]
    attempt = call.phase.attempt if isinstance(call.phase, Asking) else 0
    return calls.put(state, replace(call, phase=Approved(attempt))), [Append(ended), *granted, *counting(call)]


def counting(call: Call) -> list[Output]:
    """Return the question to the account whether it has room for a call that was approved: what it runs is a task."""
    return [Count(call.account, call.id)]


def admitted(state: State, call: Call | None, input: Counted, now: int) -> calls.Steps:
    """Begin a call that was approved, or refuse it where the account has no room. One that was cancelled meanwhile counts no more."""
    if call is None:
        return state, [Release(input.account, input.call_id)] if input.room else []
    if not isinstance(call.phase, Approved):
        return state, []
    if not input.room:
        return calls.close(state, call, tasks.refusal(), now)
    call = replace(call, rules=replace(call.rules, counted=True))
    return runs.begun(state, call, now) if call.rules.start is not None else calls.begin(state, call, now)


def granted_before(state: State, approval: str) -> list[Output]:
    """Return the standing approval that an answer gave which comes again: its process may have died before the account had it."""
    grant = state.granted.get(approval)
    return [] if grant is None else [grant]


def is_late(call: Call, given_at: int) -> bool:
    """Tell whether an answer was given after the question had lapsed, which no process was there to say."""
    return isinstance(call.phase, Asking) and given_at >= call.phase.expires_at


def woken(state: State, call: Call, asking: Asking, now: int) -> calls.Steps:
    """Handle the timer of a call that waits for an answer."""
    return (state, [SetTimer(call.id, asking.expires_at)]) if now < asking.expires_at else decided(state, call, "lapsed", now)


def _scopes(call: Call) -> tuple[Literal["arguments", "function"], ...]:
    """Return the ways in which a yes can stand."""
    if call.rules.approval == "never":  # it asks about what it proposes each time
        return ()
    if call.rules.mode == "run":
        return () if call.rules.approval == "always" else ("arguments",)  # one macro's approval is not another's
    return ("arguments", "function")


def _scope(call: Call, wanted: str) -> Literal["once", "arguments", "function"]:
    standing = _scopes(call)
    for one in standing:
        if one == wanted:
            return one
    return standing[-1] if standing and call.rules.approval == "first" else "once"


def _short(value: Any) -> str:
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()
