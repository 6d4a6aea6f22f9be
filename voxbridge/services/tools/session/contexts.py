"""The context of each call: what its function may use, bound to its session and its attempt."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import msgspec

from voxbridge.services.tools.context import Context, InChild
from voxbridge.services.tools.core.inputs import Fact, Input, Progressed, Stated, TaskRefused
from voxbridge.services.tools.core.outputs import StartEffect
from voxbridge.services.tools.core.state import Running
from voxbridge.services.tools.core.tasks import open_tasks
from voxbridge.services.tools.projection import Notes
from voxbridge.services.tools.registry import Tool
from voxbridge.services.tools.session import history
from voxbridge.services.tools.session.library import Library
from voxbridge.services.tools.session.session import WRITER, Session
from voxbridge.services.tools.session.standing import Standing
from voxbridge.shared import events
from voxbridge.shared.errors import Code, VoxbridgeError
from voxbridge.shared.fetch import Fetcher
from voxbridge.shared.store.store import Store
from voxbridge.shared.workspace import Workspace


@dataclass(frozen=True, slots=True, kw_only=True)
class Facilities:
    """Parts of the executor that functions use, the same for every call."""

    store: Store
    notes: Notes
    workspace: Workspace
    playbooks_dir: Path
    in_child: InChild
    fetcher: Fetcher
    tools: Mapping[str, Tool]
    keep: Callable[[str, events.Event], Awaitable[None]]
    """Record a fact in the own log of an account."""

    approvals: Callable[[str], Awaitable[Standing]]
    """Read the standing approvals of an account."""

    library: Library


def fact(event: events.Event) -> Fact:
    """Return the input that records a fact of an account. Raises ValueError for an event that a function cannot state."""
    kind = events.kind_of(event)
    if kind.writer != WRITER or kind.visible:
        raise ValueError(f"a function cannot state {kind.name}")
    return Fact(kind=kind.name, data=msgspec.to_builtins(event))


def context_of(session: Session, effect: StartEffect, facilities: Facilities, *, now: int) -> Context:
    """Return the context of an attempt that begins at `now` (µs)."""
    call_id, attempt = effect.call_id, effect.attempt

    async def say(input: Input) -> None:
        await session.take(input)
        call = session.state.open.get(call_id)
        if call is None or not isinstance(call.phase, Running) or call.phase.attempt != attempt:
            raise VoxbridgeError(Code.CANCELLED, f"The call of {effect.name} is over.", retryable=False)

    async def emit(event: events.Event) -> None:
        stated = fact(event)
        await say(Stated(call_id=call_id, attempt=attempt, kind=stated.kind, data=stated.data))

    async def progress(done: float, message: str) -> None:
        await say(Progressed(call_id=call_id, attempt=attempt, done=done, message=message))

    async def keep(event: events.Event) -> None:
        await facilities.keep(effect.account, event)

    async def cancel_task(task: str) -> None:
        await say(TaskRefused(call_id=call_id, attempt=attempt, task_id=task))

    return Context(
        account=effect.account,
        sid=session.sid,
        call_id=call_id,
        attempt=attempt,
        now=now,
        store=facilities.store,
        notes=facilities.notes,
        workspace=facilities.workspace,
        playbooks_dir=facilities.playbooks_dir,
        emit=emit,
        progress=progress,
        in_child=facilities.in_child,
        fetcher=facilities.fetcher,
        catalogue=lambda: [tool.card() for tool in facilities.tools.values()],
        tasks=lambda: open_tasks(session.state, but=call_id),
        cancel_task=cancel_task,
        keep=keep,
        approvals=lambda: facilities.approvals(effect.account),
        documents=lambda kind: facilities.library.of(effect.account, kind),
        done=lambda: history.done(facilities.library.log, session.sid, facilities.tools, now=now),
    )
