"""Offers of the installation to sessions that begin: its functions, the providers that can be used, the agents asked for, recording."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from voxbridge.services.voice.audio.recorder import Recorders
from voxbridge.services.voice.core import agents
from voxbridge.services.voice.session.macros import Macros
from voxbridge.services.voice.session.names import told
from voxbridge.services.voice.session.screens import Screens
from voxbridge.services.voice.session.unheard import Unheard
from voxbridge.services.voice.session.worker import Offer, Workplace
from voxbridge.shared import events, things
from voxbridge.shared.agents.files import Agents
from voxbridge.shared.agents.functions import Function
from voxbridge.shared.agents.model import Agent, Roster
from voxbridge.shared.audio.recordings import wanted
from voxbridge.shared.events.gateway import SessionRequested
from voxbridge.shared.secrets.provider_keys import Keys
from voxbridge.shared.store.store import Store

_log = logging.getLogger(__name__)


class Facts(NamedTuple):
    """Facts of accounts that a session begins with."""

    macros: Macros
    unheard: Unheard
    screens: Screens


class Offers:
    """Maker of offers. Without `keys` no provider but the local one is offered."""

    def __init__(self, place: Workplace, store: Store, keys: Keys | None, recorders: Recorders, facts: Facts) -> None:
        config = self._config = place.config
        self._nc = place.log.nc
        self._store = store
        self._keys = keys
        self._recorders = recorders
        self._facts = facts
        self._agents = Agents(config.agents_dir)
        self._offered: tuple[tuple[Function, ...], Roster, tuple[Function, ...]] = ((), Roster(), ())

    async def of(self, requested: events.Recorded) -> Offer:
        """Return the offer for a requested session. Raises `NOT_FOUND` for an unknown agent, `UNAVAILABLE` without the store."""
        offer = await self._recorded(requested, await self._offer(requested))
        request = requested.event
        if not isinstance(request, SessionRequested) or request.mode == "echo":
            return offer
        facts, account = self._facts, request.account
        macros, unheard, screen, names = await asyncio.gather(
            facts.macros.of(account), facts.unheard.of(account), facts.screens.of(account), things.ask(self._nc, account)
        )
        shown = facts.screens.of_session(screen, account, requested.sid)
        return offer._replace(macros=macros, unheard=unheard, screen=shown, names=told(names or {}, offer.functions))

    async def _offer(self, requested: events.Recorded) -> Offer:
        functions = await self._functions()
        request = requested.event
        if not isinstance(request, SessionRequested) or self._keys is None or (request.mode in ("local", "echo") and not request.agent):
            return Offer(functions=_needed(functions, ()))
        usable = await self._keys.usable()
        keyless = self._config.named_endpoints  # an endpoint that needs a key refuses requests itself
        providers = ("local", "echo", *(name for name, has in usable.items() if has or name in keyless))
        members = self._agents.current().team(request.agent) if request.agent else None
        for name, unknown in agents.unknown_functions(members.agents if members else (), (*functions, *request.functions)):
            _log.warning("agent %s: there is no function %s; it begins without", name, ", ".join(unknown))
        return Offer(functions=_needed(functions, members.agents if members else ()), providers=providers, team=members)

    async def _functions(self) -> tuple[Function, ...]:
        """Return the catalogue without what is for the local model alone, and with the names of agents where one is an argument; the same
        object for as long as catalogue and agents are."""
        catalogue, roster = await self._store.functions(), self._agents.current()
        if catalogue is not self._offered[0] or roster is not self._offered[1]:
            bare = (msgspec.structs.replace(function, utterances=(), orders=(), local=None) for function in catalogue)
            self._offered = (catalogue, roster, tuple(_with_names(function, roster) for function in bare))
        return self._offered[2]

    async def _recorded(self, requested: events.Recorded, offer: Offer) -> Offer:
        """Return the offer with `record` set. For a recorded session, make its key first, before there is anything to seal.

        Raises `UNAVAILABLE`.
        """
        asked = requested.event.record if isinstance(requested.event, SessionRequested) else None
        record = wanted(self._config.recording, [agent.record for agent in offer.team.agents] if offer.team else [], asked)
        if record:
            await self._recorders.prepare(requested.sid)
        return offer._replace(record=record)


def _with_names(function: Function, roster: Roster) -> Function:
    """Return a function that asks an agent with the names of those that can be asked as its choices: a model makes up a name otherwise."""
    workers = [agent.name for agent in roster.agents if agent.realtime is None]
    known = {"run_agent": ("name", workers), "chat_with_expert": ("expert", [agent.name for agent in roster.agents if agent.expert])}
    argument, names = known.get(function.name, ("", []))
    properties = function.parameters.get("properties", {})
    if not names or argument not in properties:
        return function
    named = {**properties, argument: {**properties[argument], "enum": names}}
    return msgspec.structs.replace(function, parameters={**function.parameters, "properties": named})


def _needed(functions: Sequence[Function], team: Sequence[Agent]) -> tuple[Function, ...]:
    """Return the functions that a session needs to know, which its log keeps: those listed for models, and those that its agents name."""
    named = {name for agent in team for name in agent.tools or ()}
    return tuple(function for function in functions if function.listed or function.name in named)
