"""The logs that a session follows: its own, and that of the session whose function asked for it.

Owns which events end a child from outside: the end of its parent, or of the task for which it works. The feed begins anew with each
worker, so an end that came while nobody held the child is read by the next one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from voxbridge.services.voice.core import inputs
from voxbridge.shared import events
from voxbridge.shared.bus import subjects
from voxbridge.shared.events.gateway import Child, SessionRequested
from voxbridge.shared.events.tools import TaskCancelled, TaskCompleted, TaskFailed, TaskInterrupted, ToolFailed, ToolInterrupted
from voxbridge.shared.log.feed import Feed, Handler
from voxbridge.shared.log.reader import Log

_TASK_ENDS: Final = (TaskCompleted, TaskFailed, TaskCancelled, TaskInterrupted)
_TYPES: Final = ("task.completed", "task.failed", "task.cancelled", "task.interrupted", "tool.failed", "tool.interrupted")


def followed(
    log: Log,
    sid: str,
    request: SessionRequested | None,
    event: Handler,
    over: Callable[[inputs.ParentOver], None],
    after: Mapping[str, int],
) -> list[Feed]:
    """Return the feeds of a session: of its own log after these positions, by writer, and of its parent's."""
    feeds = [
        Feed(log, sid, event, writer=writer, visibility=visibility, after=after.get(writer, 0))
        for writer, visibility in (("gateway", "i"), ("tools", "c"))
    ]
    child = request.child if request is not None else None
    if child is None or subjects.account_of(child.parent):  # an account has no end; its calls are bounded by the child's own time
        return feeds

    def hear(recorded: events.Recorded) -> None:
        if ended := _over(child, recorded.event):
            over(inputs.ParentOver(ended))

    writer, types = ("voice", ("session.ended",)) if child.kind == "expert" else ("tools", _TYPES)
    return [*feeds, Feed(log, child.parent, hear, writer=writer, visibility="c", types=types)]


def _over(child: Child, event: events.Event) -> str:
    if child.kind == "expert":
        return "parent_ended" if isinstance(event, events.voice.SessionEnded) else ""
    if isinstance(event, _TASK_ENDS):
        return "cancelled" if event.task_id == f"task-{child.call_id}" else ""
    return "cancelled" if isinstance(event, ToolFailed | ToolInterrupted) and event.call_id == child.call_id else ""
