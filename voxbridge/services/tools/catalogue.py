"""The functions that an executor can run: those of its packs, and sets of others that come and go while it runs.

Owns the names, so that no two functions share one, and tells who waits that something changed. Does not own where a set comes from. Keeps
nothing: after a crash the packs are loaded again, and each source offers its set anew.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from zlib import crc32

import msgspec
from nats.micro.request import Request

from voxbridge.services.tools.registry import Tool
from voxbridge.shared.agents.functions import PACKS_FIGURE, Function
from voxbridge.shared.errors import Code, VoxbridgeError


class Catalogue(Mapping[str, Tool]):
    """The tools by name. It is one mapping for its whole life, so whoever holds it sees each change."""

    def __init__(self, built_in: Mapping[str, Tool]) -> None:
        self._sets: dict[str, Mapping[str, Tool]] = {"": dict(built_in)}
        self._tools: dict[str, Tool] = dict(built_in)
        self._changed = asyncio.Event()
        self._away: dict[str, str] = {}
        self.version = 1

    def __getitem__(self, name: str) -> Tool:
        return self._tools[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._tools)

    def __len__(self) -> int:
        return len(self._tools)

    def figures(self) -> Mapping[str, float]:
        """Return how many functions there are, and a check sum of those of the packs: executors of one installation have the same."""
        packs = sorted((tool.name, tool.definition) for tool in self._sets[""].values())
        return {"functions": len(self), PACKS_FIGURE: crc32(msgspec.json.encode(packs))}

    def cards(self) -> list[Function]:
        """Return the entries for people and models, in the order of the sets."""
        return [tool.card() for tool in self._tools.values()]

    async def answer(self, request: Request) -> None:
        """Answer `vx.svc.tools.list`: the functions as JSON."""
        await request.respond(msgspec.json.encode(self.cards()))

    def explain(self, prefix: str, why: str) -> None:
        """Have `why` told of functions whose names begin with `prefix` and that are not there; an empty text takes that back."""
        self._away.pop(prefix, None)
        if why:
            self._away[prefix] = why

    def why_not(self, name: str) -> str:
        """Return what to tell of a function that is not there; empty where nothing is known of it."""
        return next((why for prefix, why in self._away.items() if name.casefold().startswith(prefix.casefold())), "")

    def replace(self, source: str, tools: Iterable[Tool]) -> None:
        """Put these tools in place of those that `source` offered before; none of them takes a source out.

        Raises `CONFLICT` naming a tool that another source has, or that is there twice, and leaves the catalogue as it was.
        """
        if not source:
            raise ValueError("the functions of the packs stay as they are")
        offered: dict[str, Tool] = {}
        taken = {name for other, known in self._sets.items() if other != source for name in known}
        for tool in tools:
            if tool.name in taken or tool.name in offered:
                message = f"{source} offers a function {tool.name}, and there is one of that name already. Rename one of the two."
                raise VoxbridgeError(Code.CONFLICT, message, field=tool.name)
            offered[tool.name] = tool
        if offered == self._sets.get(source, {}):
            return
        self._sets.pop(source, None)
        if offered:
            self._sets[source] = offered
        self._tools = {name: tool for known in self._sets.values() for name, tool in known.items()}
        self.version += 1
        self._changed.set()

    async def changed(self, since: int, timeout_s: float) -> bool:
        """Wait until the version is another than `since`, for `timeout_s` at most; return whether it is."""
        with suppress(TimeoutError):
            async with asyncio.timeout(timeout_s):
                while self.version == since:
                    self._changed.clear()
                    await self._changed.wait()
        return self.version != since
