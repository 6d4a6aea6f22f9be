"""Names of the things that arguments of functions name, for sessions that begin: graphs and workflows.

Owns no facts: each answer asks those who do. What cannot be asked is left out, and its arguments are as people say them.
"""

from __future__ import annotations

import asyncio
from typing import Final

import msgspec
from nats.micro.request import Request

from voxbridge.services.tools.session.library import Library
from voxbridge.shared.errors import VoxbridgeError
from voxbridge.shared.knowledge import Asks, ListGraphs
from voxbridge.shared.things import NAMES_LIMIT, Asked

GRAPHS: Final = {"search_kg": "database", "get_kg_analytics": "database", "ingest_to_kg": "database"}
WORKFLOWS: Final = {"run_workflow": "name"}
_ASKED: Final = msgspec.json.Decoder(Asked)


class Names:
    """The answers of one executor to `things.SUBJECT`."""

    def __init__(self, library: Library, knowledge: Asks) -> None:
        self._library = library
        self._knowledge = knowledge

    async def answer(self, request: Request) -> None:
        """Answer one request."""
        try:
            account = _ASKED.decode(request.data).account
        except msgspec.DecodeError as error:
            await request.respond_error("INVALID_ARGUMENT", str(error))
            return
        graphs, workflows = await asyncio.gather(self._graphs(account), self._library.workflows())
        found: dict[str, dict[str, list[str]]] = {}
        for functions, names in ((GRAPHS, graphs), (WORKFLOWS, list(workflows))):
            if names:
                found |= {function: {argument: names[:NAMES_LIMIT]} for function, argument in functions.items()}
        await request.respond(msgspec.json.encode(found))

    async def _graphs(self, account: str) -> list[str]:
        try:
            return [one.name for one in (await self._knowledge(ListGraphs(account=account))).graphs]
        except VoxbridgeError:
            return []
