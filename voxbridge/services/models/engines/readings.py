"""Prompts that a live answer did not wait for, read while nothing is asked for: beginnings that conversations share, and conversations of
which the last answers took no model, so that the next one would have to read them first.

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

from voxbridge.services.models.core.chatml import Prompt
from voxbridge.services.models.engines.background import Background
from voxbridge.shared.errors import Code, VoxbridgeError

WANTED_LIMIT: Final = 4
"""Prompts that wait to be read; the one that was asked for longest ago is forgotten first."""

TRIES: Final = 3
"""Times that reading a prompt may fail before it is forgotten."""

PAUSE_S: Final = 1.0
"""Seconds between two attempts."""

Read = Callable[[str, bool], Coroutine[Any, Any, None]]
ReadOn = Callable[[Prompt], Coroutine[Any, Any, None]]

_log = logging.getLogger(__name__)


class Readings:
    """The prompts that are to be read. `read` reads a beginning, and keeps it on disk if its second argument says so; `read_on` reads a
    conversation."""

    def __init__(self, background: Background, read: Read, read_on: ReadOn, *, pause_s: float = PAUSE_S) -> None:
        self.background, self._read, self._read_on, self._pause_s = background, read, read_on, pause_s
        self._wanted: OrderedDict[str, bool] = OrderedDict()
        self._conversations: OrderedDict[str, Prompt] = OrderedDict()
        """The newest conversation of each family, if it is to be read: a family has one slot."""

        self._came = asyncio.Event()

    @property
    def waiting(self) -> int:
        """Number of prompts that are not read yet, with the one that is being read."""
        return len(self._wanted) + len(self._conversations)

    def want(self, family: str, *, keep: bool) -> None:
        """Have a beginning read as soon as nothing else is asked for."""
        self._wanted[family] = keep or self._wanted.get(family, False)
        self._wanted.move_to_end(family)
        while len(self._wanted) > WANTED_LIMIT:
            self._wanted.popitem(last=False)
        self._came.set()

    def want_conversation(self, prompt: Prompt) -> None:
        """Have a conversation read up to its end as soon as nothing else is asked for; the one of its family before it no longer is."""
        self._conversations[prompt.family] = prompt
        self._conversations.move_to_end(prompt.family)
        while len(self._conversations) > WANTED_LIMIT:
            self._conversations.popitem(last=False)
        self._came.set()

    def forget_conversation(self, family: str) -> None:
        """Read no conversation of a family: the model is asked, and reads what it is asked."""
        self._conversations.pop(family, None)

    async def run(self) -> None:
        """Read until cancelled, conversations and the newest wish first: that is what a user talks to now."""
        while True:
            while not self._wanted and not self._conversations:
                self._came.clear()
                await self._came.wait()
            if self._conversations:
                prompt = next(reversed(self._conversations.values()))
                await self._until_read(partial(self._wants, prompt), partial(self._read_if_wanted, prompt))
                if self._wants(prompt):
                    del self._conversations[prompt.family]
            else:
                family = next(reversed(self._wanted))
                await self._until_read(partial(self._wanted.__contains__, family), partial(self._read_family, family))
                self._wanted.pop(family, None)

    def _wants(self, prompt: Prompt) -> bool:
        return self._conversations.get(prompt.family) is prompt

    async def _read_if_wanted(self, prompt: Prompt) -> None:
        if self._wants(prompt):  # a live request that stopped the reading may be of this conversation
            await self._read_on(prompt)

    async def _read_family(self, family: str) -> None:
        await self._read(family, self._wanted.get(family, False))

    async def _until_read(self, wanted: Callable[[], bool], read: Callable[[], Coroutine[Any, Any, None]]) -> None:
        failed = 0
        while failed < TRIES and wanted():
            try:
                async with self.background.line.enter():
                    await self.background.made(read)
            except VoxbridgeError as error:
                failed += error.code != Code.OVERLOADED  # live calls come first, for as long as they last
                _log.debug("a prompt is not read yet: %s", error.message)
                await asyncio.sleep(self._pause_s)
            else:
                return
