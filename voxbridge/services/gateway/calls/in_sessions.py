"""Tasks that calls with a session began and that are not over: which there are, and ending one.

Owns the question to an executor, which knows them, and the wish in the session's log, as a client of the session puts it there. Keeps
nothing; a crash loses only the waiting for the end.
"""

from __future__ import annotations

import asyncio
import logging
from typing import Final

import msgspec
from nats.errors import Error as NatsError
from nats.micro.request import ERROR_CODE_HEADER as SERVICE_ERROR

from voxbridge.services.gateway.calls.ledger import ENDS, TASK_ENDS, Task
from voxbridge.shared import events
from voxbridge.shared.agents.tasks import SUBJECT, OpenTask, OpenTasks, TasksAsked
from voxbridge.shared.log.feed import Feed
from voxbridge.shared.log.reader import Log

ASK_S: Final = 5.0
"""Seconds that an executor may take: it reads the logs of the sessions that have tasks."""

_TYPES: Final = ("task.completed", "task.failed", "task.cancelled", "task.interrupted")
_log = logging.getLogger(__name__)


async def open_tasks(log: Log, account: str) -> OpenTasks:
    """Return the open tasks in the sessions of an account; none and `incomplete` when no executor answers."""
    try:
        reply = await log.nc.request(SUBJECT, msgspec.json.encode(TasksAsked(account=account)), timeout=ASK_S)
        refused = (reply.headers or {}).get(SERVICE_ERROR)
        if refused is None:
            return msgspec.json.decode(reply.data, type=OpenTasks)
        _log.warning("the tasks of sessions are not known: %s", refused)
    except (TimeoutError, NatsError, msgspec.MsgspecError) as error:
        _log.warning("the tasks of sessions are not known: %s", error or type(error).__name__)
    return OpenTasks(incomplete=True)


def shown(task: OpenTask) -> Task:
    """Return an open task of a session as the account's own tasks are shown."""
    return Task(
        id=task.task_id,
        function=task.function,
        call_id=task.task_id.removeprefix("task-"),
        started_at_ms=task.called_at // 1_000,
        state="needs_approval" if task.state == "waiting for approval" else "running",
        label=task.label,
        due_at_ms=None if task.due_at is None else task.due_at // 1_000,
        done=task.done,
        message=task.message,
        session=task.sid,
    )


def ended(task: Task, end: events.Recorded) -> Task:
    """Return a task as the event that ended it leaves it."""
    return msgspec.structs.replace(task, state=ENDS[type(end.event)], ended_at_ms=end.ts // 1_000, end=end.seq)


class End:
    """The end of a task of a session, heard from when this context begins. `log` is the gateway's."""

    def __init__(self, log: Log, sid: str, task_id: str) -> None:
        self._log = log
        self._sid = sid
        self._task_id = task_id
        self._ended: asyncio.Future[events.Recorded] = asyncio.get_running_loop().create_future()
        self._feed: Feed | None = None

    async def __aenter__(self) -> End:
        after, _ = await self._log.position(self._sid, "tools")
        self._feed = Feed(self._log, self._sid, self._heard, writer="tools", visibility="c", types=_TYPES, after=after)
        await self._feed.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        self._ended.cancel()
        if self._feed is not None:
            await self._feed.stop()

    async def within(self, seconds: float) -> events.Recorded | None:
        """Return the event that ended the task; None if none came in so many seconds."""
        await asyncio.wait({self._ended}, timeout=seconds)
        return self._ended.result() if self._ended.done() else None

    def _heard(self, recorded: events.Recorded) -> None:
        event = recorded.event
        if isinstance(event, TASK_ENDS) and event.task_id == self._task_id and not self._ended.done():
            self._ended.set_result(recorded)
