"""Prompts that a live answer did not wait for, read while nothing is asked for.

Owns which are to be read, and the loop that reads them, one at a time. Does not own when that may be (`background`) nor what has been read
(`llm`). A live request stops the reading, and it goes on from there afterwards. A crash loses the list; the next answer that would need
such a prompt names it again.
"""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any, Final

from voxbridge.services.models.engines.background import Background
from voxbridge.shared.errors import Code, VoxbridgeError

WANTED_LIMIT: Final = 4
"""Prompts that wait to be read; the one that was asked for longest ago is forgotten first."""

TRIES: Final = 3
"""Times that reading a prompt may fail before it is forgotten."""

PAUSE_S: Final = 1.0
"""Seconds between two attempts."""

Read = Callable[[str, bool], Coroutine[Any, Any, None]]

_log = logging.getLogger(__name__)


class Readings:
    """The beginnings of prompts that are to be read. `read` reads one, and keeps it on disk if its second argument says so."""

    def __init__(self, background: Background, read: Read, *, pause_s: float = PAUSE_S) -> None:
        self.background, self._read, self._pause_s = background, read, pause_s
        self._wanted: OrderedDict[str, bool] = OrderedDict()
        self._came = asyncio.Event()

    @property
    def waiting(self) -> int:
        """Number of prompts that are not read yet, with the one that is being read."""
        return len(self._wanted)

    def want(self, family: str, *, keep: bool) -> None:
        """Have a beginning read as soon as nothing else is asked for."""
        self._wanted[family] = keep or self._wanted.get(family, False)
        self._wanted.move_to_end(family)
        while len(self._wanted) > WANTED_LIMIT:
            self._wanted.popitem(last=False)
        self._came.set()

    async def run(self) -> None:
        """Read until cancelled, the newest wish first: that is what a user talks to now."""
        while True:
            while not self._wanted:
                self._came.clear()
                await self._came.wait()
            family = next(reversed(self._wanted))
            await self._until_read(family)
            self._wanted.pop(family, None)

    async def _until_read(self, family: str) -> None:
        failed = 0
        while failed < TRIES and family in self._wanted:
            keep = self._wanted[family]
            try:
                async with self.background.line.enter():
                    await self.background.made(partial(self._read, family, keep))
            except VoxbridgeError as error:
                failed += error.code != Code.OVERLOADED  # live calls come first, for as long as they last
                _log.debug("a prompt is not read yet: %s", error.message)
                await asyncio.sleep(self._pause_s)
            else:
                return
