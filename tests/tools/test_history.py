"""Calls that "save what I just did" is drafted from: those that did something, once each."""

from __future__ import annotations

from voxbridge.services.tools.registry import load
from voxbridge.services.tools.session import history
from voxbridge.shared.clock import SystemClock
from voxbridge.shared.events.tools import TaskCancelled, TaskCompleted, ToolCompleted, ToolFailed
from voxbridge.shared.events.voice import Failure, ToolCalled
from voxbridge.shared.ids import new_session_id
from voxbridge.shared.log.reader import Log
from voxbridge.shared.log.writer import SessionWriter


async def test_what_was_cancelled_failed_or_only_repeated_is_no_part_of_what_was_done(log: Log) -> None:
    sid, now = new_session_id(), SystemClock().now_us()
    voice, tools = SessionWriter(log, sid, "voice"), SessionWriter(log, sid, "tools")
    for call_id in ("done", "repeated", "failed", "timer", "task"):
        call = ToolCalled(call_id=call_id, name="echo", arguments={"text": call_id}, kind="server", turn=1, deadline_ms=1, account="local")
        await voice.append(call, ts=now, cause=None)
    started = {"status": "started"}
    for event in (
        ToolCompleted(call_id="done", name="echo", result={"text": "done"}, ms=1),
        ToolCompleted(call_id="repeated", name="echo", result={"text": "done", "repeated": True}, ms=1),
        ToolFailed(call_id="failed", name="echo", error=Failure(code="INTERNAL", message="No."), ms=1),
        ToolCompleted(call_id="timer", name="echo", result=started, ms=1, goes_on="task"),
        TaskCancelled(task_id="task-timer", function="echo", reason="the user said so"),
        ToolCompleted(call_id="task", name="echo", result=started, ms=1, goes_on="task"),
        TaskCompleted(task_id="task-task", function="echo", result={"text": "task"}),
    ):
        await tools.append(event, ts=now, cause=None)
    found = await history.done(log, sid, load(["tests.tools.pack"], timeout_s=10), now=now)
    assert [past.arguments["text"] for past in found if past.result is not None] == ["done", "task"]
