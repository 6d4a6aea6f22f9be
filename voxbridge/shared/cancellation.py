"""Cancellation of tasks that cannot be lost.

A cancellation can be lost: `asyncio.wait_for` of Python 3.11 returns its result and swallows the cancellation when both come at the same
moment, and the clients of NATS and Valkey use it for every request. A loop that awaits such a request then goes on, and a caller that waits
for its end would wait forever. Owns repeating the cancellation, and the caller's time limit. A crash here leaves tasks running until the
process ends.
"""

from __future__ import annotations

import asyncio
from typing import Any, Final

AGAIN_S: Final = 0.1
"""Seconds after which a task that has not ended is cancelled again."""


async def ended(*tasks: asyncio.Task[Any]) -> None:
    """Cancel tasks until all have ended. Their exceptions are not raised."""
    while going := [task for task in tasks if not task.done()]:
        for task in going:
            task.cancel()
        await asyncio.wait(going, timeout=AGAIN_S)


async def ended_within(seconds: float, *tasks: asyncio.Task[Any]) -> list[asyncio.Task[Any]]:
    """Cancel tasks until all have ended, for at most `seconds`. Return those that have not."""
    ending = asyncio.create_task(ended(*tasks))
    await asyncio.wait({ending}, timeout=seconds)
    ending.cancel()
    return [task for task in tasks if not task.done()]
