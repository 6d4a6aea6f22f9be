"""The same call under a new id: it joins the open one, or gets its result again for a short while. Pure.

Models repeat a call in one turn, and users repeat a request that seemed to do nothing. A call that is repeated before the end of the first
one is recorded shares that end, also when nobody knows what happened. A later turn of the user, after that end or after a timer was set, is
a new request: "louder" said twice is two calls. Read-only functions are simply run again. So is the request of a program, which marks a
repetition by its idempotency key, and so is a call that was undone meanwhile: after "on" and "off", another "on" is a new request.
"""

from __future__ import annotations

from typing import Final

import msgspec
from msgspec.structs import replace

from voxbridge.services.tools.core import approvals, calls
from voxbridge.services.tools.core.inputs import Target
from voxbridge.services.tools.core.state import Asking, Call, Joined, Scheduled, State
from voxbridge.shared.events.tools import ToolJoined
from voxbridge.shared.step.fold import Append

REPEAT_US: Final = 10_000_000
"""µs after the end of a call, and after the start of a timer, within which the same call is taken for a repetition if it was made in them.
When it is taken does not count: that may be long after, where an executor died."""

ANEW: Final = frozenset({"cancel_task", "revoke_approval", "undo_last"})
"""Functions that take back what stands at the time: asked for again after they ended, they run again, since there may be more by then."""

_ENCODER: Final = msgspec.json.Encoder(order="deterministic")


def joined(state: State, call: Call, now: int) -> calls.Steps | None:
    """Return what follows if this call repeats another; None if it is new, or may run again."""
    if call.rules.effect == "read" or call.run or call.by_program:
        return None  # a document, and a program, say themselves what is the same call
    if call.rules.mode == "run":  # and what a second start of it does, while it runs
        single = call.rules.start is not None and call.rules.start.document.mode == "single"
        return _ended_before(state, call, now) if single else None
    for other in state.open.values():
        if (
            not other.run
            and other.id != call.id
            and _equal(other.target, call.target)
            and not isinstance(other.phase, Joined)
            and _is_same(other, call)
            and not any(_is_otherwise(one.target, call.target) and one.called_at >= other.called_at for one in state.open.values())
        ):
            return _join(state, call, other, now)
    return _ended_before(state, call, now)


def _ended_before(state: State, call: Call, now: int) -> calls.Steps | None:
    """End a call like the same one that ended a short while ago, or that had not ended when this one was made."""
    undone = any(_is_otherwise(one.target, call.target) and one.id != call.id for one in state.open.values())
    for first, recent in reversed(list(state.recent.items())):
        undone = undone or _is_otherwise(recent.target, call.target)
        again = recent.kept and not undone and call.target.name not in ANEW and not _asked_again(recent.turn, call)
        fresh = again and call.called_at - recent.ended_at <= REPEAT_US
        if _equal(recent.target, call.target) and (fresh or call.called_at <= recent.ended_at):
            outcome = recent.failure if recent.result is None else calls.repeat(recent.result)
            state, outputs = calls.close(state, call, outcome, now)
            recents = {call_id: one for call_id, one in state.recent.items() if call_id != call.id}
            return replace(state, recent=recents), [_told(call, first), *outputs]
    return None


def _equal(one: Target, other: Target) -> bool:
    """Tell whether two calls are one as JSON: there `1` is not `true`."""
    return one == other and _ENCODER.encode(one.arguments) == _ENCODER.encode(other.arguments)


def _is_otherwise(one: Target, other: Target) -> bool:
    return one.name == other.name and not _equal(one, other)


def _is_same(other: Call, call: Call) -> bool:
    """Tell whether an open call can be joined: none of a run, which has its own rules, and none that joined another."""
    if other.run or isinstance(other.phase, Joined):
        return False
    if not isinstance(other.phase, Scheduled):
        return True
    return call.called_at - other.called_at <= REPEAT_US and not _asked_again(other.turn, call)


def _asked_again(turn: int, call: Call) -> bool:
    """Tell whether a call was asked for by a later turn of the user than the one that asked for the first."""
    return call.rules.by_turn and 0 < turn < call.turn


def _join(state: State, call: Call, other: Call, now: int) -> calls.Steps:
    told = _told(call, other.id)
    if isinstance(other.phase, Asking):
        answer = calls.repeat(approvals.answer(other))
    elif other.answered:
        spoken = f"{calls.words(other.target.name).capitalize()} is under way already."
        answer = calls.repeat({"task_id": calls.task_id(other.id), "status": "started", "spoken": spoken})
    else:
        return calls.put(state, replace(call, phase=Joined(other.id))), [told]
    state, outputs = calls.close(state, call, answer, now)
    return replace(state, recent={call_id: one for call_id, one in state.recent.items() if call_id != call.id}), [told, *outputs]


def _told(call: Call, first: str) -> Append:
    return Append(ToolJoined(call_id=call.id, name=call.name, first=first))
