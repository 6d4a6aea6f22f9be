"""A worker follows which ends of tasks the accounts of its sessions have to tell."""

from __future__ import annotations

from tests.eventually import eventually
from tests.voice.conversation import SID
from tests.voice.session.test_macros import Held, connection, log
from voxbridge.services.voice.session.unheard import Unheard
from voxbridge.shared.bus import subjects
from voxbridge.shared.events.tools import TasksUnheard, UnheardTask
from voxbridge.shared.events.voice import TasksWanted
from voxbridge.shared.log.reader import Log
from voxbridge.shared.log.writer import SessionWriter

__all__ = ("connection", "log")


async def test_a_session_is_told_at_once_and_asks(log: Log) -> None:
    writer = SessionWriter(log, subjects.account_log("local"), "tools")

    async def say(*tasks: str) -> None:
        found = tuple(UnheardTask(task_id=task, function="set_timer", ended_ts=1) for task in tasks)
        await writer.append(TasksUnheard(tasks=found), ts=1, cause=None)

    call = Held()
    unheard = Unheard(log, {SID: call})  # type: ignore[dict-item]  # the core's side of a session
    assert await unheard.of("local") == ()
    await unheard.start()
    await say("task-a", "task-b")
    await eventually(lambda: call.state.pending.unheard == ("task-a", "task-b"))
    assert call.events(TasksWanted)[0].task_ids == ("task-a", "task-b")
    await say("task-b")
    await eventually(lambda: call.state.pending.unheard == ("task-b",))
    assert await unheard.of("local") == ("task-b",)
    assert await unheard.of("other") == ()
    await unheard.stop()
