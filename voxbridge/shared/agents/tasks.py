"""Tasks of functions that are not over, as the tool executor tells of them: to functions, and to gateways that ask."""

from __future__ import annotations

from typing import Final, Literal

import msgspec

SUBJECT: Final = "vx.svc.tools.tasks"
"""Subject on which an executor is asked for the open tasks in the sessions of an account."""


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
    sid: str = ""
    """Session of a task of another call of the account; empty for one of this session."""


class OpenTasks(msgspec.Struct, frozen=True, kw_only=True):
    """Open tasks, oldest first. `incomplete`: the log of a session could not be read, so tasks of it may be missing."""

    tasks: tuple[OpenTask, ...] = ()
    incomplete: bool = False


class TasksAsked(msgspec.Struct, frozen=True, kw_only=True):
    """Account whose tasks are asked for."""

    account: str
