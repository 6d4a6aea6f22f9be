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
from collections.abc import Callable, Coroutine, Iterable, Sequence
from contextlib import suppress
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Final

import msgspec

from voxbridge.services.models.choice.router import Known
from voxbridge.services.models.core import phrasings
from voxbridge.services.models.core.chatml import Prompt
from voxbridge.services.models.engines.background import Background
from voxbridge.shared.errors import Code, VoxbridgeError

KEPT: Final = 512
"""Functions whose requests are kept; that of the one that was offered longest ago goes first."""

WAITING_LIMIT: Final = 256
"""Functions that wait for their requests. Beyond that the others have none."""

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
        self._wanted: OrderedDict[str, Known] = OrderedDict()
        self._came = asyncio.Event()

    @property
    def waiting(self) -> int:
        """Number of functions whose requests are not written yet."""
        return len(self._wanted)

    def told(self, functions: Sequence[Known]) -> list[Known] | None:
        """Return functions with the requests that were written for those that bring none, or None while some of these are not written:
        they will be, as soon as nothing else is asked for."""
        missing = [one for one in functions if not one.utterances and self._key(one) not in self._kept]
        self._want(missing)
        if any(self._key(one) in self._wanted for one in missing):
            return None
        return [one if one.utterances else self._with(one) for one in functions]

    def _with(self, function: Known) -> Known:
        key = self._key(function)
        if not self._kept.get(key):
            return function
        self._kept.move_to_end(key)
        return msgspec.structs.replace(function, utterances=self._kept[key], written=True)

    def _want(self, functions: Iterable[Known]) -> None:
        for function in functions:
            if len(self._wanted) >= WAITING_LIMIT:
                break
            self._wanted.setdefault(self._key(function), function)
            self._came.set()

    def _key(self, function: Known) -> str:
        text = phrasings.prompt(function.name, function.description).text
        return sha256(f"{self._model}\n{text}".encode()).hexdigest()[:32]

    async def run(self) -> None:
        """Write until cancelled."""
        while True:
            while not self._wanted:
                self._came.clear()
                await self._came.wait()
            key, function = next(iter(self._wanted.items()))
            said = await self._written(function)
            self._keep(key, said)
            del self._wanted[key]
            if not self._wanted:
                await asyncio.to_thread(self._save)

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

    def _keep(self, key: str, said: tuple[str, ...]) -> None:
        self._kept[key] = said
        while len(self._kept) > KEPT:
            self._kept.popitem(last=False)

    def _read(self) -> OrderedDict[str, tuple[str, ...]]:
        try:
            return OrderedDict(msgspec.json.decode(self._file.read_bytes(), type=dict[str, tuple[str, ...]]))
        except (OSError, msgspec.DecodeError):
            return OrderedDict()

    def _save(self) -> None:
        new = self._file.with_suffix(".new")
        with suppress(OSError):
            with os.fdopen(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
                file.write(msgspec.json.encode({key: said for key, said in self._kept.items() if said}))
            new.replace(self._file)
