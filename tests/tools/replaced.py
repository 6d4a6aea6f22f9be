"""An executor that is killed when the log has taken the n-th of its writes, in sessions and accounts, and replaced by another one."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path

from voxbridge.shared.config import Config

ROOT = Path(__file__).parents[2]


@asynccontextmanager
async def replaced(config: Config, packs: str, after: int) -> AsyncIterator[Callable[[], bool]]:
    """Run an executor with `packs`, of which `tests.tools.dying` is one, and a second one when it was killed; give whether it was."""
    env = {
        "VOXBRIDGE_NATS_URL": config.nats_url,
        "VOXBRIDGE_REDIS_URL": config.redis_url,
        "VOXBRIDGE_TOOL_PACKS": packs,
        "VOXBRIDGE_TEST_DIES_IN": "vx.",
        "VOXBRIDGE_WORKSPACE_DIRS": config.workspace_dirs,
        "PATH": os.environ["PATH"],
    }

    async def executor(**more: str) -> asyncio.subprocess.Process:
        return await asyncio.create_subprocess_exec(sys.executable, "-m", "voxbridge.services.tools", cwd=ROOT, env=env | more)

    running = [await executor(VOXBRIDGE_TEST_DIES_AFTER=str(after))]

    async def replace() -> None:
        await running[0].wait()
        running.append(await executor())

    replacing = asyncio.create_task(replace())
    try:
        yield lambda: running[0].returncode == -9
    finally:
        replacing.cancel()
        with suppress(asyncio.CancelledError):
            await replacing
        for one in running:
            if one.returncode is None:
                one.kill()
            await one.wait()
