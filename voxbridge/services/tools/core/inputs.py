"""Inputs of the tools core, beside events of the log: calls, cancellations, answers to approvals, and the session's end."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from voxbridge.services.tools.runs.inputs import Start
from voxbridge.shared.agents.functions import Approval, Effect
from voxbridge.shared.events.voice import Failure

Mode = Literal["call", "task", "alarm", "run"]
"""Ways to answer a call: with its result (`call`); at once, with its result later (`task`); at once, with an announcement at a later
time (`alarm`); at once, with the result of a macro or a workflow later (`run`)."""


class TaskEnd(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The end of a task that outlives its session: the event that tells it, as builtins, its time (µs) and whose it is."""

    task_id: str
    function: str
    account: str
    kind: str
    data: dict[str, Any]
    ended_at: int


class Alarm(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The return value of an alarm function: when to speak (ms after the call) and what to say; `spoken` answers the call itself."""

    after_ms: int
    announce: str
    spoken: str
    label: str = ""
    result: dict[str, Any] = {}


class Reversible(msgspec.Struct, frozen=True, kw_only=True):
    """The return value of a function whose effect can be taken back: its result, and what its undo is given then."""

    result: dict[str, Any]
    undo: dict[str, Any]


class UndoEntry(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A call whose effect can be taken back: `data` is what the undo of its function is given, `run` the run whose step it was."""

    call_id: str
    function: str
    account: str
    ended_at: int
    data: dict[str, Any]
    run: str = ""


class Proposal(msgspec.Struct, frozen=True, kw_only=True):
    """The return value of a function that asks a person first: the question, and the arguments with which it runs after a yes."""

    arguments: dict[str, Any]
    question: str
    topic: str = ""
    """Thing that is asked about: a newer proposal of the function takes the place of an older one about the same."""


class Target(msgspec.Struct, frozen=True):
    """A function and its arguments."""

    name: str
    arguments: dict[str, Any]


class Accepted(msgspec.Struct, frozen=True, kw_only=True, tag="accepted", omit_defaults=True):
    """The catalogue knows the function and its arguments are valid. `target` is what runs, where it is not the called function itself.

    A journal older than effects has none: its calls end with their reply, as those of functions that only read.
    """

    call_id: str
    mode: Mode
    timeout_ms: int
    idempotent: bool
    effect: Effect = "read"
    approval: Approval = "never"
    """Need for a person's approval of the call: `never` also where the account has approved it before."""

    outlives: bool = False
    """True for a task that the end of its session does not end."""

    counted: bool = False
    """True for a task that counts among those of its account until it ends."""

    begins: str = ""
    """Sentence with which a task answers its call; empty: the usual one."""

    target: Target | None = None
    definition: str = ""
    """Digest of what a person approves, if one must: the function, or the macro, as it is now."""

    start: Start | None = None
    """Document and inputs of a call with the mode `run`."""

    by_turn: bool = False
    """True if a later turn of the user that asks for the same is a call of its own; False in journals from before there was that rule."""


class Rejected(msgspec.Struct, frozen=True, kw_only=True, tag="rejected"):
    """The call cannot be run."""

    call_id: str
    error: Failure


class Returned(msgspec.Struct, frozen=True, kw_only=True, tag="returned"):
    """The effect ended with a result: JSON, within the limit."""

    call_id: str
    attempt: int
    result: dict[str, Any]
    undo: dict[str, Any] | None = None
    """Data for its undo, if the effect can be taken back."""


class Scheduled(msgspec.Struct, frozen=True, kw_only=True, tag="scheduled"):
    """An alarm function returned its alarm."""

    call_id: str
    attempt: int
    alarm: Alarm
    undo: dict[str, Any] | None = None
    """Data for its undo, if the alarm can be taken back."""


class Proposed(msgspec.Struct, frozen=True, kw_only=True, tag="proposed"):
    """The function returned a proposal: a person is asked before it does anything."""

    call_id: str
    attempt: int
    proposal: Proposal


class Raised(msgspec.Struct, frozen=True, kw_only=True, tag="raised"):
    """The effect failed or was cancelled."""

    call_id: str
    attempt: int
    error: Failure


class Progressed(msgspec.Struct, frozen=True, kw_only=True, tag="progressed"):
    """A running task reports its progress, from 0 to 1; without `done`, it has something to tell and is where it was."""

    call_id: str
    attempt: int
    done: float | None
    message: str


class CallBegun(msgspec.Struct, frozen=True, kw_only=True, tag="call_begun"):
    """A running task begins a call of another function in its session, with what its own caller may call."""

    call_id: str
    attempt: int
    name: str
    arguments: dict[str, Any]


class Stated(msgspec.Struct, frozen=True, kw_only=True, tag="stated"):
    """A running function records an event of this writer, given as builtins."""

    call_id: str
    attempt: int
    kind: str
    data: dict[str, Any]


class TaskRefused(msgspec.Struct, frozen=True, kw_only=True, tag="task_refused"):
    """A running function, by order of the user, cancels another task of the session."""

    call_id: str
    attempt: int
    task_id: str


class Fact(msgspec.Struct, frozen=True, kw_only=True, tag="fact"):
    """A fact of an account, to be recorded in its own log, given as builtins; with a `key` once, however often it comes."""

    kind: str
    data: dict[str, Any]
    key: str = ""


class Unheard(msgspec.Struct, frozen=True, kw_only=True, tag="unheard"):
    """An end that the session `sid` did not tell, for the log of its account."""

    sid: str
    end: TaskEnd


class Wanted(msgspec.Struct, frozen=True, kw_only=True, tag="wanted"):
    """The session `sid` can tell the ends of these tasks of its account now."""

    sid: str
    tasks: tuple[str, ...]


class Recalled(msgspec.Struct, frozen=True, kw_only=True, tag="recalled"):
    """Ends of tasks of earlier sessions that the account gives to this one."""

    ends: tuple[TaskEnd, ...]


class Passed(msgspec.Struct, frozen=True, kw_only=True, tag="passed"):
    """The log of the account has the end of this task, which the session did not tell."""

    task_id: str


class Undoable(msgspec.Struct, frozen=True, kw_only=True, tag="undoable"):
    """A call of the session `sid`, for the log of its account, which lists what can be taken back."""

    sid: str
    entry: UndoEntry


class UndoKept(msgspec.Struct, frozen=True, kw_only=True, tag="undo_kept"):
    """The log of the account lists this call of the session."""

    call_id: str


class UndoWanted(msgspec.Struct, frozen=True, kw_only=True, tag="undo_wanted", omit_defaults=True):
    """The call `by` of the session `sid` is to take back the call `call_id`, or the last one where none is named."""

    sid: str
    by: str
    call_id: str = ""


class UndoEnded(msgspec.Struct, frozen=True, kw_only=True, tag="undo_ended"):
    """The call `call_id` of the session `sid` was taken back, or could not be (`done` is false) and still can be later."""

    sid: str
    call_id: str
    by: str
    done: bool


class TaskOpened(msgspec.Struct, frozen=True, kw_only=True, tag="task_opened", omit_defaults=True):
    """A task of the account is to begin: `task` is its session and its call. One that cannot be refused any more is `forced`, and one that
    takes up no room (a timer) is only `listed`."""

    task: str
    forced: bool = False
    listed: bool = False


class TaskOver(msgspec.Struct, frozen=True, kw_only=True, tag="task_over"):
    """Task that is over, or never began."""

    task: str


class Counted(msgspec.Struct, frozen=True, kw_only=True, tag="counted"):
    """The account counts a call that was approved as one of its tasks, or has no `room` for it."""

    call_id: str
    account: str
    room: bool


class TaskUnwanted(msgspec.Struct, frozen=True, kw_only=True, tag="task_unwanted"):
    """The user cancels a task of this session from another one."""

    task_id: str


class TimerFired(msgspec.Struct, frozen=True, kw_only=True, tag="timer"):
    """The timer of a call fired."""

    call_id: str


class Faulted(msgspec.Struct, frozen=True, kw_only=True, tag="faulted", omit_defaults=True):
    """An input about a call could not be taken. `name`, `seq` and `account` are those of the call's event, for one that was not opened."""

    call_id: str
    error: Failure
    name: str = ""
    seq: int = 0
    account: str = ""


Reported = Progressed | CallBegun | Stated | TaskRefused
"""Report of a function that runs."""

CallInput = Accepted | Rejected | Returned | Scheduled | Proposed | Raised | Reported | Counted | TimerFired
"""Inputs about one call."""

EndInput = Unheard | Wanted | Recalled | Passed
"""Inputs about ends of tasks that outlived their session."""

UndoInput = Undoable | UndoKept | UndoWanted | UndoEnded
"""Inputs about calls that can be taken back."""

AccountInput = TaskOpened | TaskOver
"""Inputs about the tasks that an account has open."""

Input = CallInput | EndInput | UndoInput | AccountInput | TaskUnwanted | Fact | Faulted
