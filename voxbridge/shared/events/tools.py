"""Events that the tool executor writes: the life of calls and tasks, and the facts its functions state."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from voxbridge.shared.agents.functions import Effect
from voxbridge.shared.events.envelope import Event, event
from voxbridge.shared.events.voice import Failure


@event("tool.started", writer="tools")
class ToolStarted(Event, frozen=True, kw_only=True):
    """Written before the effect: after a crash it distinguishes a call that never ran from one that may have run."""

    call_id: str
    name: str
    attempt: int = 1


@event("tool.joined", writer="tools")
class ToolJoined(Event, frozen=True, kw_only=True):
    """The call repeats another one with the same arguments: nothing runs a second time, and it ends as `first` does or did."""

    call_id: str
    name: str
    first: str


@event("tool.completed", writer="tools", visible=True)
class ToolCompleted(Event, frozen=True, kw_only=True):
    """The function returned, after `ms` milliseconds."""

    call_id: str
    name: str
    result: dict[str, Any]
    ms: int
    undo: bool = False
    """True if what it did can be taken back (`tool.undoable`)."""

    goes_on: Literal["", "task", "approval"] = ""
    """Sequel of the call, where this is not its end: a task, or a question to a person. What the result itself says decides nothing."""


@event("tool.failed", writer="tools", visible=True)
class ToolFailed(Event, frozen=True, kw_only=True):
    """The function raised, ran out of time, was not found or refused its arguments."""

    call_id: str
    name: str
    error: Failure
    ms: int


@event("tool.interrupted", writer="tools", visible=True)
class ToolInterrupted(Event, frozen=True, kw_only=True):
    """The executor died while the function ran: it is not known whether its effect happened, and the function is not run again."""

    call_id: str
    name: str


@event("child.opened", writer="tools")
class ChildOpened(Event, frozen=True, kw_only=True):
    """The call asks for a session of its own, with this id and agent, or puts a question into it. Written before the session is requested,
    so that whoever erases this log knows of it."""

    call_id: str
    child: str
    agent: str
    kind: Literal["run", "expert"]


@event("task.started", writer="tools", visible=True)
class TaskStarted(Event, frozen=True, kw_only=True):
    """An async function continues after its call was answered. `due_ts` (µs) is set when the end is known."""

    task_id: str
    function: str
    call_id: str
    due_ts: int | None = None
    label: str = ""


@event("task.progressed", writer="tools", visible=True)
class TaskProgressed(Event, frozen=True, kw_only=True):
    """Progress of a task; `done` is from 0 to 1. With `tell` the agent tells the message to the user while the task goes on."""

    task_id: str
    function: str
    done: float
    message: str = ""
    tell: bool = False


@event("task.completed", writer="tools", visible=True)
class TaskCompleted(Event, frozen=True, kw_only=True):
    """The task returned its result. `announce` is what the agent should tell the user, if anything."""

    task_id: str
    function: str
    result: dict[str, Any]
    announce: str = ""
    undo: bool = False
    """True if what it did can be taken back (`tool.undoable`)."""

    outlives: bool = False
    ended_ts: int | None = None
    """Time of the end, µs, in the log of a later session, which is to tell it (`outlives`)."""


@event("task.failed", writer="tools", visible=True)
class TaskFailed(Event, frozen=True, kw_only=True):
    """The task failed."""

    task_id: str
    function: str
    error: Failure
    outlives: bool = False
    ended_ts: int | None = None
    """Time of the end, µs, in the log of a later session, which is to tell it (`outlives`)."""


@event("task.cancelled", writer="tools", visible=True)
class TaskCancelled(Event, frozen=True, kw_only=True):
    """The task was cancelled."""

    task_id: str
    function: str
    reason: str
    outlives: bool = False
    ended_ts: int | None = None
    """Time of the end, µs, in the log of a later session, which is to tell it (`outlives`)."""


@event("task.interrupted", writer="tools", visible=True)
class TaskInterrupted(Event, frozen=True, kw_only=True):
    """The executor died while the task ran, and the task cannot be continued."""

    task_id: str
    function: str
    outlives: bool = False
    ended_ts: int | None = None
    """Time of the end, µs, in the log of a later session, which is to tell it (`outlives`)."""


class UnheardTask(msgspec.Struct, frozen=True, kw_only=True):
    """A task whose end, at `ended_ts` (µs), no session has told."""

    task_id: str
    function: str
    ended_ts: int


@event("tasks.unheard", writer="tools")
class TasksUnheard(Event, frozen=True, kw_only=True):
    """A fact of the account: the ended tasks of which no session has been given the end to tell, from now on; oldest first."""

    tasks: tuple[UnheardTask, ...]


@event("approval.requested", writer="tools", visible=True)
class ApprovalRequested(Event, frozen=True, kw_only=True):
    """A call waits for a person's approval until `expires_ts` (µs); `question` is what to ask."""

    approval_id: str
    call_id: str
    name: str
    arguments: dict[str, Any]
    effect: Effect
    question: str
    expires_ts: int
    scopes: tuple[Literal["arguments", "function"], ...] = ("arguments", "function")
    """Ways in which a yes can stand for later calls; none where it never does."""

    by_program: bool = False
    """True for a call that a program made over REST, or a step of a run that it began: no agent asks about it."""


@event("approval.ended", writer="tools", visible=True)
class ApprovalEnded(Event, frozen=True, kw_only=True):
    """The question is over: the call runs now, or never will. `scope` says whether the approval stands for later calls too."""

    approval_id: str
    call_id: str
    name: str
    outcome: Literal["approved", "denied", "lapsed", "withdrawn"]
    by: Literal["", "voice", "click"] = ""
    scope: Literal["once", "arguments", "function"] = "once"


@event("approval.standing", writer="tools")
class ApprovalStanding(Event, frozen=True, kw_only=True):
    """A fact of the account: calls of this function, or only those with these arguments, are approved from now on, or are not any more.

    `definition` is the digest of the function as it was approved: one that has changed since is asked about again.
    """

    name: str
    arguments: dict[str, Any] | None = None
    definition: str = ""
    granted: bool = True


@event("tool.undoable", writer="tools")
class ToolUndoable(Event, frozen=True, kw_only=True):
    """A fact of the account: what this call of the session `sid` did can be taken back for a day; `data` is what its undo is given."""

    sid: str
    call_id: str
    function: str
    data: dict[str, Any]


@event("tool.undone", writer="tools")
class ToolUndone(Event, frozen=True, kw_only=True):
    """A fact of the account: what this call did was taken back, by the call `by`, which is a session and a call id."""

    sid: str
    call_id: str
    function: str
    by: str


@event("note.forgotten", writer="tools")
class NoteForgotten(Event, frozen=True, kw_only=True):
    """The user took back what was to be remembered."""

    note_id: str
    account: str


@event("note.remembered", writer="tools")
class NoteRemembered(Event, frozen=True, kw_only=True):
    """The user asked for this to be remembered."""

    note_id: str
    account: str
    text: str


@event("run.started", writer="tools", visible=True)
class RunStarted(Event, frozen=True, kw_only=True):
    """A run of a macro or a workflow began its first of `steps` steps."""

    run_id: str
    name: str
    kind: Literal["macro", "workflow"]
    steps: int
    inputs: dict[str, Any]


@event("run.step_started", writer="tools", visible=True)
class RunStepStarted(Event, frozen=True, kw_only=True):
    """An attempt of a step began. `step` is its path within the run, `target` the function or macro that it runs."""

    run_id: str
    step: str
    attempt: int
    action: str
    target: str = ""
    given: str = ""
    """Arguments of its call, with the values of its pipes, as JSON; cut after 1,000 characters."""


@event("run.step_completed", writer="tools", visible=True)
class RunStepCompleted(Event, frozen=True, kw_only=True):
    """The step ended well. `spoken` is what it says to the user, `result` the beginning of its result as JSON."""

    run_id: str
    step: str
    attempt: int
    spoken: str = ""
    result: str = ""


@event("run.step_failed", writer="tools", visible=True)
class RunStepFailed(Event, frozen=True, kw_only=True):
    """The attempt failed, or was cut off; `known` is false where it may have taken effect all the same."""

    run_id: str
    step: str
    attempt: int
    error: Failure
    known: bool = True


@event("run.step_skipped", writer="tools", visible=True)
class RunStepSkipped(Event, frozen=True, kw_only=True):
    """The step was left out, since its condition does not hold."""

    run_id: str
    step: str


class HandlerLine(msgspec.Struct, frozen=True, kw_only=True):
    """A line that a handler wrote on its console, with its level, such as `warn`."""

    level: str
    text: str


@event("handler.logged", writer="tools")
class HandlerLogged(Event, frozen=True, kw_only=True):
    """The console of a handler in a call: its first lines, without the values of secrets, and how many were dropped."""

    call_id: str
    name: str
    lines: tuple[HandlerLine, ...]
    dropped: int = 0


@event("tour.started", writer="tools", visible=True)
class TourStarted(Event, frozen=True, kw_only=True):
    """The user's page shall show a guided tour (`voxbridge.shared.tours.library`). Unless its page was `named`, a page that has a tour of
    its own shows that one."""

    page: str
    tour: dict[str, Any]
    named: bool = False


@event("run.waiting", writer="tools", visible=True)
class RunWaiting(Event, frozen=True, kw_only=True):
    """The run waits: for earlier runs (`queued`), or for a person, who is asked `question` until `expires_ts` (µs)."""

    run_id: str
    name: str
    reason: Literal["queued", "confirm", "ask", "error", "approval", "step"]
    step: str = ""
    question: str = ""
    expires_ts: int | None = None


@event("run.completed", writer="tools", visible=True)
class RunCompleted(Event, frozen=True, kw_only=True):
    """The run ended well, after `ms` milliseconds and `steps` attempts of steps."""

    run_id: str
    name: str
    result: dict[str, Any]
    steps: int
    ms: int


@event("run.failed", writer="tools", visible=True)
class RunFailed(Event, frozen=True, kw_only=True):
    """The run ended at a step that failed, or because its time was over."""

    run_id: str
    name: str
    error: Failure
    step: str
    ms: int


@event("run.cancelled", writer="tools", visible=True)
class RunCancelled(Event, frozen=True, kw_only=True):
    """The run was cancelled, or was not confirmed."""

    run_id: str
    name: str
    reason: str
    ms: int


@event("macro.saved", writer="tools")
class MacroSaved(Event, frozen=True, kw_only=True):
    """A macro was made, or replaced. `document` is all of it (`voxbridge.services.tools.runs.document`)."""

    macro_id: str
    account: str
    document: dict[str, Any]
    fresh: bool = False
    """True for one that may take no other's place: where two of one name are made at a time, the first one counts."""


@event("macro.deleted", writer="tools")
class MacroDeleted(Event, frozen=True, kw_only=True):
    """A macro was deleted."""

    macro_id: str
    account: str
    name: str
