"""Calls that were made in a session a short while ago, read from its log: what "save what I just did" is drafted from."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from voxbridge.services.tools.registry import Tool
from voxbridge.services.tools.runs.draft import Past
from voxbridge.services.tools.session.lookup import RUN_TOOL
from voxbridge.shared.events.tools import TaskCancelled, TaskCompleted, TaskFailed, TaskInterrupted, ToolCompleted
from voxbridge.shared.events.voice import ToolCalled
from voxbridge.shared.log.reader import Log

RECENT_US: Final = 900_000_000
"""µs for which a call was made just now."""

CALLS_LIMIT: Final = 50
"""Newest calls that are looked at."""


async def done(log: Log, sid: str, tools: Mapping[str, Tool], *, now: int) -> list[Past]:
    """Return the recent calls of a session, oldest first, with the results of those that ended well. Raises `UNAVAILABLE`."""
    called: dict[str, ToolCalled] = {}
    results: dict[str, dict[str, Any]] = {}
    lost: set[str] = set()
    for writer in ("voice", "tools"):
        async for recorded in log.read_all(sid, writer=writer, visibility="c"):
            event = recorded.event
            if isinstance(event, ToolCalled):
                if event.kind != "browser" and now - recorded.ts <= RECENT_US:
                    called[event.call_id] = event
            elif isinstance(event, ToolCompleted):
                if event.result.get("repeated"):  # nothing ran: the call that it repeats did
                    lost.add(event.call_id)
                elif event.result.get("status") != "needs_approval":
                    results[event.call_id] = event.result
            elif isinstance(event, TaskCompleted):
                results[event.task_id.removeprefix("task-")] = event.result
            elif isinstance(event, TaskFailed | TaskInterrupted | TaskCancelled):
                lost.add(event.task_id.removeprefix("task-"))
    found = list(called.values())[-CALLS_LIMIT:]
    return [_past(event, tools, None if event.call_id in lost else results.get(event.call_id)) for event in found]


def _past(event: ToolCalled, tools: Mapping[str, Tool], result: dict[str, Any] | None) -> Past:
    name, arguments = event.name, event.arguments
    if name == RUN_TOOL:
        name, arguments = "_".join(str(arguments.get("tool_id", "")).casefold().split()), arguments.get("params", {})
    tool = tools.get(name)
    return Past(
        name=name, arguments=arguments, result=result if tool is not None else None, effect="write" if tool is None else tool.effect
    )
