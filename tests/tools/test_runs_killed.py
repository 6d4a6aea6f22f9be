"""A run of five steps, killed at some of its events; `tests/long/test_runs_killed.py` does so at each."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from tests.tools.conftest import Caller, Executors
from tests.tools.killed_runs import approve, dies, goes_on, save
from voxbridge.shared.config import Config
from voxbridge.shared.events.tools import ApprovalEnded, ApprovalRequested

APPROVED = 2
"""Number of the step that a person approves."""


def clear(folder: Path) -> None:
    for file in folder.glob("?"):
        file.unlink()


@pytest.mark.parametrize("after", [1, 5, 8, 13])
async def test_each_effect_of_a_killed_run_happens_once(
    executors: Executors, config: Config, caller: Caller, tmp_path: Path, after: int
) -> None:
    await save(executors, caller, tmp_path)
    assert await dies(config, caller, after)
    await goes_on(executors, caller, tmp_path)


@pytest.mark.timeout(300)
async def test_a_step_that_was_approved_is_asked_once_and_run_once_wherever_its_run_is_killed(
    executors: Executors, config: Config, callers: Callable[[], Awaitable[Caller]], tmp_path: Path
) -> None:
    await save(executors, await callers(), tmp_path, approved=APPROVED)
    after, died = 0, True
    while died:
        after += 1
        clear(tmp_path)
        caller = await callers()
        approving = asyncio.create_task(approve(caller))
        died = await dies(config, caller, after)
        if died:
            await goes_on(executors, caller, tmp_path)
        await approving
        assert len(caller.told(ApprovalRequested)) == 1, f"killed after {after} writes"
        assert [event.outcome for event in caller.told(ApprovalEnded) if isinstance(event, ApprovalEnded)] == ["approved"]
    assert after > 15
