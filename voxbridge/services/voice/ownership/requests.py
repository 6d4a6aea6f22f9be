"""Requests for sessions: taken from the durable consumer while this worker has room, and opened, left to others, or refused.

A request is acknowledged once the log names the owner of the session, so the request of a worker that dies before that goes to the next
worker. One that cannot be opened here is given back for a while; after that its client is told why.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Collection, Coroutine
from contextlib import suppress
from typing import Any, Final, Protocol

from nats.aio.msg import Msg
from nats.errors import Error as NatsError
from nats.js.client import JetStreamContext

from voxbridge.services.voice.ownership.orphans import Orphans
from voxbridge.services.voice.session.offers import Offers
from voxbridge.services.voice.session.worker import Offer, Workplace
from voxbridge.shared import events
from voxbridge.shared.bus import subjects
from voxbridge.shared.errors import VoxbridgeError
from voxbridge.shared.log import reader
from voxbridge.shared.store.store import Store

STALE_S: Final = 10
"""Seconds after which a request is not taken any more: its client has been told that no worker came."""

REFUSE_S: Final = 6
"""Seconds of age until which a request that cannot be opened here is given back; after that its client is told why."""

REFUSE_SOON_S: Final = 1
"""Seconds, as `REFUSE_S`, for an error that a retry does not fix, unless another worker has what is missing here."""

AGAIN_S: Final = 0.5
"""Seconds before a request that was given back is delivered again."""

FETCH: Final = 32
_FETCH_TIMEOUT_S: Final = 1.0
_BACK_OFF_S: Final = 0.5
_log = logging.getLogger(__name__)


class RequestHost(Protocol):
    """The process that takes the requests."""

    def room(self) -> int:
        """Return how many more sessions fit."""

    def draining(self) -> bool:
        """Tell whether this process is releasing its sessions."""

    def keep(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Run a coroutine that the process waits for before it stops."""

    async def begin(self, requested: events.Recorded, term: int, offer: Offer, failure: VoxbridgeError | None) -> bool:
        """Open a session, or refuse it because of `failure`. Returns False if nothing of it is in the log."""


class Requests:
    """The queue of requests, as one worker takes from it."""

    def __init__(self, place: Workplace, store: Store, offers: Offers, orphans: Orphans, host: RequestHost) -> None:
        self._place = place
        self._store = store
        self._offers = offers
        self._orphans = orphans
        self._host = host
        self._opening: dict[asyncio.Task[None], str] = {}

    def opening(self) -> Collection[str]:
        """Return the ids of the sessions that are being opened."""
        return self._opening.values()

    async def take_all(self, subscription: JetStreamContext.PullSubscription) -> None:
        """Take requests while there is room, until cancelled."""
        while True:
            room = self._host.room()
            if room <= 0:
                await asyncio.sleep(_BACK_OFF_S)
                continue
            try:
                for message in await subscription.fetch(min(FETCH, room), timeout=_FETCH_TIMEOUT_S):
                    if self._host.room() <= 0:  # a session was taken over from another worker in between
                        self._host.keep(self._give_back(message))
                        continue
                    task = self._host.keep(self._take(message))
                    self._opening[task] = subjects.parse_event_subject(message.subject)[0]
                    task.add_done_callback(self._opening.pop)
            except TimeoutError:
                continue
            except NatsError as error:
                _log.warning("requests cannot be read: %s; trying again", error)
                await asyncio.sleep(_BACK_OFF_S)

    async def _give_back(self, message: Msg, after_s: float | None = None) -> None:
        with suppress(NatsError):  # it is redelivered by itself, later
            await message.nak(delay=after_s)

    async def _take(self, message: Msg) -> None:
        try:
            requested = reader.decode_delivered(message)
            if reader.is_imported(message) or isinstance(requested.event, events.Unreadable):
                await message.term()
                return
            if await self._open(requested, again=message.metadata.num_delivered > 1):
                await message.ack()
            else:
                await message.nak(delay=AGAIN_S)
        except NatsError as error:
            # It is redelivered; the lease and the fence keep the session from being opened twice.
            _log.warning("a request could not be acknowledged: %s", error)
        except VoxbridgeError as error:
            _log.error("a session could not be opened and is tried again: %s", error.message)
            await self._give_back(message, AGAIN_S)
        except Exception:  # noqa: BLE001 - a failed request must not stop the others
            _log.exception("a session could not be opened")

    async def _open(self, requested: events.Recorded, *, again: bool) -> bool:
        """Open a requested session. Returns False if the request is for another worker, or for later; True if it is done with."""
        sid = requested.sid
        age_s = (self._place.clock.now_us() - requested.ts) / 1_000_000
        if age_s > STALE_S:
            _log.warning("session %s was requested %.0f s ago and is not taken", sid, age_s)
            return True
        if self._host.draining():
            return False
        term = 0
        offer = Offer()
        failure: VoxbridgeError | None = None
        try:
            taken = await self._store.acquire_lease(sid, self._place.worker)
            if taken is None:
                return False
            term = taken
            offer = await self._offers.of(requested)
        except VoxbridgeError as error:
            failure = error
        if again and (await self._place.log.position(sid, "voice"))[0]:
            await self._orphans.take(sid, term)  # the worker that took it before has died since
            return True
        if self._host.draining() or (failure is not None and age_s < (REFUSE_S if failure.retryable else REFUSE_SOON_S)):
            await self._orphans.leave(sid)
            return False
        return await self._host.begin(requested, term, offer, failure)
