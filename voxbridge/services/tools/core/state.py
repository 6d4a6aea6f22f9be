"""State of the calls and tasks of one session. Times are µs of the Unix clock."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from voxbridge.services.tools.core.inputs import Alarm, Mode, Target
from voxbridge.services.tools.runs.inputs import Start
from voxbridge.services.tools.runs.state import Runs
from voxbridge.shared.agents.functions import Approval, Effect


class Waiting(msgspec.Struct, frozen=True, tag=True):
    """The function is looked up."""


class Asking(msgspec.Struct, frozen=True, tag=True):
    """A person is asked to approve the call, until `expires_at`."""

    expires_at: int


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


Phase = Waiting | Asking | Running | Scheduled | Joined | Following


class Rules(msgspec.Struct, frozen=True, kw_only=True):
    """The rules of a call's function, known once it is looked up."""

    mode: Mode = "call"
    timeout_ms: int = 0
    idempotent: bool = False
    effect: Effect = "read"
    approval: Approval = "never"
    definition: str = ""
    """Digest of what a person is asked to approve."""

    start: Start | None = None
    """The document that the call runs, for the mode `run`."""


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
    phase: Phase = Waiting()
    rules: Rules = Rules()
    answered: bool = False
    """True once the caller has an answer while the work goes on: the call ends as a task."""

    started: bool = False
    """True once `task.started` was recorded."""

    run: str = ""
    """Id of the run that made this call as one of its steps; its end is told to the run alone. `seq` is then that of the run's own call."""

    progress: tuple[float, str] = (0.0, "")
    """Progress that its task reported last, from 0 to 1, and the words with it."""


class Recent(msgspec.Struct, frozen=True, kw_only=True):
    """A call that ended well a short while ago, for callers that make it again."""

    target: Target
    ended_at: int
    result: dict[str, Any]


class State(msgspec.Struct, frozen=True, kw_only=True):
    """Open calls by id, the log positions of ended calls by id, cancellations that came before their call, and the newest results of calls
    that may have changed something, and the runs of macros and workflows."""

    open: Mapping[str, Call] = {}
    ended: Mapping[str, int] = {}
    withdrawn: Mapping[str, str] = {}
    recent: Mapping[str, Recent] = {}
    runs: Runs = Runs()
