"""A session's tasks that are not over, for those who list and cancel them. Pure."""

from __future__ import annotations

from typing import Literal

import msgspec

from voxbridge.services.tools.core import calls
from voxbridge.services.tools.core.state import Asking, Call, Following, Running, Scheduled, State


class OpenTask(msgspec.Struct, frozen=True, kw_only=True):
    """A task that is not over. Times are µs of the Unix clock; `due_at` is set where the end is known."""

    task_id: str
    function: str
    state: Literal["waiting for approval", "running", "scheduled"]
    called_at: int
    label: str = ""
    due_at: int | None = None
    done: float = 0.0
    message: str = ""


def open_tasks(state: State, *, but: str = "") -> tuple[OpenTask, ...]:
    """Return the open tasks, oldest first, without that of the call `but`."""
    found = (_task(state, call) for call in state.open.values() if call.answered and call.id != but)
    return tuple(sorted(filter(None, found), key=lambda task: task.called_at))


def _task(state: State, call: Call) -> OpenTask | None:
    done, message = call.progress
    known = OpenTask(
        task_id=calls.task_id(call.id), function=call.target.name, state="running", called_at=call.called_at, done=done, message=message
    )
    match call.phase:
        case Running():
            return known
        case Scheduled(at=at, alarm=alarm):
            return msgspec.structs.replace(known, state="scheduled", due_at=at, label=alarm.label)
        case Following():
            run = state.runs.open.get(call.id)
            label = "" if call.rules.start is None else call.rules.start.document.name
            if run is None:
                return msgspec.structs.replace(known, label=label, message="waits for an earlier run")
            steps = run.frames[0]
            done = min(steps.at / len(steps.document.steps), 1.0)
            return msgspec.structs.replace(known, label=label, done=done, message=f"step {run.frame.path}")
        case Asking():
            return msgspec.structs.replace(known, state="waiting for approval")
    return None
