"""The context of a function call: account, time, the store, the notes, and callbacks for events and progress."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:  # avoids these imports when a pack is loaded
    from voxbridge.services.tools.projection import Notes
    from voxbridge.services.tools.runs.document import Document
    from voxbridge.services.tools.runs.draft import Past
    from voxbridge.services.tools.runs.inputs import Kind
    from voxbridge.shared import events
    from voxbridge.shared.agents.functions import Function
    from voxbridge.shared.agents.tasks import OpenTasks
    from voxbridge.shared.child_sessions import Card, Put
    from voxbridge.shared.errors import VoxbridgeError
    from voxbridge.shared.events.tools import ApprovalStanding
    from voxbridge.shared.fetch import Fetcher
    from voxbridge.shared.knowledge import Asks
    from voxbridge.shared.store.store import Store
    from voxbridge.shared.terminals.client import Asks as AsksTerminals
    from voxbridge.shared.workspace import Workspace


class InChild(Protocol):
    """A way to run a worker in a child process (`voxbridge.services.tools.registry.worker`)."""

    async def __call__(self, worker: Callable[..., Any], **arguments: Any) -> dict[str, Any]:
        """Return the worker's result.

        Raises its error, `TIMED_OUT` and `TOO_LARGE` beyond its limits, `INTERRUPTED` when the process was lost.
        """


class ChildSessions(Protocol):
    """Sessions of agents that a function may ask for (`voxbridge.services.tools.session.child_sessions`)."""

    async def cards(self) -> tuple[Card, ...]:
        """Return the agents of the installation. Raises `UNAVAILABLE`."""

    async def answer(self, put: Put, calls: Callable[[str, int], Awaitable[None]]) -> str:
        """Put a text into a child session, and return what it answers; `calls` is told of the functions that it calls."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Undone:
    """The outcome of an undo: ids of the calls that were taken back, the newest first, with what each undo says; and the error that kept
    it from going on."""

    calls: tuple[str, ...] = ()
    spoken: tuple[str, ...] = ()
    error: VoxbridgeError | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """The context passed to a function with a parameter annotated `Context`. `now` is the time this attempt began, in µs (Unix clock)."""

    account: str
    allowed: Collection[str] | None
    """Functions that the caller may call, where the call makes a macro; None stands for all."""

    sid: str
    call_id: str
    attempt: int
    now: int
    time_zone: str
    """Time zone of the caller, or else of the installation, by its IANA name."""

    store: Store
    notes: Notes
    workspace: Workspace
    """Folders of files that functions may use. Its methods block: call them with `asyncio.to_thread`."""

    playbooks_dir: Path
    """Folder of the installation's playbooks."""

    tours_dir: Path
    """Folder of the installation's guided tours."""

    emit: Callable[[events.Event], Awaitable[None]]
    """Record an event (of voxbridge/shared/events/tools.py). Returns once the log has it; raises `CANCELLED` when the call is over."""

    progress: Callable[[float, str], Awaitable[None]]
    """Report the progress of an async function, from 0 to 1, with a few words; raises as `emit` does."""

    tell: Callable[[str], Awaitable[None]]
    """Have the agent tell the user a sentence when nobody speaks, while an async function goes on; raises as `emit` does."""

    begin: Callable[[str, dict[str, Any]], Awaitable[None]]
    """Have an async function begin a call of another function, of which nobody waits for the answer: for a question that is then asked. The
    caller must be allowed to call it; raises as `emit` does."""

    in_child: InChild
    """Run a worker in a process that is killed at its timeout."""

    knowledge: Asks
    """Ask the knowledge service."""

    terminals: AsksTerminals
    """Ask the terminals service of this host."""

    children: ChildSessions
    """Ask agents that work in sessions of their own."""

    fetcher: Fetcher
    """Fetch URLs that a model, a user or a page named."""

    catalogue: Callable[[], Sequence[Function]]
    """Return all functions of the installation."""

    tasks: Callable[[], Awaitable[OpenTasks]]
    """Return the tasks of the session that are not over, the caller's own left out, and those of the account's other sessions, as far as
    they could be read."""

    cancel_task: Callable[[str, str], Awaitable[None]]
    """Cancel a task, because the user said so, by its id and its session; empty: this one. Returns once the log has it."""

    undo: Callable[[str], Awaitable[Undone]]
    """Take back what the named call did, or the last one of the account that can be taken back. Returns once the log has it."""

    keep: Callable[[events.Event], Awaitable[None]]
    """Record an event in the account's own log, which has no age. Returns once the log has it."""

    approvals: Callable[[], Awaitable[Iterable[ApprovalStanding]]]
    """Return the standing approvals of the account."""

    documents: Callable[[Kind], Awaitable[Mapping[str, Document]]]
    """Return the macros of the account by their ids, or the workflows of the installation by name."""

    done: Callable[[], Awaitable[Sequence[Past]]]
    """Return the calls that were made in the session a short while ago."""
