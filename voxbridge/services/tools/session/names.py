"""Names of the things that arguments of functions name, for sessions that begin: graphs, workflows and terminals.

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
from voxbridge.shared.secrets.access_tokens import LOCAL
from voxbridge.shared.terminals.client import Asks as AsksTerminals
from voxbridge.shared.terminals.questions import ListTerminals
from voxbridge.shared.things import ANSWER_S, NAMES_LIMIT, Asked

GRAPHS: Final = {"search_kg": "database", "get_kg_analytics": "database", "ingest_to_kg": "database"}
WORKFLOWS: Final = {"run_workflow": "name"}
TERMINALS: Final = {
    **dict.fromkeys(
        ("read_terminal", "send_to_terminal", "run_in_terminal", "send_key", "wait_for_terminal", "close_terminal", "type_into_terminal"),
        ("terminal",),
    ),
    "forward_output": ("terminal", "source"),
}
AGENTS: Final = ("Claude", "Claude Code", "Codex", "Gemini", "Cursor", "OpenCode", "Aider")
"""Coding agents that people name though none of them runs: the answer says so then."""

_ASKED: Final = msgspec.json.Decoder(Asked)


class Names:
    """The answers of one executor to `things.SUBJECT`."""

    def __init__(self, library: Library, knowledge: Asks, terminals: AsksTerminals) -> None:
        self._library = library
        self._knowledge = knowledge
        self._terminals = terminals

    async def answer(self, request: Request) -> None:
        """Answer one request."""
        try:
            account = _ASKED.decode(request.data).account
        except msgspec.DecodeError as error:
            await request.respond_error("INVALID_ARGUMENT", str(error))
            return
        graphs, workflows, terminals = await asyncio.gather(self._graphs(account), self._library.workflows(), self._running(account))
        found: dict[str, dict[str, list[str]]] = {}
        for functions, names in ((GRAPHS, graphs), (WORKFLOWS, list(workflows))):
            if names:
                found |= {function: {argument: names[:NAMES_LIMIT]} for function, argument in functions.items()}
        if terminals:
            found |= {function: dict.fromkeys(arguments, terminals[:NAMES_LIMIT]) for function, arguments in TERMINALS.items()}
        await request.respond(msgspec.json.encode(found))

    async def _graphs(self, account: str) -> list[str]:
        try:
            return [one.name for one in (await self._knowledge(ListGraphs(account=account))).graphs]
        except VoxbridgeError:
            return []

    async def _running(self, account: str) -> list[str]:
        """Return the names of the terminals, and those that agents go by; nothing for an account that does not reach them."""
        if account != LOCAL:
            return []
        try:
            async with asyncio.timeout(ANSWER_S / 2):
                cards = (await self._terminals(ListTerminals(by=LOCAL))).terminals
        except (VoxbridgeError, TimeoutError):
            cards = ()
        return list(dict.fromkeys([*(card.name for card in cards), *AGENTS]))
