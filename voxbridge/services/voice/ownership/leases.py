"""Leases of a worker's sessions: renewed each second, taken again when they ran out, and the death of gateways noticed on the way.

A session whose lease another worker has taken is given up. While Valkey is away, calls go on: the fence on the log keeps other workers out,
and no gateway counts as missing. A crash loses the leases, which run out.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from typing import Final

from voxbridge.services.voice.core import inputs
from voxbridge.services.voice.session.session import Session
from voxbridge.services.voice.session.worker import Workplace
from voxbridge.shared.errors import Conflict, VoxbridgeError
from voxbridge.shared.store.store import Store

RENEW_S: Final = 1.0
LOST_LOOKS: Final = 2
"""Consecutive checks that must find a gateway missing before it counts as dead."""
UNKNOWN_S: Final = 3.0
"""Seconds after a failed call to Valkey during which no gateway counts as missing."""

_log = logging.getLogger(__name__)


class Leases:
    """The leases of `sessions`, and of those that are being taken over (`taking`)."""

    def __init__(self, place: Workplace, store: Store, sessions: Mapping[str, Session], taking: Callable[[], Iterable[str]]) -> None:
        self.held = True
        """False while leases cannot be renewed."""

        self._place = place
        self._store = store
        self._sessions = sessions
        self._taking = taking
        self._missing: dict[str, int] = {}
        self._unknown_until = 0.0
        self._stopped = asyncio.Event()

    def stop(self) -> None:
        """Have `keep` end."""
        self._stopped.set()

    async def keep(self) -> None:
        """Renew the leases, look at the gateways, and check the bounds of the sessions, until `stop`."""
        while not self._stopped.is_set():
            await self.renew()
            await self._look_at_gateways()
            for session in list(self._sessions.values()):
                session.check_bounds(self._place.clock.now_us())
            with suppress(TimeoutError):
                async with asyncio.timeout(RENEW_S):
                    await self._stopped.wait()

    async def renew(self) -> None:
        """Renew the leases once, and take those again that ran out."""
        try:
            await self._store.worker_listens(self._place.worker, self._place.clock.now_us())
            for sid in await self._store.renew_leases([*self._sessions, *self._taking()], self._place.worker):
                await self.regain(sid)
            self.held = True
        except VoxbridgeError as error:
            # The fence on the log still keeps other workers out, so the calls go on.
            self.held = False
            _log.warning("leases cannot be renewed: %s", error.message)

    async def _look_at_gateways(self) -> None:
        """Tell the sessions whose gateway died, since it could not report that their clients are gone."""
        waiting: dict[str, list[Session]] = {}
        for session in self._sessions.values():
            if session.state.client.gateway and not session.state.client.away_since:
                waiting.setdefault(session.state.client.gateway, []).append(session)
        now = asyncio.get_running_loop().time()
        alive: list[bool] = []
        try:
            alive = await self._store.gateways_alive(list(waiting))
        except VoxbridgeError:
            self._unknown_until = now + UNKNOWN_S
        if now < self._unknown_until:
            self._missing.clear()
            return
        gone = [gateway for gateway, lives in zip(waiting, alive, strict=True) if not lives]
        self._missing = {gateway: self._missing.get(gateway, 0) + 1 for gateway in gone}
        for gateway, looks in self._missing.items():
            if looks >= LOST_LOOKS:
                for session in waiting[gateway]:
                    session.take(inputs.GatewayLost(gateway))

    async def regain(self, sid: str) -> None:
        """Take a lease again that ran out or was forgotten; give the session up if another worker has taken it."""
        session = self._sessions.get(sid)
        if session is None:
            return
        term = await self._store.regain_lease(sid, self._place.worker, floor=session.term)
        if term is not None:
            session.term = term
        else:
            session.give_up(Conflict(f"Another worker holds the lease of session {sid}."))
