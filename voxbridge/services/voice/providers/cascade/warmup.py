"""Warm-up of the language model: it reads the standing part of a conversation before a user waits for its answer.

A cold prompt of 400 tokens costs a small machine seconds, a warm one nothing. A right answer never depends on this, so
a failure is logged and retried, and a crash loses a few seconds of one answer.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from typing import Final

from voxbridge.services.voice.providers.cascade.models import Models
from voxbridge.shared.agents.functions import Function
from voxbridge.shared.errors import VoxbridgeError
from voxbridge.shared.store.store import Store

LOOK_S: Final = 2.0
"""Seconds between two checks whether the catalogue changed or the model came back."""

LOOKS_UNTIL_REFRESHED: Final = 60
"""Number of checks after which the prompt is read again, in case the model was restarted or forgot it. One that did not
takes 0.2 s of a processor for it."""

READ_AHEAD_TRIES: Final = 3

_log = logging.getLogger(__name__)


class Warmup:
    """Warm-up of the installation's standing prompt, repeated whenever its functions change."""

    def __init__(self, models: Models, store: Store, model: str, instructions: str, *, idle: Callable[[], bool]) -> None:
        """Create the warm-up. `idle` tells whether no conversation is going on, whose prompt the model would forget for this one."""
        self._models = models
        self._store = store
        self._model = model
        self._instructions = instructions
        self._warm: Sequence[Function] | None = None
        self._standing: Sequence[Function] = ()
        self._reading = asyncio.Lock()
        self._reading_of_session = asyncio.Lock()
        self._idle = idle

    async def keep(self) -> None:
        """Run until cancelled."""
        looks = 0
        while True:
            await self._look(again=looks % LOOKS_UNTIL_REFRESHED == 0 and self._idle())
            looks += 1
            await asyncio.sleep(LOOK_S)

    async def warm_session(self, instructions: str, functions: Sequence[Function], *, shared: bool = True) -> None:
        """Warm the prompt of one session, while its greeting plays.

        Skips the standing prompt, which `keep` reads, and skips all while the prompt of another session is read. One beside the standing
        prompt is asked for at once: its router is trained meanwhile, which the first answer would wait for.
        """
        standing = instructions == self._instructions and _names(functions) == _names(self._standing)
        if not standing and not self._reading_of_session.locked():
            await self._read(instructions, functions, shared=shared, lock=self._reading_of_session)

    async def read_ahead(self, instructions: str, functions: Sequence[Function], *, shared: bool = True) -> None:
        """Warm the prompt of an agent who may be handed a session, after a session's prompt that is being read: no user waits for this one
        yet. If a busy machine does not finish it in one request, the next request finds part of it read."""
        for _ in range(READ_AHEAD_TRIES):
            if await self._read(instructions, functions, shared=shared, lock=self._reading_of_session):
                return

    async def _look(self, *, again: bool) -> None:
        try:
            functions = [function for function in await self._store.functions() if function.listed]
        except VoxbridgeError:
            return
        self._standing = functions
        if (again or functions != self._warm) and await self._read(self._instructions, functions, lock=self._reading):
            self._warm = functions

    async def _read(self, instructions: str, functions: Sequence[Function], *, lock: asyncio.Lock, shared: bool = True) -> bool:
        try:
            async with lock:
                await self._models.warm(self._model, instructions, functions, shared=shared)
        except VoxbridgeError as error:
            _log.debug("the language model is not warm yet: %s", error.message)
            return False
        return True


def _names(functions: Sequence[Function]) -> list[str]:
    return [function.name for function in functions]
