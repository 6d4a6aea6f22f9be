"""The calls and tasks of one account as its log tells them: which are open, which key asked for which call, and where each outcome stands.

Owns this view, for the last day. Does not own how the log is followed (`voxbridge.services.gateway.calls.ledgers`), nor the rules of calls
(the tool executor has them). Outcomes are kept as positions, not as results. A crash loses nothing: another gateway reads the same log.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from typing import Any, Final, Literal

import msgspec

from voxbridge.shared import events
from voxbridge.shared.events import tools
from voxbridge.shared.events.gateway import ToolRequested
from voxbridge.shared.events.operator import SessionErased

KEY_US: Final = 24 * 3_600 * 1_000_000
"""Time for which the same idempotency key is the same call."""

KEYS_LIMIT: Final = 50_000
"""Keys of one account that are remembered at a time."""

ENDED_TASKS: Final = 256
"""Tasks that are over and can still be asked for."""

ASKED_LIMIT: Final = 64
"""Open requests for approval of one account; an account has fewer calls open than that."""

TaskState = Literal["needs_approval", "running", "completed", "failed", "cancelled", "interrupted", "declined"]
"""`needs_approval`: a person is asked; `declined`: the answer was no, or none came in time."""

_GOING_ON: Final = ("needs_approval", "running")
_ANSWERS: Final = tools.ToolCompleted | tools.ToolFailed | tools.ToolInterrupted
TASK_ENDS: Final = tools.TaskCompleted | tools.TaskFailed | tools.TaskCancelled | tools.TaskInterrupted
ENDS: Final[dict[type[events.Event], TaskState]] = {
    tools.TaskCompleted: "completed",
    tools.TaskFailed: "failed",
    tools.TaskCancelled: "cancelled",
    tools.TaskInterrupted: "interrupted",
}
TYPES: Final = (
    *("tool.requested", "tool.completed", "tool.failed", "tool.interrupted", "session.erased"),
    *("approval.requested", "approval.ended"),
    *("task.started", "task.progressed", "task.completed", "task.failed", "task.cancelled", "task.interrupted"),
)
"""Events that the view is made of."""


class Requested(msgspec.Struct, kw_only=True):
    """A call that was asked for. `answer` is the position of its answer, 0 while there is none."""

    call_id: str
    name: str
    key: str
    request: str
    seq: int
    ts: int
    deadline_ms: int
    answer: int = 0
    copies: tuple[int, ...] = ()
    """Positions of other requests for the same call."""


class Task(msgspec.Struct, kw_only=True, omit_defaults=True):
    """A task of the account. Times in ms of the Unix clock."""

    id: str
    function: str
    call_id: str
    started_at_ms: int
    state: TaskState = "running"
    label: str = ""
    due_at_ms: int | None = None
    done: float = 0.0
    message: str = ""
    approval_id: str = ""
    ended_at_ms: int | None = None
    end: int = 0
    """Position of the event that ended it."""

    session: str = ""
    """Session in which it was begun; empty for one that was asked for outside."""


class Ledger:
    """The view of one account; `take` gets its events in order."""

    def __init__(self) -> None:
        self._calls: OrderedDict[str, Requested] = OrderedDict()
        self._by_key: OrderedDict[str, Requested] = OrderedDict()
        self._by_seq: dict[int, Requested] = {}
        self._open: set[str] = set()
        self._tasks: OrderedDict[str, Task] = OrderedDict()
        self._asked: OrderedDict[str, tools.ApprovalRequested] = OrderedDict()
        self._waiting: dict[str, set[asyncio.Future[events.Recorded]]] = {}

    @property
    def idle(self) -> bool:
        """True while nobody waits here."""
        return not self._waiting

    def open(self) -> int:
        """Return how many calls and tasks are open."""
        return len(self._open)

    def tasks(self) -> list[Task]:
        """Return the tasks that are not over, oldest first."""
        return [task for task in self._tasks.values() if task.state in _GOING_ON]

    def ended(self) -> list[Task]:
        """Return the tasks that are over, the latest first."""
        return [task for task in reversed(self._tasks.values()) if task.state not in _GOING_ON]

    def asked(self) -> list[tools.ApprovalRequested]:
        """Return the requests for approval that are open, oldest first. A step of a run asks, too, and is no task of its own."""
        return list(self._asked.values())

    def task(self, task_id: str) -> Task | None:
        """Return a task that runs or ended lately."""
        return self._tasks.get(task_id)

    def keyed(self, key: str, now: int) -> Requested | None:
        """Return the call that this key asked for within the last `KEY_US` before `now` (µs)."""
        found = self._by_key.get(key)
        return found if found is not None and found.ts > now - KEY_US else None

    def at(self, seq: int) -> Requested | None:
        """Return the call whose request stands at a position."""
        return self._by_seq.get(seq)

    def full(self, now: int) -> bool:
        """Return whether the account has used as many keys as are remembered."""
        while self._by_key and next(iter(self._by_key.values())).ts <= now - KEY_US:
            _, old = self._by_key.popitem(last=False)
            self._drop(old)
        return len(self._by_key) >= KEYS_LIMIT

    def expect(self, name: str) -> asyncio.Future[events.Recorded]:
        """Return a future for the event that answers a call, or that ends a task, by the id of either."""
        future: asyncio.Future[events.Recorded] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(name, set()).add(future)
        future.add_done_callback(lambda done: self._forget(name, done))
        return future

    def take(self, recorded: events.Recorded) -> None:
        """Take the next event of the account."""
        event: Any = recorded.event
        if isinstance(event, ToolRequested):
            self._requested(recorded, event)
        elif isinstance(event, _ANSWERS):
            self._answered(recorded, event)
        elif isinstance(event, tools.TaskStarted):
            due_ms = None if event.due_ts is None else event.due_ts // 1_000
            at_ms = recorded.ts // 1_000
            task = Task(id=event.task_id, function=event.function, call_id=event.call_id, started_at_ms=at_ms, label=event.label)
            task.due_at_ms = due_ms
            self._tasks[task.id] = task
        elif isinstance(event, tools.TaskProgressed):
            running = self._tasks.get(event.task_id)
            if running is not None:
                running.done, running.message = event.done, event.message
        elif isinstance(event, TASK_ENDS):
            self._task_ended(recorded, event)
        elif isinstance(event, SessionErased):
            self._calls.clear()
            self._by_key.clear()
            self._by_seq.clear()
            self._open.clear()
            self._tasks.clear()
            self._asked.clear()
        elif isinstance(event, tools.ApprovalRequested):
            self._asked[event.approval_id] = event
            while len(self._asked) > ASKED_LIMIT:
                self._asked.popitem(last=False)
        elif isinstance(event, tools.ApprovalEnded):
            self._approval_ended(recorded, event)

    def _requested(self, recorded: events.Recorded, event: ToolRequested) -> None:
        first = self._calls.get(event.call_id)
        if first is not None:
            self._by_seq[recorded.seq] = first
            first.copies = (*first.copies, recorded.seq)
            return
        call = Requested(
            call_id=event.call_id,
            name=event.name,
            key=event.key,
            request=event.request,
            seq=recorded.seq,
            ts=recorded.ts,
            deadline_ms=event.deadline_ms,
        )
        self._calls[call.call_id] = self._by_seq[call.seq] = call
        self._open.add(call.call_id)
        if call.key:
            self._by_key[call.key] = call
            self._by_key.move_to_end(call.key)

    def _answered(self, recorded: events.Recorded, event: Any) -> None:
        call = self._calls.get(event.call_id)
        if call is not None and not call.answer:
            call.answer = recorded.seq
            if not (isinstance(event, tools.ToolCompleted) and event.goes_on):
                self._closed(call.call_id)
        if isinstance(event, tools.ToolCompleted) and event.goes_on == "approval":
            self._waits(recorded, event)
        self._tell(event.call_id, recorded)

    def _task_ended(self, recorded: events.Recorded, event: Any) -> None:
        task = self._tasks.get(event.task_id)
        if task is not None:
            self._over(task, ENDS[type(event)], recorded)

    def _approval_ended(self, recorded: events.Recorded, event: tools.ApprovalEnded) -> None:
        self._asked.pop(event.approval_id, None)
        asked = next((task for task in self._tasks.values() if task.approval_id == event.approval_id), None)
        if asked is not None and event.outcome != "approved":
            self._over(asked, "declined", recorded)

    def _waits(self, recorded: events.Recorded, event: tools.ToolCompleted) -> None:
        self._tasks[event.result["task_id"]] = Task(
            id=event.result["task_id"],
            function=event.name,
            call_id=event.call_id,
            started_at_ms=recorded.ts // 1_000,
            state="needs_approval",
            message=str(event.result.get("spoken", "")),
            approval_id=str(event.result.get("approval_id", "")),
        )

    def _over(self, task: Task, state: TaskState, recorded: events.Recorded) -> None:
        task.state, task.end, task.ended_at_ms = state, recorded.seq, recorded.ts // 1_000
        self._tasks.move_to_end(task.id)
        self._closed(task.call_id)
        over = [one.id for one in self._tasks.values() if one.state not in _GOING_ON]
        for task_id in over[: max(0, len(over) - ENDED_TASKS)]:
            del self._tasks[task_id]
        self._tell(task.id, recorded)

    def _closed(self, call_id: str) -> None:
        self._open.discard(call_id)
        call = self._calls.get(call_id)
        if call is not None and not call.key:
            self._drop(call)

    def _drop(self, call: Requested) -> None:
        self._calls.pop(call.call_id, None)
        for seq in (call.seq, *call.copies):
            self._by_seq.pop(seq, None)

    def _tell(self, name: str, recorded: events.Recorded) -> None:
        for future in tuple(self._waiting.get(name, ())):
            if not future.done():
                future.set_result(recorded)

    def _forget(self, name: str, future: asyncio.Future[events.Recorded]) -> None:
        waiting = self._waiting.get(name)
        if waiting is not None:
            waiting.discard(future)
            if not waiting:
                del self._waiting[name]
