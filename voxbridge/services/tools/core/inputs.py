"""Inputs of the tools core, beside events of the log: calls, cancellations, answers to approvals, and the session's end."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from voxbridge.services.tools.runs.inputs import Start
from voxbridge.shared.agents.functions import Approval, Effect
from voxbridge.shared.events.voice import Failure

Mode = Literal["call", "task", "alarm", "run"]
"""How a function is answered: with its result (`call`); at once, with its result later (`task`); at once, with an announcement at a later
time (`alarm`); at once, with the result of a macro or a workflow later (`run`)."""


class Alarm(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The return value of an alarm function: when to speak (ms after the call) and what to say; `spoken` answers the call itself."""

    after_ms: int
    announce: str
    spoken: str
    label: str = ""
    result: dict[str, Any] = {}


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
    """When a person must approve the call: `never` also where the account has approved it before."""

    target: Target | None = None
    definition: str = ""
    """Digest of what a person approves, if one must: the function, or the macro, as it is now."""

    start: Start | None = None
    """Document and inputs of a call with the mode `run`."""


class Rejected(msgspec.Struct, frozen=True, kw_only=True, tag="rejected"):
    """The call cannot be run."""

    call_id: str
    error: Failure


class Returned(msgspec.Struct, frozen=True, kw_only=True, tag="returned"):
    """The effect ended with a result: JSON, within the limit."""

    call_id: str
    attempt: int
    result: dict[str, Any]


class Scheduled(msgspec.Struct, frozen=True, kw_only=True, tag="scheduled"):
    """An alarm function returned its alarm."""

    call_id: str
    attempt: int
    alarm: Alarm


class Raised(msgspec.Struct, frozen=True, kw_only=True, tag="raised"):
    """The effect failed or was cancelled."""

    call_id: str
    attempt: int
    error: Failure


class Progressed(msgspec.Struct, frozen=True, kw_only=True, tag="progressed"):
    """A running task reports its progress, from 0 to 1."""

    call_id: str
    attempt: int
    done: float
    message: str


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
    """A fact of an account, to be recorded in its own log, given as builtins."""

    kind: str
    data: dict[str, Any]


class TimerFired(msgspec.Struct, frozen=True, kw_only=True, tag="timer"):
    """The timer of a call fired."""

    call_id: str


Input = Accepted | Rejected | Returned | Scheduled | Raised | Progressed | Stated | TaskRefused | TimerFired | Fact
