"""The context of each call: what its function may use, bound to its session and its attempt."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import msgspec

from voxbridge.services.tools import zones
from voxbridge.services.tools.context import ChildSessions, Context, InChild, Undone
from voxbridge.services.tools.core.inputs import CallBegun, Fact, Input, Progressed, Stated, TaskRefused
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
from voxbridge.shared.agents.tasks import OpenTasks
from voxbridge.shared.errors import Code, VoxbridgeError
from voxbridge.shared.fetch import Fetcher
from voxbridge.shared.knowledge import Asks
from voxbridge.shared.store.store import Store
from voxbridge.shared.terminals.client import Asks as AsksTerminals
from voxbridge.shared.workspace import Workspace


@dataclass(frozen=True, slots=True, kw_only=True)
class Facilities:
    """Parts of the executor that functions use, the same for every call."""

    time_zone: str
    """Time zone of the installation."""

    store: Store
    notes: Notes
    workspace: Workspace
    playbooks_dir: Path
    tours_dir: Path
    in_child: InChild
    fetcher: Fetcher
    knowledge: Asks
    terminals: AsksTerminals
    children: ChildSessions
    tools: Mapping[str, Tool]
    keep: Callable[[str, events.Event], Awaitable[None]]
    """Record a fact in the own log of an account."""

    approvals: Callable[[str], Awaitable[Standing]]
    """Read the standing approvals of an account."""

    library: Library

    tasks: Callable[[str, str], Awaitable[OpenTasks]]
    """Read the open tasks of an account in its other sessions."""

    unwanted: Callable[[str, str, str], Awaitable[None]]
    """Cancel a task of an account, by its session and its id."""

    undo: Callable[[Context, str], Awaitable[Undone]]
    """Take back what a call did, or the last one."""


TELL_LIMIT: Final = 500
"""Characters that a task has the agent say at a time."""

TOLD: Final = frozenset(("tour.started",))
"""Facts that clients are told of; the others are for the services alone."""


def fact(event: events.Event, key: str = "") -> Fact:
    """Return the input that records a fact of an account, once for a `key`. Raises ValueError for an event that a function cannot state."""
    kind = events.kind_of(event)
    if kind.writer != WRITER or (kind.visible and kind.name not in TOLD):
        raise ValueError(f"a function cannot state {kind.name}")
    return Fact(kind=kind.name, data=msgspec.to_builtins(event), key=key)


@dataclass(frozen=True, slots=True)
class _Attempt:
    """Reports of an attempt that runs, each refused once its call is over."""

    session: Session
    effect: StartEffect

    async def say(self, input: Input) -> None:
        await self.session.take(input)
        call = self.session.state.open.get(self.effect.call_id)
        if call is None or not isinstance(call.phase, Running) or call.phase.attempt != self.effect.attempt:
            raise VoxbridgeError(Code.CANCELLED, f"The call of {self.effect.name} is over.", retryable=False)

    async def emit(self, event: events.Event) -> None:
        stated = fact(event)
        await self.say(Stated(call_id=self.effect.call_id, attempt=self.effect.attempt, kind=stated.kind, data=stated.data))

    async def progress(self, done: float | None, message: str) -> None:
        await self.say(Progressed(call_id=self.effect.call_id, attempt=self.effect.attempt, done=done, message=message))

    async def tell(self, message: str) -> None:
        await self.progress(None, message[:TELL_LIMIT])

    async def begin(self, name: str, arguments: dict[str, Any]) -> None:
        await self.say(CallBegun(call_id=self.effect.call_id, attempt=self.effect.attempt, name=name, arguments=arguments))


def context_of(session: Session, effect: StartEffect, facilities: Facilities, *, now: int) -> Context:
    """Return the context of an attempt that begins at `now` (µs)."""
    call_id, attempt = effect.call_id, _Attempt(session, effect)

    async def cancel_task(task: str, sid: str = "") -> None:
        if sid and sid != session.sid:
            await facilities.unwanted(effect.account, sid, task)
        else:
            await attempt.say(TaskRefused(call_id=call_id, attempt=effect.attempt, task_id=task))

    async def tasks() -> OpenTasks:
        others = await facilities.tasks(effect.account, session.sid)
        return msgspec.structs.replace(others, tasks=(*open_tasks(session.state, but=call_id), *others.tasks))

    async def undo(wanted: str) -> Undone:
        return await facilities.undo(context, wanted)

    context = Context(
        account=effect.account,
        allowed=effect.allowed,
        sid=session.sid,
        call_id=call_id,
        attempt=effect.attempt,
        now=now,
        time_zone=zones.chosen(effect.time_zone, facilities.time_zone),
        store=facilities.store,
        notes=facilities.notes,
        workspace=facilities.workspace,
        playbooks_dir=facilities.playbooks_dir,
        tours_dir=facilities.tours_dir,
        emit=attempt.emit,
        progress=attempt.progress,
        tell=attempt.tell,
        begin=attempt.begin,
        in_child=facilities.in_child,
        fetcher=facilities.fetcher,
        knowledge=facilities.knowledge,
        terminals=facilities.terminals,
        children=facilities.children,
        catalogue=lambda: [tool.card() for tool in facilities.tools.values()],
        tasks=tasks,
        cancel_task=cancel_task,
        undo=undo,
        keep=lambda event: facilities.keep(effect.account, event),
        approvals=lambda: facilities.approvals(effect.account),
        documents=lambda kind: facilities.library.of(effect.account, kind),
        done=lambda: history.done(facilities.library.log, session.sid, facilities.tools, now=now),
    )
    return context
