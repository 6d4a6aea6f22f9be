"""A run of five steps, killed after each of its process's writes; `tests/tools/test_runs_killed.py` does so after a few."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path

from tests.tools.conftest import Caller, Executors, callers, config, connection, executors, log
from tests.tools.killed_runs import RESUMED_S, STEPS, dies, goes_on, save
from voxbridge.shared.config import Config

__all__ = ["callers", "config", "connection", "executors", "log"]
WRITES_LIMIT = 200


def clear(folder: Path) -> None:
    for file in folder.iterdir():
        file.unlink()


async def test_a_run_killed_anywhere_has_each_effect_once_and_goes_on_in_time(
    executors: Executors, config: Config, callers: Callable[[], Awaitable[Caller]], tmp_path: Path
) -> None:
    await save(executors, await callers(), tmp_path)
    slowest, after = 0.0, 0
    while after < WRITES_LIMIT:
        after += 1
        clear(tmp_path)
        caller = await callers()
        if not await dies(config, caller, after):
            break
        slowest = max(slowest, await goes_on(executors, caller, tmp_path))
    assert after > 2 * STEPS
    assert slowest <= RESUMED_S
