"""A standing approval is in the log of its account whenever its executor is killed, and there once."""

from __future__ import annotations

from pathlib import Path

import pytest
from nats.aio.client import Client

from tests.tools.conftest import Caller, Executors
from tests.tools.replaced import replaced
from tests.tools.test_account_calls import Asking
from tests.tools.test_service import acknowledged
from voxbridge.shared.bus import subjects
from voxbridge.shared.clock import SystemClock
from voxbridge.shared.config import Config
from voxbridge.shared.events.gateway import ApprovalClicked
from voxbridge.shared.events.tools import ApprovalRequested, ApprovalStanding, TaskCompleted, TaskInterrupted
from voxbridge.shared.log.reader import Log
from voxbridge.shared.log.writer import SessionWriter

PACKS = "tests.tools.dying"
ALWAYS = ApprovalClicked(approval_id="approval-c1", answer="approved", scope="function")


async def standing(log: Log) -> list[str]:
    found = log.read_all(subjects.account_log("local"), writer="tools", visibility="i", topic="approval.standing")
    return [recorded.event.name async for recorded in found if isinstance(recorded.event, ApprovalStanding)]


@pytest.mark.parametrize("after", range(1, 7))
async def test_what_was_approved_for_good_stands_after_a_kill_at_any_write(
    config: Config, caller: Caller, connection: Client, log: Log, tmp_path: Path, after: int
) -> None:
    clicks = SessionWriter(log, caller.sid, "gateway", stem="click", fenced=False)
    async with replaced(config, PACKS, after) as died:
        await caller.call("wipe", file=str(tmp_path / "runs"))
        await caller.next(ApprovalRequested)
        await clicks.append(ALWAYS, ts=SystemClock().now_us(), cause=None)
        await acknowledged(connection)
        killed = died()
    assert killed or after > 3, "the process was killed in the middle"
    assert await standing(log) == ["wipe"]
    assert len(caller.told(TaskCompleted, TaskInterrupted)) == 1


async def test_a_program_s_call_makes_its_approval_stand_in_the_same_log(executors: Executors, log: Log, tmp_path: Path) -> None:
    client = Asking(log)
    await client.start()
    async with executors.running(PACKS):
        await client.call("wipe", file=str(tmp_path / "runs"))
        await client.next(ApprovalRequested)
        await client.ask(ALWAYS)
        await client.next(TaskCompleted)
        assert await standing(log) == ["wipe"]
    await client.stop()
