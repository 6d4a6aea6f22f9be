"""State of runs. Times are µs of the Unix clock."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from voxbridge.services.tools.runs.document import Document, Step
from voxbridge.services.tools.runs.inputs import Kind, Start
from voxbridge.services.tools.runs.pipes import Outcome
from voxbridge.shared.events.voice import Failure


class Ready(msgspec.Struct, frozen=True, tag=True):
    """The step that is reached is to be begun. No run rests in it."""


class Confirming(msgspec.Struct, frozen=True, tag=True):
    """A person is asked whether the run may begin."""

    expires_at: int


class Calling(msgspec.Struct, frozen=True, tag=True):
    """A call runs. `held` is the question, while it waits for a person's approval."""

    call_id: str
    function: str
    arguments: dict[str, Any]
    timeout_s: float | None = None
    held: str = ""


class Waiting(msgspec.Struct, frozen=True, tag=True):
    """A `wait` step passes its time."""

    until: int


class Asking(msgspec.Struct, frozen=True, tag=True):
    """The user is asked by an `ask` step."""

    question: str
    expires_at: int
    since: int = 0


class Pausing(msgspec.Struct, frozen=True, tag=True):
    """A failed step is tried again after a pause."""

    until: int


class Deciding(msgspec.Struct, frozen=True, tag=True):
    """The user is asked how to go on after a failed step."""

    error: Failure
    known: bool
    question: str
    expires_at: int
    since: int = 0


class Stepping(msgspec.Struct, frozen=True, tag=True):
    """The user is asked whether the next step may begin."""

    question: str
    expires_at: int
    since: int = 0


class Stopping(msgspec.Struct, frozen=True, tag=True):
    """The run ends once its call has: as failed with `error`, or as cancelled."""

    call_id: str
    until: int
    reason: str
    error: Failure | None = None
    held: str = ""


Phase = Ready | Confirming | Calling | Waiting | Asking | Pausing | Deciding | Stepping | Stopping


class Frame(msgspec.Struct, frozen=True, kw_only=True):
    """A document that is run: the started one, or one that a step of the frame before it runs."""

    document: Document
    inputs: Mapping[str, Any]
    prefix: str = ""
    """Path of the step that runs this document, with its attempt: `outer.1.`; empty for the started one."""

    at: int = 0
    attempt: int = 0
    """Attempts of the step at `at` so far."""

    substituted: bool = False
    """True once the step's fallback is run in its place."""

    allowed: bool = False
    """True once the user said that the step at `at` may begin, where the run goes step by step."""

    steps: Mapping[str, Outcome] = {}
    last: str = ""

    @property
    def step(self) -> Step:
        """The step that is reached."""
        return self.document.steps[self.at]

    @property
    def path(self) -> str:
        """Path of the step that is reached, unique within the run."""
        return f"{self.prefix}{self.step.id}"


class Run(msgspec.Struct, frozen=True, kw_only=True):
    """A run that is not over. The last frame is the one whose steps are run now."""

    id: str
    kind: Kind
    frames: tuple[Frame, ...]
    macros: Mapping[str, Document]
    phase: Phase
    started_at: int
    ends_at: int
    count: int = 0
    """Attempts of steps so far, of all documents."""

    kept: int = 0
    """Bytes of the results so far, as JSON."""

    said: tuple[str, ...] = ()
    """Texts that its steps said."""

    stepwise: bool = False
    """The user is asked before each step."""

    @property
    def name(self) -> str:
        """Name of the document that was started."""
        return self.frames[0].document.name

    @property
    def frame(self) -> Frame:
        """The frame whose steps are run now."""
        return self.frames[-1]

    @property
    def due(self) -> int:
        """Time at which its timer must fire. The time that a person takes to answer does not count as the run's."""
        match self.phase:
            case Confirming(expires_at=at) | Stopping(until=at) | Asking(expires_at=at) | Deciding(expires_at=at) | Stepping(expires_at=at):
                return at
            case Waiting(until=at) | Pausing(until=at):
                return min(at, self.ends_at)
            case Calling() | Ready():
                return self.ends_at

    @property
    def is_open(self) -> bool:
        """True while an attempt of the step that is reached has begun and not ended."""
        return isinstance(self.phase, Calling | Waiting | Asking | Stopping)


class Queued(msgspec.Struct, frozen=True):
    """A start that waits for runs of the same document to end."""

    start: Start
    since: int


class Runs(msgspec.Struct, frozen=True, kw_only=True):
    """Open runs by id, starts that wait, in order, and the ids of ended runs."""

    open: Mapping[str, Run] = {}
    queue: tuple[Queued, ...] = ()
    ended: tuple[str, ...] = ()
