"""A run of five steps, killed at some of its events; `tests/long/test_runs_killed.py` does so at each."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.tools.conftest import Caller, Executors
from tests.tools.killed_runs import dies, goes_on, save
from voxbridge.shared.config import Config


@pytest.mark.parametrize("after", [1, 5, 8, 13])
async def test_each_effect_of_a_killed_run_happens_once(
    executors: Executors, config: Config, caller: Caller, tmp_path: Path, after: int
) -> None:
    await save(executors, caller, tmp_path)
    assert await dies(config, caller, after)
    await goes_on(executors, caller, tmp_path)
