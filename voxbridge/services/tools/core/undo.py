"""Calls whose effect can be taken back: the account lists the newest of all its sessions, and each is taken back once. Pure.

A session puts a call that returned what its undo needs into the log of its account, and remembers that it is to do so until the account has
it. Who takes something back claims it there first, so of two that ask at once one gets it, and one that is begun again after a crash
gets what it had. What could not be taken back is free again.
"""

from __future__ import annotations

from typing import Any, Final

from msgspec.structs import replace

from voxbridge.services.tools.core.calls import task_id
from voxbridge.services.tools.core.inputs import Undoable, UndoEnded, UndoEntry, UndoInput, UndoKept, UndoWanted
from voxbridge.services.tools.core.outputs import Output, Remember
from voxbridge.services.tools.core.state import Call, State, Undo
from voxbridge.shared.events.tools import TaskCompleted, ToolCompleted, ToolUndoable, ToolUndone
from voxbridge.shared.step.fold import Append

KEPT: Final = 32
"""Calls that an account can take back; of more, the oldest are forgotten."""

UNDO_US: Final = 86_400_000_000
"""µs for which a call can be taken back."""

UNDO_BYTES: Final = 40 * 1_024
"""Bytes, as JSON, of what an undo is given; a call that would need more cannot be taken back."""

Steps = tuple[State, list[Output]]


def key_of(sid: str, call_id: str) -> str:
    """Return the name of a call among those of an account."""
    return f"{sid} {call_id}"


def kept(state: State, call: Call, data: dict[str, Any] | None, outputs: list[Output], now: int) -> Steps:
    """Add to the outputs of a call that ended well that it can be taken back, before its message is acknowledged."""
    if data is None:
        return state, outputs
    entry = UndoEntry(call_id=call.id, function=call.target.name, account=call.account, run=call.run, ended_at=now, data=data)
    state = replace(state, unkept={**state.unkept, call.id: entry})
    return state, [Remember(entry), *(_marked(output, call) for output in outputs)]


def _marked(output: Output, call: Call) -> Output:
    """Mark the event that tells the call's result, for clients."""
    event = output.event if isinstance(output, Append) else None
    if isinstance(event, ToolCompleted) and event.call_id == call.id:
        return Append(replace(event, undo=True))
    if isinstance(event, TaskCompleted) and event.task_id == task_id(call.id):
        return Append(replace(event, undo=True))
    return output


def left(state: State) -> list[Output]:
    """Return what is still to be put into the log of the account."""
    return [Remember(entry) for entry in state.unkept.values()]


def took(state: State, input: UndoInput, now: int) -> Steps:
    """Take an input about what can be taken back."""
    match input:
        case UndoKept(call_id=call_id):
            return replace(state, unkept={other: entry for other, entry in state.unkept.items() if other != call_id}), []
        case Undoable():
            return _listed(state, input)
        case UndoWanted():
            return _claimed(state, input, now), []
        case UndoEnded():
            return _ended(state, input)


def claimed(state: State, by: str) -> list[Undo]:
    """Return what a call is to take back, or took back, the newest first."""
    return [one for one in reversed([*state.undoable.values()]) if one.by == by]


def _listed(state: State, input: Undoable) -> Steps:
    entry = input.entry
    key = key_of(input.sid, entry.call_id)
    if key in state.undoable:
        return state, []
    listed = Undo(sid=input.sid, call_id=entry.call_id, function=entry.function, run=entry.run, ended_at=entry.ended_at)
    undoable = dict(list({**state.undoable, key: listed}.items())[-KEPT:])
    told = ToolUndoable(sid=input.sid, call_id=entry.call_id, function=entry.function, data=entry.data)
    return replace(state, undoable=undoable), [Append(told)]


def _claimed(state: State, input: UndoWanted, now: int) -> State:
    """Claim the named call, else the last one: of the session that asks, if it has any. The steps of a run are one."""
    if claimed(state, input.by):
        return state
    free = [one for one in state.undoable.values() if not one.by and now - one.ended_at < UNDO_US]
    own = [one for one in free if one.sid == input.sid]
    found = [one for one in free if input.call_id in (one.call_id, one.run)] if input.call_id else own or free
    if not found:
        return state
    last = found[-1]
    wanted = [one for one in free if one.sid == last.sid and one.run == last.run] if last.run else [last]
    taken = {key_of(one.sid, one.call_id): replace(one, by=input.by) for one in wanted}
    return replace(state, undoable={key: taken.get(key, one) for key, one in state.undoable.items()})


def _ended(state: State, input: UndoEnded) -> Steps:
    key = key_of(input.sid, input.call_id)
    one = state.undoable.get(key)
    if one is None or one.by != input.by or one.done:
        return state, []
    if not input.done:
        return replace(state, undoable={**state.undoable, key: replace(one, by="")}), []
    state = replace(state, undoable={**state.undoable, key: replace(one, done=True)})
    return state, [Append(ToolUndone(sid=one.sid, call_id=one.call_id, function=one.function, by=input.by))]
