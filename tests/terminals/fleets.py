"""A fleet of real terminals, with its holder, in a folder of its own; both end with the test."""

from __future__ import annotations

import asyncio
import os
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any, TypeVar
from unittest.mock import patch

import msgspec
from nats.aio.client import Client

from voxbridge.services.terminals.fleet import Fleet
from voxbridge.services.terminals.holder import holder
from voxbridge.services.terminals.life import Lives
from voxbridge.services.terminals.tape import Limits, Tapes
from voxbridge.shared.clock import SystemClock
from voxbridge.shared.log.reader import Log
from voxbridge.shared.terminals import questions as asked
from voxbridge.shared.terminals.live import Output
from voxbridge.shared.terminals.model import Card

_A = TypeVar("_A", bound=msgspec.Struct)
BY = "tester"
KEPT = Limits(hours=24, size=256_000_000)


class Viewed:
    """A fleet, and what its viewers were sent."""

    def __init__(self, folder: Path, limits: Limits) -> None:
        self.outputs: dict[str, list[Output]] = {}
        self.cards: dict[str, Card | None] = {}
        self.lives = Lives(Log(Client()), SystemClock(), "test")
        """Never opened: what is noticed waits for a log that is not there."""

        self.tapes = Tapes(folder, SystemClock(), limits)
        self.fleet = Fleet(folder, SystemClock(), self._published, self.cards.__setitem__, self.lives, self.tapes)

    def _published(self, terminal: str, output: Output) -> None:
        self.outputs.setdefault(terminal, []).append(output)

    async def ask(self, question: asked.Question[_A]) -> _A:
        """Ask the fleet, through the bytes that a question has on the bus."""
        again = msgspec.json.decode(msgspec.json.encode(question), type=type(question))
        answer = await self.fleet.answer(again)
        return msgspec.json.decode(msgspec.json.encode(answer), type=question.answer)  # type: ignore[return-value]

    async def start(self, definition: str = "bash", **fields: Any) -> str:
        """Start a terminal; return its token once its program shows a prompt."""
        card = await self.ask(asked.Start(by=BY, definition=definition, **fields))
        if definition == "bash":
            waited = await self.ask(asked.Wait(by=BY, terminal=card.id, until="idle", timeout_s=15))
            assert waited.met, await self.text(card.id)
        return card.id

    async def send(self, terminal: str, text: str, **fields: Any) -> asked.Sent:
        """Send a text."""
        return await self.ask(asked.Send(by=BY, terminal=terminal, text=text, **fields))

    async def wait(self, terminal: str, until: asked.Until, text: str = "", timeout_s: float = 15) -> asked.Waited:
        """Wait until something is so, and fail with the screen if it is not."""
        waited = await self.ask(asked.Wait(by=BY, terminal=terminal, until=until, text=text, timeout_s=timeout_s))
        assert waited.met, (waited.state, await self.text(terminal))
        return waited

    async def text(self, terminal: str, view: asked.View = "screen", **fields: Any) -> str:
        """Return a view as text."""
        return (await self.ask(asked.Read(by=BY, terminal=terminal, view=view, **fields))).text

    async def card(self, terminal: str) -> Card:
        """Return a card."""
        return next(one for one in (await self.ask(asked.ListTerminals(by=BY))).terminals if one.id == terminal)


@contextmanager
def held_folder() -> Iterator[Path]:
    """Make a private folder, and end the holder that was started in it. Its path is short, as a socket's must be.

    It is the home of the programs, too: what a developer's own shell does as it starts has no part in a test.
    """
    with tempfile.TemporaryDirectory(prefix="vxt-") as named, patch.dict(os.environ, HOME=named):
        folder = Path(named)
        try:
            yield folder
        finally:
            assert holder.stop(folder) == 0


@asynccontextmanager
async def fleet(folder: Path, *, limits: Limits = KEPT) -> AsyncIterator[Viewed]:
    """Open the fleet of a folder; its terminals live on after it."""
    viewed = Viewed(folder, limits)
    await viewed.fleet.open()
    try:
        yield viewed
    finally:
        await viewed.fleet.close()
        await viewed.lives.close(0)
        await asyncio.sleep(0)
