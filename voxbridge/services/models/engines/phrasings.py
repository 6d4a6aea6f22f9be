"""Requests written for functions that bring none, while nothing is asked of the model.

Owns which functions wait for theirs, the loop that has them written one at a time, and the file that keeps them. Does not own when that may
be (`background`), nor the words of the prompt (`core.phrasings`). A live request stops the writing, which begins anew afterwards. A crash
loses what was not in the file yet; the next request that offers such a function names it again.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections import OrderedDict
from collections.abc import Callable, Coroutine, Sequence
from contextlib import suppress
from functools import lru_cache, partial
from hashlib import sha256
from pathlib import Path
from typing import Final

import msgspec

from voxbridge.services.models.choice.router import Known
from voxbridge.services.models.core import phrasings
from voxbridge.services.models.core.chatml import Prompt
from voxbridge.services.models.engines.background import Background
from voxbridge.shared.errors import Code, VoxbridgeError

SET_LIMIT: Final = 128
"""Functions of one set that are given requests; the others are known by their descriptions."""

WAITING_LIMIT: Final = 256
"""Functions that wait for their requests. Those beyond it are named again by the next request that offers them."""

KEPT: Final = 512
"""Functions whose requests are kept; those of the one that was offered longest ago go first."""

TRIES: Final = 3
"""Times that writing may fail before a function goes without requests until the next start."""

PAUSE_S: Final = 1.0
"""Seconds between two attempts."""

Write = Callable[[Prompt], Coroutine[None, None, str]]
"""Has the model answer a prompt."""

_PASSING: Final = (Code.OVERLOADED, Code.UNAVAILABLE)
"""Reasons that are no failure: live calls come first for as long as they last, and an engine that is gone is started again."""

_log = logging.getLogger(__name__)


class Phrasings:
    """The requests that were written. `file` keeps them; without a disk they are written again by each process. `model` identifies the
    weights."""

    def __init__(self, background: Background, write: Write, file: Path, model: str, *, pause_s: float = PAUSE_S) -> None:
        self.background, self._write, self._file, self._model, self._pause_s = background, write, file, model, pause_s
        self._kept: OrderedDict[str, tuple[str, ...]] = self._read()
        self._settled = frozenset(self._kept)
        """Keys of what was written when nothing waited: a router for each single one would take seconds to train."""

        self._wanted: OrderedDict[str, Known] = OrderedDict()
        self._came = asyncio.Event()

    @property
    def waiting(self) -> int:
        """Number of functions whose requests are not written yet."""
        return len(self._wanted)

    def told(self, functions: Sequence[Known]) -> list[Known]:
        """Return functions with the requests that were written for those that bring none. What is missing will be written as soon as
        nothing else is asked for, and told when all of it is."""
        keys = {one.name: _key(self._model, one.name, one.description) for one in _bare(functions)}
        missing = [one for one in _bare(functions) if keys[one.name] not in self._kept]
        for one in missing[: max(0, WAITING_LIMIT - len(self._wanted))]:
            self._wanted.setdefault(keys[one.name], one)
            self._came.set()
        return [self._with(one, keys.get(one.name, "")) for one in functions]

    def _with(self, function: Known, key: str) -> Known:
        said = self._kept.get(key) if key in self._settled else None
        if not said:
            return function
        self._kept.move_to_end(key)
        return msgspec.structs.replace(function, utterances=said, written=True)

    async def run(self) -> None:
        """Write until cancelled."""
        while True:
            while not self._wanted:
                self._came.clear()
                await self._came.wait()
            key, function = next(iter(self._wanted.items()))
            said = await self._written(function)
            self._kept[key] = said
            while len(self._kept) > KEPT:
                self._kept.popitem(last=False)
            await asyncio.to_thread(self._save, {kept: lines for kept, lines in self._kept.items() if lines})
            del self._wanted[key]
            if not self._wanted:
                self._settled = frozenset(self._kept)

    async def _written(self, function: Known) -> tuple[str, ...]:
        failed = 0
        prompt = phrasings.prompt(function.name, function.description)
        while failed < TRIES:
            try:
                async with self.background.line.enter():
                    answer = await self.background.made(partial(self._write, prompt))
            except VoxbridgeError as error:
                failed += error.code not in _PASSING
                _log.debug("requests for %s are not written yet: %s", function.name, error.message)
                await asyncio.sleep(self._pause_s)
            else:
                return phrasings.read(answer)
        return ()

    def _read(self) -> OrderedDict[str, tuple[str, ...]]:
        try:
            return OrderedDict(msgspec.json.decode(self._file.read_bytes(), type=dict[str, tuple[str, ...]]))
        except (OSError, msgspec.DecodeError):
            return OrderedDict()

    def _save(self, kept: dict[str, tuple[str, ...]]) -> None:
        new = self._file.with_suffix(".new")
        with suppress(OSError):
            with os.fdopen(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
                file.write(msgspec.json.encode(kept))
            new.replace(self._file)


def _bare(functions: Sequence[Known]) -> list[Known]:
    """Return the functions that bring no requests and are given some."""
    return [one for one in functions if not one.utterances][:SET_LIMIT]


@lru_cache(maxsize=2 * KEPT)
def _key(model: str, name: str, description: str) -> str:
    """Return the key of a function's requests. They depend on the weights and on every word of the prompt."""
    return sha256(f"{model}\n{phrasings.prompt(name, description).text}".encode()).hexdigest()[:32]
