"""Answers that nobody listens to: made one at a time, and only while no model works for a live call.

Owns when such an answer is begun, stopped and begun again. A request for any model stops it, which frees the processor after the current
token; it is made anew once nothing was asked for `QUIET_S`, and what the engine has read is still in its slot. A crash loses the answer.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Collection, Coroutine
from contextlib import aclosing
from typing import Any, Final, TypeVar

from voxbridge.services.models.engines.admission import Line
from voxbridge.shared.cancellation import ended
from voxbridge.shared.errors import Code, VoxbridgeError

QUIET_S: Final = 0.7
"""Seconds without a request, after which no turn of a live call is taken to be under way: one turn is several requests in a row."""

WAIT_S: Final = 30.0
"""Seconds that an answer waits for such a moment; then it is refused, and may be asked for again."""

WAITING: Final = 8

_Result = TypeVar("_Result")


class Background:
    """Turn-taking of one installation between the requests of `lines`, which are live, and answers in the background."""

    def __init__(self, lines: Collection[Line], *, quiet_s: float = QUIET_S, wait_s: float = WAIT_S) -> None:
        self.line = Line("answers in the background", 1, WAITING)
        self._lines = lines
        self._quiet_s = quiet_s
        self._wait_s = wait_s
        self._came = asyncio.Event()
        self._left = asyncio.Event()
        self._last = float("-inf")
        """Time of the loop at which the last live request began or ended."""

        for line in lines:
            line.changed = self._changed

    def _changed(self) -> None:
        self._last = asyncio.get_running_loop().time()
        (self._came if self._live() else self._left).set()

    def _live(self) -> bool:
        return any(line.inside for line in self._lines)

    async def made(self, make: Callable[[], Coroutine[Any, Any, _Result]]) -> _Result:
        """Return the result of `make`, which runs while nothing else is asked for, and anew after it was stopped. Raises `OVERLOADED` after
        `wait_s` without such a moment, and what `make` raises."""
        loop = asyncio.get_running_loop()
        until = loop.time() + self._wait_s
        while True:
            await self._quiet(until)
            self._came.clear()
            making, coming = asyncio.create_task(make()), asyncio.create_task(self._came.wait())
            try:
                await asyncio.wait({making, coming}, return_when=asyncio.FIRST_COMPLETED)
                if making.done():
                    return making.result()
            finally:
                await ended(making, coming)

    async def _quiet(self, until: float) -> None:
        loop = asyncio.get_running_loop()
        while self._live() or loop.time() - self._last < self._quiet_s:
            if loop.time() >= until:
                message = "The local model works for live calls. Ask again in a moment."
                raise VoxbridgeError(Code.OVERLOADED, message, limit=self._wait_s, retry_after_ms=1_000)
            self._left.clear()
            wait_s = until - loop.time() if self._live() else self._last + self._quiet_s - loop.time()
            try:
                async with asyncio.timeout(max(0.001, min(wait_s, until - loop.time()))):
                    await self._left.wait()
            except TimeoutError:
                pass


async def collected(steps: AsyncGenerator[_Result]) -> list[_Result]:
    """Return all that a generator yields, and close it."""
    async with aclosing(steps):
        return [step async for step in steps]
