"""Ends of tasks that outlive their session: each is told to the user by one session, this one or a later one of the account. Pure.

A session says at its end which of them it told. The others, and those that come afterwards, go into the log of the account, whose fold
gives each to one session that asks for it. What is given is that session's, and comes back if it ends without having told it.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, Final, TypeVar

import msgspec
from msgspec.structs import replace

from voxbridge.services.tools.core.inputs import EndInput, Passed, Recalled, TaskEnd, Unheard, Wanted
from voxbridge.services.tools.core.outputs import Output, Tell
from voxbridge.services.tools.core.state import Call, Given, State
from voxbridge.shared import events
from voxbridge.shared.events.tools import TaskCancelled, TaskCompleted, TaskFailed, TaskInterrupted, TaskStarted, TasksUnheard, UnheardTask
from voxbridge.shared.step.fold import Append

KEPT: Final = 32
"""Ends that an account, or a session, keeps until they are told; of more, the oldest are forgotten."""

RESULT_BYTES: Final = 8_192
"""Bytes of a result, as JSON, that is kept whole; of a larger one only what is to be said is."""

BY_THE_USER: Final = "the user cancelled it"
"""Reason of a cancellation that the user knows of."""

_V = TypeVar("_V")
_SAID: Final = ("spoken", "announce", "success")


def ended(state: State, call: Call, event: events.Event, now: int) -> tuple[State, list[Output]]:
    """Keep the end of a task that outlives its session; where that is over, have the account told."""
    if not isinstance(event, TaskCompleted | TaskFailed | TaskCancelled | TaskInterrupted) or not event.outlives:
        return state, []
    if call.by_program or (isinstance(event, TaskCancelled) and event.reason == BY_THE_USER):
        return state, []
    end = TaskEnd(
        task_id=event.task_id,
        function=event.function,
        account=call.account,
        kind=events.kind_of(event).name,
        data=msgspec.to_builtins(_short(event)),
        ended_at=now,
    )
    state = replace(state, unheard=_kept({**state.unheard, end.task_id: end}))
    return state, [Tell(end)] if state.over else []


def left(state: State) -> list[Output]:
    """Return what is still to be put into the log of the account: nothing while the session can tell it."""
    return [Tell(end) for end in state.unheard.values()] if state.over else []


def session_ended(state: State, told: Collection[str]) -> tuple[State, list[Output]]:
    """Have the account told of what the session did not tell."""
    unheard = {task: end for task, end in state.unheard.items() if task not in told}
    state = replace(state, over=True, unheard=unheard)
    return state, left(state)


def took(state: State, input: EndInput) -> tuple[State, list[Output]]:
    """Take an input of the account or of a session that ends move between."""
    match input:
        case Unheard():
            return _unheard(state, input)
        case Wanted():
            return _wanted(state, input)
        case Recalled():
            return _recalled(state, input)
        case Passed(task_id=task):
            return replace(state, unheard={other: end for other, end in state.unheard.items() if other != task}), []


def _unheard(state: State, input: Unheard) -> tuple[State, list[Output]]:
    task = input.end.task_id
    given = state.given.get(task)
    if task in state.unheard or (given is not None and given.sid != input.sid):
        return state, []  # told of again, after a crash between the two logs
    rest = {other: one for other, one in state.given.items() if other != task}
    return _listed(replace(state, unheard=_kept({**state.unheard, task: input.end}), given=rest))


def _wanted(state: State, input: Wanted) -> tuple[State, list[Output]]:
    found = {task: state.unheard[task] for task in input.tasks if task in state.unheard}
    if not found:
        return state, []
    given = {**state.given, **{task: Given(input.sid, end) for task, end in found.items()}}
    rest = {task: end for task, end in state.unheard.items() if task not in found}
    return _listed(replace(state, unheard=rest, given=_kept(given)))


def _listed(state: State) -> tuple[State, list[Output]]:
    tasks = tuple(UnheardTask(task_id=end.task_id, function=end.function, ended_ts=end.ended_at) for end in state.unheard.values())
    return state, [Append(TasksUnheard(tasks=tasks))]


def _recalled(state: State, input: Recalled) -> tuple[State, list[Output]]:
    outputs: list[Output] = []
    for end in input.ends:
        if end.task_id in state.unheard:
            continue
        state = replace(state, unheard=_kept({**state.unheard, end.task_id: end}))
        if not state.over:
            call_id = end.task_id.removeprefix("task-")
            told = msgspec.convert({**end.data, "ended_ts": end.ended_at}, events.KINDS[end.kind].cls)
            outputs += [Append(TaskStarted(task_id=end.task_id, function=end.function, call_id=call_id)), Append(told)]
    return state, [*outputs, *left(state)]


def _short(event: TaskCompleted | TaskFailed | TaskCancelled | TaskInterrupted) -> events.Event:
    if not isinstance(event, TaskCompleted) or len(msgspec.json.encode(event.result)) <= RESULT_BYTES:
        return event
    said: dict[str, Any] = {}
    for key in _SAID:
        if key in event.result and len(msgspec.json.encode({**said, key: event.result[key]})) <= RESULT_BYTES:
            said[key] = event.result[key]
    return replace(event, result={**said, "cut": True})


def _kept(entries: dict[str, _V]) -> dict[str, _V]:
    return dict(list(entries.items())[-KEPT:])
