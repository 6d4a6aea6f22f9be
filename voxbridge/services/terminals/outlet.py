"""The way to the viewers of a terminal: its output soon, and screens in place of a flood.

Owns the wait of output that is on its way, and the bound on it. Output after a pause goes at once, more of it within `FLUSH_S` goes
together. Of more than `FLOOD_BYTES` in `FLOOD_S` nobody sees each line, so viewers are sent the screen every `SCREEN_S` until it is over.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

from voxbridge.shared.terminals.live import Output

FLUSH_S: Final = 0.004
FLUSH_BYTES: Final = 65_536
"""Output is sent after this time or as so many bytes, whichever comes first."""

FLOOD_BYTES: Final = 524_288
FLOOD_S: Final = 0.1
SCREEN_S: Final = 0.05


class Outlet:
    """The way of one terminal's output to its viewers. `frame` returns the screen now, with the lines above it or without."""

    def __init__(self, run: int, publish: Callable[[Output], None], frame: Callable[[bool], bytes]) -> None:
        self._run = run
        self._publish, self._frame = publish, frame
        self._loop = asyncio.get_running_loop()
        self._pending = bytearray()
        self._count = 0
        self._timer: asyncio.TimerHandle | None = None
        self._sent_at = self._since = 0.0
        self._size = 0
        self._flooded = False

    def take(self, data: bytes, count: int) -> None:
        """Take output; `count` is that of all bytes with it."""
        self._count = count
        now = self._loop.time()
        if now - self._since >= FLOOD_S:
            self._since, self._size = now, 0
        self._size += len(data)
        if self._flooded:
            return  # the screen that comes next shows it
        if self._size > FLOOD_BYTES:
            self._pending.clear()
            self._flooded = True
            self._again(SCREEN_S, self._screen)
            return
        self._pending += data
        if len(self._pending) >= FLUSH_BYTES or now - self._sent_at >= FLUSH_S:
            self.flush()
        elif self._timer is None:
            self._again(FLUSH_S, self.flush)

    def flush(self) -> None:
        """Send what was not sent yet."""
        if self._flooded:
            return
        self._stop()
        if self._pending:
            data, self._pending = bytes(self._pending), bytearray()
            self._sent_at = self._loop.time()
            self._publish(Output(run=self._run, offset=self._count - len(data), data=data))

    def show(self, count: int) -> None:
        """Send the whole screen in place of what was not sent yet."""
        self._stop()
        self._pending.clear()
        self._flooded, self._count = False, count
        self._publish(Output(run=self._run, offset=count, data=self._frame(True), keyframe=True))

    def close(self) -> None:
        """Send nothing more."""
        self._stop()
        self._pending.clear()
        self._flooded = True

    def _screen(self) -> None:
        self._timer = None
        now = self._loop.time()
        # Less than half of what begins a flood has come since: it is over, and viewers have the lines above their screens again.
        if self._size <= FLOOD_BYTES * (now - self._since) / FLOOD_S / 2:
            self.show(self._count)
            return
        self._publish(Output(run=self._run, offset=self._count, data=self._frame(False), keyframe=True))
        self._since, self._size = now, 0
        self._again(SCREEN_S, self._screen)

    def _again(self, after_s: float, do: Callable[[], None]) -> None:
        self._stop()
        self._timer = self._loop.call_later(after_s, do)

    def _stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
