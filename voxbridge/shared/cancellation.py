"""Ending tasks for good.

A cancellation can be lost: `asyncio.wait_for` of Python 3.11 returns its result and swallows the cancellation where both come at the same
moment, and the clients of NATS and Valkey use it for every request. A loop that asks one of them goes on then, and whoever waits for its
end would wait for ever. Owns repeating the cancellation, and the time limit of whoever waits. A crash here leaves tasks to the end of the
process.
"""

from __future__ import annotations

import asyncio
from typing import Any, Final

AGAIN_S: Final = 0.1
"""After so long without its end, a task is cancelled again."""


async def ended(*tasks: asyncio.Task[Any]) -> None:
    """Cancel tasks until all have ended. Raises nothing of theirs."""
    while going := [task for task in tasks if not task.done()]:
        for task in going:
            task.cancel()
        await asyncio.wait(going, timeout=AGAIN_S)


async def ended_within(seconds: float, *tasks: asyncio.Task[Any]) -> list[asyncio.Task[Any]]:
    """Cancel tasks until all have ended, for so long at most. Returns those that have not."""
    ending = asyncio.create_task(ended(*tasks))
    await asyncio.wait({ending}, timeout=seconds)
    ending.cancel()
    return [task for task in tasks if not task.done()]
