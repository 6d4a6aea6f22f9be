"""State of the calls and tasks of one session. Times are µs of the Unix clock."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from voxbridge.services.tools.core.inputs import Alarm, Mode, Target, TaskEnd, UndoEntry
from voxbridge.services.tools.core.outputs import Grant
from voxbridge.services.tools.runs.inputs import Start
from voxbridge.services.tools.runs.state import Runs
from voxbridge.shared.agents.functions import Approval, Effect
from voxbridge.shared.events.voice import Failure


class Waiting(msgspec.Struct, frozen=True, tag=True):
    """The function is looked up."""


class Asking(msgspec.Struct, frozen=True, tag=True):
    """A person is asked to approve the call, until `expires_at`."""

    expires_at: int
    question: str = ""
    """Question of a function that proposes what it would do; empty where the call is asked about as such."""

    attempt: int = 0
    """Attempt in which the function made its proposal."""

    topic: str = ""


class Approved(msgspec.Struct, frozen=True, tag=True):
    """A person said yes; the account is asked whether it has room for one more task. `attempt` is that of a proposal, else 0."""

    attempt: int = 0


class Running(msgspec.Struct, frozen=True, tag=True):
    """The function runs. `cancelled` is the reason why it is being stopped, if it is."""

    attempt: int
    started_at: int
    ends_at: int
    cancelled: str = ""


class Scheduled(msgspec.Struct, frozen=True, tag=True):
    """An alarm is set."""

    at: int
    alarm: Alarm


class Joined(msgspec.Struct, frozen=True, tag=True):
    """Another call of the same function with the same arguments is open: its end is the end of this one."""

    first: str


class Following(msgspec.Struct, frozen=True, tag=True):
    """A macro or a workflow runs under the id of the call; its steps are calls of their own."""


Phase = Waiting | Asking | Approved | Running | Scheduled | Joined | Following


class Rules(msgspec.Struct, frozen=True, kw_only=True):
    """The rules of a call's function, known once it is looked up."""

    mode: Mode = "call"
    timeout_ms: int = 0
    idempotent: bool = False
    effect: Effect = "read"
    approval: Approval = "never"
    outlives: bool = False
    counted: bool = False
    begins: str = ""
    definition: str = ""
    """Digest of what a person is asked to approve."""

    start: Start | None = None
    """The document that the call runs, for the mode `run`."""

    by_turn: bool = False
    """True if a later turn of the user that asks for the same is a call of its own; False in journals from before there was that rule."""


class Call(msgspec.Struct, frozen=True, kw_only=True):
    """An open call."""

    id: str
    seq: int
    name: str
    target: Target
    """Function that runs: the called one itself, or the one that `run_tool` names."""

    called_at: int
    deadline_ms: int
    account: str = ""
    allowed: tuple[str, ...] | None = None
    """Functions that its caller may call; None stands for all."""

    time_zone: str = ""
    """Time zone of its caller; empty: the installation's."""

    unattended: bool = False
    """True where nobody can be asked to approve it: the session is one that a function asked for."""

    turn: int = 0
    """Number of the user's turn that asked for it; 0 if none did."""

    by_program: bool = False
    """True for a request over REST: a program says itself what is a repetition, by its key, and that one has the same id."""

    phase: Phase = Waiting()
    rules: Rules = Rules()
    answered: bool = False
    """True once the caller has an answer while the work goes on: the call ends as a task."""

    started: bool = False
    """True once `task.started` was recorded."""

    run: str = ""
    """Id of the run that made this call as one of its steps; its end is told to the run alone. `seq` is then that of the run's own call."""

    begun: int = 0
    """Number of the calls that its task has begun."""

    progress: tuple[float, str] = (0.0, "")
    """Progress that its task reported last, from 0 to 1, and the words with it."""


class Recent(msgspec.Struct, frozen=True, kw_only=True):
    """A call that may have changed something and ended a short while ago, for callers that made it again."""

    target: Target
    ended_at: int
    turn: int = 0
    """Number of the user's turn that asked for it; 0 if none did."""

    result: dict[str, Any] | None = None
    failure: Failure | None = None
    """Its error, of a run alone. Without a result and an error it is not known what happened."""

    kept: bool = True
    """True where a call that was made after the end gets the result, too, for a short while."""


class Given(msgspec.Struct, frozen=True):
    """An end that an account gave to the session `sid`, to be told there."""

    sid: str
    end: TaskEnd


class Undo(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A call of the account that can be taken back, or was (`done`), by the call `by`."""

    sid: str
    call_id: str
    function: str
    ended_at: int
    run: str = ""
    by: str = ""
    done: bool = False


class State(msgspec.Struct, frozen=True, kw_only=True):
    """Open calls by id, the log positions of ended calls by id, cancellations that came before their call, and the newest outcomes of
    calls that may have changed something, and the runs of macros and workflows."""

    open: Mapping[str, Call] = {}
    ended: Mapping[str, int] = {}
    withdrawn: Mapping[str, str] = {}
    recent: Mapping[str, Recent] = {}
    runs: Runs = Runs()
    over: bool = False
    """True once the session has ended; tasks that outlive it go on."""

    unheard: Mapping[str, TaskEnd] = {}
    """Ends of tasks that outlive their session, by task: those that this session is not known to have told, or, in the log of an account,
    those that no session was given."""

    given: Mapping[str, Given] = {}
    """Ends that the account gave to sessions, by task."""

    tasks: Mapping[str, int] = {}
    """Open tasks of an account in all its sessions, with the times at which they were to begin."""

    timers: Mapping[str, int] = {}
    """Timers of an account in all its sessions, listed like its tasks; they take up no room among them."""

    unkept: Mapping[str, UndoEntry] = {}
    """Calls of this session that can be taken back, of which the log of the account is not known to have been told."""

    undoable: Mapping[str, Undo] = {}
    """Newest calls of an account that can be taken back, or were, by session and call; oldest first."""

    granted: Mapping[str, Grant] = {}
    """Newest standing approvals that were given here, by the id of the approval: the log of the account may not have them yet."""

    facts: Mapping[str, None] = {}
    """Keys of the newest facts that this log of an account has."""
