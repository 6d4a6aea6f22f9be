"""Sessions whose worker died: finding them and ending them, since nobody else will tell their clients.

Nobody holds the lease of an orphan though somebody once did. Any worker may end it: the lease says which one, and the fence on
the log keeps out an owner that was only thought dead. A crash here leaves the orphan to the next look.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection
from typing import Any, Final

from services.voice import core, inputs
from services.voice.session import Workplace
from services.voice.state import State
from shared import events
from shared.errors import VoxbridgeError
from shared.events.voice import Failure, SessionEnded
from shared.step import Folded, fold
from shared.stepper import Stepper
from shared.store import ORPHAN_AGE_S, Store
from shared.writer import SessionWriter

LOOK_S: Final = 0.5
GRACE_S: Final = 1.5
"""How long a session must be seen without an owner: after an outage of Valkey a living one takes its lease again within a second."""

AT_ONCE: Final = 16
_log = logging.getLogger(__name__)


class Orphans:
    """Looks for orphans in the index of live sessions."""

    def __init__(self, place: Workplace, store: Store, *, mine: Callable[[], Collection[str]]) -> None:
        """`mine` tells the sessions of this process."""
        self._place = place
        self._store = store
        self._mine = mine

    async def watch(self) -> None:
        """Run until cancelled."""
        loop = asyncio.get_running_loop()
        seen: dict[str, float] = {}
        while True:
            await asyncio.sleep(LOOK_S)
            try:
                found = await self._store.orphans(self._place.clock.now_us())
            except VoxbridgeError:
                seen.clear()  # whoever could not renew then is given the time to do it now
                continue
            now, mine = loop.time(), set(self._mine())
            seen = {sid: seen.get(sid, now) for sid in found if sid not in mine}
            due = [sid for sid, since in seen.items() if now - since >= GRACE_S]
            for first in range(0, len(due), AT_ONCE):
                await asyncio.gather(*(self._try(sid) for sid in due[first : first + AT_ONCE]))
            for sid in due:
                del seen[sid]

    async def end(self, sid: str) -> None:
        """End a session whose lease this worker has just taken."""
        recorded = [one async for one in self._place.log.read_all(sid)]
        now = self._place.clock.now_us()
        try:
            folded = fold(core.step, core.initial(sid), inputs.Input, "voice", recorded)
        except Exception:  # noqa: BLE001 - whatever is wrong with its past, its client must be told of its end
            _log.exception("session %s cannot be folded and is ended as it is", sid)
            await self._end_unread(sid, recorded)
        else:
            if folded.state.phase == "new" and recorded and now - recorded[0].ts < ORPHAN_AGE_S * 1_000_000:
                await self._store.release_lease(sid, self._place.worker)  # its request is still on its way to a worker
                return
            if folded.state.phase == "open" or folded.missing:
                await self._end_folded(sid, folded)
        await self.forget(sid)

    async def forget(self, sid: str) -> None:
        """Take an ended session off the index, then give up its lease."""
        try:
            await self._store.session_closed(sid)
            await self._store.release_lease(sid, self._place.worker)
        except VoxbridgeError as error:
            _log.warning("session %s: %s", sid, error.message)

    async def _try(self, sid: str) -> None:
        try:
            if await self._store.acquire_lease(sid, self._place.worker) is not None:
                await self.end(sid)
        except VoxbridgeError as error:
            _log.warning("session %s lost its worker and could not be ended yet: %s", sid, error.message)
        except Exception:  # noqa: BLE001 - one orphan must not keep the others waiting
            _log.exception("session %s lost its worker and could not be ended yet", sid)

    async def _end_folded(self, sid: str, folded: Folded[State]) -> None:
        def nothing(_: Any) -> None:
            """Its effects died with its worker."""

        writer = SessionWriter(self._place.log, sid, "voice", number=folded.number, last_seq=folded.last_seq)
        for due in folded.missing:
            writer.submit(due.event, ts=due.ts, cause=due.cause)
        stepper = Stepper(core.step, folded.state, writer=writer, clock=self._place.clock, perform=nothing, taken=folded.taken)
        stepper.take(inputs.Orphaned(self._place.worker))
        await stepper.close()
        _log.warning("session %s had lost its worker and was ended", sid)

    async def _end_unread(self, sid: str, recorded: list[events.Recorded]) -> None:
        mine = [one for one in recorded if one.writer == "voice"]
        if any(isinstance(one.event, SessionEnded) for one in mine):
            return
        writer = SessionWriter(self._place.log, sid, "voice", number=len(mine), last_seq=mine[-1].seq if mine else 0)
        error = Failure(code="INTERNAL", message="The voice worker of this session died, and its past cannot be read.")
        await writer.append(SessionEnded(reason="worker_lost", error=error), ts=self._place.clock.now_us(), cause=None)
