"""Tasks that are not over: those of a session, for those who list and cancel them, and how many an account has. Pure."""

from __future__ import annotations

from typing import Final

import msgspec
from msgspec.structs import replace

from voxbridge.services.tools.core import calls
from voxbridge.services.tools.core.inputs import AccountInput, TaskOpened
from voxbridge.services.tools.core.state import Approved, Asking, Call, Following, Running, Scheduled, State
from voxbridge.shared.agents.tasks import OpenTask
from voxbridge.shared.errors import Code
from voxbridge.shared.events.voice import Failure

ACCOUNT_LIMIT: Final = 32
"""Tasks and runs that an account may have open in all its sessions, timers not counted."""

COUNTED_US: Final = 86_400_000_000
"""µs for which a task counts at most: a process that died in between may have left one uncounted."""

LISTED_US: Final = 2 * COUNTED_US
"""µs for which a timer is listed at most; none runs longer than a day."""

TIMERS_KEPT: Final = 128
"""Timers of an account that are listed in its other sessions; of more, the newest."""


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
        case Running() | Approved():
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


def counted(state: State, input: AccountInput, now: int) -> State:
    """Return the log of an account with this task counted, or not any more. Beyond `ACCOUNT_LIMIT` none is added that can be refused."""
    tasks = {task: at for task, at in state.tasks.items() if task != input.task and now - at < COUNTED_US}
    timers = {task: at for task, at in state.timers.items() if task != input.task and now - at < LISTED_US}
    if isinstance(input, TaskOpened):
        if input.listed:
            timers = dict(list({**timers, input.task: now}.items())[-TIMERS_KEPT:])
        elif input.forced or input.task in state.tasks or len(tasks) < ACCOUNT_LIMIT:
            tasks[input.task] = now
    same = tasks.keys() == state.tasks.keys() and timers.keys() == state.timers.keys()
    return state if same else replace(state, tasks=tasks, timers=timers)


def refusal() -> Failure:
    """Return the error for a task that the account has no room for."""
    message = f"{ACCOUNT_LIMIT} tasks of this account run already, the most that it may have; wait for one to end, or cancel one."
    return Failure(code=Code.OVERLOADED, message=message, retryable=True, field="tasks")
