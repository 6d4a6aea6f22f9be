"""An HTTP server that wakes once a second and when it is to stop. uvicorn's own looks ten times a second whether it is.

Owns when the server looks. Does not own the signals of a process that has its own (`capture_signals`). A crash loses nothing.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING, Final

import uvicorn

if TYPE_CHECKING:
    from types import FrameType

TICK_S: Final = 1.0
"""Seconds between two looks: the header `date` counts seconds."""


class HttpServer(uvicorn.Server):
    """A uvicorn server that sleeps while nobody asks for anything."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stop = asyncio.Event()

    def stop(self) -> None:
        """Have the server stop, from any thread and from a signal handler."""
        self.should_exit = True
        if self._loop is not None:
            with suppress(RuntimeError):  # the loop is closed: the server has stopped
                self._loop.call_soon_threadsafe(self._stop.set)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Stop at a signal; at a second one without waiting for open requests."""
        super().handle_exit(sig, frame)
        self.stop()

    async def main_loop(self) -> None:
        """Serve until told to stop."""
        self._loop = asyncio.get_running_loop()
        while not await self.on_tick(0):
            with suppress(TimeoutError):
                async with asyncio.timeout(TICK_S):
                    await self._stop.wait()
