"""The part of an account in the calls of its sessions: what they put into its log, and what it gives them.

Owns the order between the log of a session and that of its account: what is left to do follows again from the session's log after a crash.
Does not own the rules (`voxbridge.services.tools.core`). Keeps nothing that a crash could lose.
"""

from __future__ import annotations

import logging
from typing import Final

import msgspec
from nats.micro.request import Request

from voxbridge.services.tools.core import calls, tasks, undo
from voxbridge.services.tools.core.inputs import (
    Counted,
    Fact,
    Passed,
    Recalled,
    TaskOpened,
    TaskOver,
    Undoable,
    UndoEnded,
    UndoKept,
    UndoWanted,
    Unheard,
    Wanted,
)
from voxbridge.services.tools.core.outputs import Count, Grant, Release, Remember, Tell
from voxbridge.services.tools.core.state import Undo
from voxbridge.services.tools.session.contexts import fact
from voxbridge.services.tools.session.session import Session
from voxbridge.services.tools.session.sessions import Sessions
from voxbridge.shared.agents.tasks import OpenTask, OpenTasks, TasksAsked
from voxbridge.shared.bus import subjects
from voxbridge.shared.errors import VoxbridgeError
from voxbridge.shared.events.tools import ApprovalStanding
from voxbridge.shared.events.voice import TasksWanted

ForAccount = Grant | Tell | Remember | Count | Release
"""Outputs of a session that concern its account."""

SESSIONS_READ: Final = 64
"""Sessions of an account that are read for its tasks; more than it may have tasks, so only timers can be left out."""

_ASKED: Final = msgspec.json.Decoder(TasksAsked)
_log = logging.getLogger(__name__)


class Accounts:
    """The logs of accounts, among the `sessions` of an executor."""

    def __init__(self, sessions: Sessions) -> None:
        self._sessions = sessions

    def of(self, account: str) -> Session:
        """Return the log of an account in this process."""
        return self._sessions.of(subjects.account_log(account))

    async def perform(self, session: Session, output: ForAccount) -> None:
        """Put something of a session into the log of its account. Returns once it is there; raises as `Session.take` does."""
        match output:
            case Grant():
                event = ApprovalStanding(name=output.name, arguments=output.arguments, definition=output.definition)
                await self._put(session, output.account, fact(event, key=f"{session.sid} {output.approval_id}"))
            case Tell(end=end):
                await self.of(end.account).take(Unheard(sid=session.sid, end=end))
                await session.take_within(Passed(task_id=end.task_id))
            case Remember(entry=entry):
                await self._put(session, entry.account, Undoable(sid=session.sid, entry=entry))
                await session.take_within(UndoKept(call_id=entry.call_id))
            case Count():
                await self._count(session, output)
            case Release():
                await self._put(session, output.account, TaskOver(task=_task(session.sid, output.call_id)))

    async def _count(self, session: Session, output: Count) -> None:
        log, task = self.of(output.account), _task(session.sid, output.call_id)
        opened = TaskOpened(task=task, forced=output.forced, listed=output.listed)
        await self._put(session, output.account, opened)
        if not output.forced and not output.listed:
            if task not in log.state.tasks and log is not session:  # another executor may have written since
                await log.refreshed()
                await log.take(opened)
            room = task in log.state.tasks
            await session.take_within(Counted(call_id=output.call_id, account=output.account, room=room))

    async def _put(self, session: Session, account: str, input: Fact | TaskOpened | TaskOver | Undoable) -> None:
        log = self.of(account)
        await (session.take_within(input) if log is session else log.take(input))

    async def recall(self, session: Session, wanted: TasksWanted) -> None:
        """Give ends of tasks to a session that can tell them: first they are the session's in the log of the account, then in its own."""
        await session.opened()
        if session.state.over:
            return
        account = self.of(wanted.account)
        await account.refreshed()  # another executor may have written since
        await account.take(Wanted(sid=session.sid, tasks=wanted.task_ids))
        found = [one for task in wanted.task_ids if (one := account.state.given.get(task)) is not None and one.sid == session.sid]
        if found:
            await session.take(Recalled(ends=tuple(one.end for one in found)))

    async def count(self, account: str, sid: str, call_id: str) -> bool:
        """Count a task of a session among those of its account. Return whether there was room for it."""
        log, task = self.of(account), _task(sid, call_id)
        await log.take(TaskOpened(task=task))
        if task not in log.state.tasks:  # another executor may have written since
            await log.refreshed()
            await log.take(TaskOpened(task=task))
        return task in log.state.tasks

    async def answer(self, request: Request) -> None:
        """Answer a gateway's question for the open tasks in the sessions of an account."""
        try:
            account = _ASKED.decode(request.data).account
            found = await self.tasks(account, subjects.account_log(account))
        except msgspec.DecodeError as error:
            await request.respond_error("INVALID_ARGUMENT", str(error))
        except VoxbridgeError as error:
            await request.respond_error(error.code, error.message)
        else:
            await request.respond(msgspec.json.encode(found))

    async def tasks(self, account: str, sid: str) -> OpenTasks:
        """Return the open tasks of an account in its other sessions. A session whose log cannot be read is left out, and the answer says
        so. Raises `UNAVAILABLE`."""
        log = self.of(account)
        await log.refreshed()
        known: dict[str, set[str]] = {}
        for task in (*log.state.tasks, *log.state.timers):
            other, _, call_id = task.partition(" ")
            known.setdefault(other, set()).add(calls.task_id(call_id))
        found: list[OpenTask] = []
        others = [one for one in known if one != sid]
        incomplete = len(others) > SESSIONS_READ
        for other in others[-SESSIONS_READ:]:
            session = self._sessions.of(other)
            try:
                await session.refreshed()
            except VoxbridgeError as error:
                _log.warning("session %s: its tasks are not listed: %s", other, error.message)
                incomplete = True
                continue
            listed = (one for one in tasks.open_tasks(session.state) if one.task_id in known[other])
            found += [msgspec.structs.replace(one, sid=other) for one in listed]
        return OpenTasks(tasks=tuple(sorted(found, key=lambda one: one.called_at)), incomplete=incomplete)

    async def claim(self, account: str, sid: str, by: str, call_id: str) -> list[Undo]:
        """Claim what the call `by` is to take back, the newest first; the same again for a call that is begun again. Raises as `take`."""
        log = self.of(account)
        await log.refreshed()
        await log.take(UndoWanted(sid=sid, by=by, call_id=call_id))
        return undo.claimed(log.state, by)

    async def undone(self, account: str, one: Undo, *, done: bool) -> None:
        """Record that a call was taken back, or that it could not be. Raises as `take`."""
        await self.of(account).take(UndoEnded(sid=one.sid, call_id=one.call_id, by=one.by, done=done))

    async def uncount(self, account: str, sid: str, call_id: str) -> None:
        """Count a task no longer that never began: it repeats another one, or could not be run."""
        if call_id not in self._sessions.of(sid).state.open:
            await self.of(account).take(TaskOver(task=_task(sid, call_id)))


def _task(sid: str, call_id: str) -> str:
    return f"{sid} {call_id}"
