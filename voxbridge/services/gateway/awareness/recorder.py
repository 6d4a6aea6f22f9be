"""Recording what clients report: into the log of their account's screen, unless the user switched the source off.

Owns the order: the switch is read from the log for every report, so that all gateways heed it at once; what slips past in between is erased
by the awareness service. Keeps nothing but counts of the last minute. A crash loses the reports that were not acknowledged: nobody reports
these pages again. The next page is reported as usual.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
import time
from collections import OrderedDict, deque
from collections.abc import Callable, Sequence
from typing import Final

from msgspec.structs import replace
from nats.errors import Error as NatsError
from nats.js.api import Header

from voxbridge.services.gateway.core.reports import SOURCE_OF
from voxbridge.shared import events
from voxbridge.shared.awareness.view import SOURCES
from voxbridge.shared.bus import subjects
from voxbridge.shared.errors import Code, Unavailable, VoxbridgeError
from voxbridge.shared.events import gateway
from voxbridge.shared.log.append_stats import is_full
from voxbridge.shared.log.reader import Log

A_MINUTE: Final = 60
"""Reports of one client in a minute."""

MINUTE_S: Final = 60.0
CLIENTS_LIMIT: Final = 4_096
"""Clients whose reports are counted; above it, the one that has been silent longest is forgotten."""

ACK_S: Final = 2.0
APPEND_S: Final = 8.0
_PAUSE_S: Final = 0.1
_log = logging.getLogger(__name__)


class Recorder:
    """The recorder of one gateway. `now` is the time in µs; `room_left` raises while the log is almost full."""

    def __init__(
        self, log: Log, now: Callable[[], int], room_left: Callable[[], None], *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.recorded = self.refused = self.off = 0
        """Reports that were recorded, that were refused by a limit, and that a switch kept out."""
        self._log = log
        self._now = now
        self._room_left = room_left
        self._clock = clock
        self._clients: OrderedDict[str, deque[float]] = OrderedDict()

    async def report(self, account: str, event: events.Event, *, client: str) -> str:
        """Record a report, and return its id; empty where its source is off. Raises `RATE_LIMITED`, `OVERLOADED` and `UNAVAILABLE`."""
        self._count(client)
        if SOURCE_OF[type(event)] in await self.switched_off(account):
            self.off += 1
            return ""
        report_id = secrets.token_hex(8)
        if isinstance(event, gateway.PageVisited):
            event = replace(event, visit_id=report_id)
        elif isinstance(event, gateway.ErrorReported):
            event = replace(event, error_id=report_id)
        await self._append(account, event)
        self.recorded += 1
        return report_id

    async def resolve(self, account: str, error_id: str) -> None:
        """Record that an error is of no more interest. Raises as `report` does."""
        self._count(f"resolve {account}")
        await self._append(account, gateway.ErrorResolved(error_id=error_id))

    async def switch(self, account: str, source: str, *, on: bool) -> Sequence[str]:
        """Switch a source on or off, and return those that are off. Raises as `report` does."""
        self._count(f"switch {account}")
        before = await self.switched_off(account)
        off = tuple(one for one in SOURCES if (one in before if one != source else not on))
        if off != tuple(before):
            await self._append(account, gateway.AwarenessSwitched(off=off))
        return off

    async def switched_off(self, account: str) -> Sequence[str]:
        """Return the sources of an account that are off. Raises `UNAVAILABLE`."""
        log_id = subjects.awareness_log(account)
        last = await self._log.last([subjects.event_subject(log_id, "gateway", visible=False, event_type="awareness.switched")])
        return last[-1].event.off if last and isinstance(last[-1].event, gateway.AwarenessSwitched) else ()

    def _count(self, client: str) -> None:
        now = self._clock()
        times = self._clients.setdefault(client, deque())
        self._clients.move_to_end(client)
        while len(self._clients) > CLIENTS_LIMIT:
            self._clients.popitem(last=False)
        while times and times[0] <= now - MINUTE_S:
            times.popleft()
        if len(times) >= A_MINUTE:
            self.refused += 1
            message = f"A client may report {A_MINUTE} pages, errors and facts a minute; what is more is dropped."
            again_ms = round((times[0] + MINUTE_S - now) * 1_000)
            raise VoxbridgeError(Code.RATE_LIMITED, message, field="awareness", limit=A_MINUTE, retry_after_ms=again_ms)
        times.append(now)
        self._room_left()

    async def _append(self, account: str, event: events.Event) -> None:
        log_id = subjects.awareness_log(account)
        event_id = f"{log_id}.gateway.{secrets.token_hex(8)}.0"
        kind = events.kind_of(event)
        payload = events.encode(event, event_id=event_id, sid=log_id, ts=self._now(), cause=None)
        subject = subjects.event_subject(log_id, kind.writer, kind.visible, kind.name)
        end = self._clock() + APPEND_S
        while True:
            try:
                await self._log.js.publish(subject, payload, timeout=ACK_S, headers={Header.MSG_ID.value: event_id})
            except (TimeoutError, NatsError) as error:
                if is_full(error) or self._clock() + _PAUSE_S >= end:
                    raise Unavailable("The event log did not take the report, or did not say so.", retry_after_ms=1_000) from error
                _log.warning("a report is offered to the log again: %s", error or type(error).__name__)
                await asyncio.sleep(_PAUSE_S)
            else:
                return
