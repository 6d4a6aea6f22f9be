"""Offers of the installation to sessions that begin: its functions, the providers that can be used, the agents asked for, recording."""

from __future__ import annotations

import logging
from collections.abc import Sequence

import msgspec

from voxbridge.services.voice.audio.recorder import Recorders
from voxbridge.services.voice.core import agents
from voxbridge.services.voice.session.worker import Offer
from voxbridge.shared import events
from voxbridge.shared.agents.files import Agents
from voxbridge.shared.agents.functions import Function
from voxbridge.shared.agents.model import Agent
from voxbridge.shared.audio.recordings import wanted
from voxbridge.shared.config import Config
from voxbridge.shared.events.gateway import SessionRequested
from voxbridge.shared.secrets.provider_keys import Keys
from voxbridge.shared.store.store import Store

_log = logging.getLogger(__name__)


class Offers:
    """Maker of offers. Without `keys` no provider but the local one is offered."""

    def __init__(self, config: Config, store: Store, keys: Keys | None, recorders: Recorders) -> None:
        self._config = config
        self._store = store
        self._keys = keys
        self._recorders = recorders
        self._agents = Agents(config.agents_dir)
        self._offered: tuple[tuple[Function, ...], tuple[Function, ...]] = ((), ())

    async def of(self, requested: events.Recorded) -> Offer:
        """Return the offer for a requested session. Raises `NOT_FOUND` for an unknown agent, `UNAVAILABLE` without the store."""
        return await self._recorded(requested, await self._offer(requested))

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
        """Return the catalogue without utterances, which no session keeps; the same object for as long as the catalogue is."""
        catalogue = await self._store.functions()
        if catalogue is not self._offered[0]:
            self._offered = (catalogue, tuple(msgspec.structs.replace(function, utterances=()) for function in catalogue))
        return self._offered[1]

    async def _recorded(self, requested: events.Recorded, offer: Offer) -> Offer:
        """Return the offer with `record` set. For a recorded session, make its key first, before there is anything to seal.

        Raises `UNAVAILABLE`.
        """
        asked = requested.event.record if isinstance(requested.event, SessionRequested) else None
        record = wanted(self._config.recording, [agent.record for agent in offer.team.agents] if offer.team else [], asked)
        if record:
            await self._recorders.prepare(requested.sid)
        return offer._replace(record=record)


def _needed(functions: Sequence[Function], team: Sequence[Agent]) -> tuple[Function, ...]:
    """Return the functions that a session needs to know, which its log keeps: those listed for models, and those that its agents name."""
    named = {name for agent in team for name in agent.tools or ()}
    return tuple(function for function in functions if function.listed or function.name in named)
