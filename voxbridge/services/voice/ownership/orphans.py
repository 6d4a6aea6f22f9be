"""Sessions whose worker is gone: finding them, and taking them over.

The leases of a worker that is known to be dead (`peers`) are taken at once; of any other worker they must have run out, so that nobody
holds what somebody once did. Any worker with room takes an orphan: the lease says which one, and the fence on the log keeps out an
owner that was only thought dead. What cannot be folded is ended, so that its client is told; where even that fails it is
tried again ever more rarely, with the lease given up in between. A crash here leaves the orphan to the next look of another worker.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Collection, Coroutine
from contextlib import suppress
from typing import Any, Final, Protocol

from voxbridge.services.voice.core import inputs, step
from voxbridge.services.voice.session import recovery
from voxbridge.services.voice.session.recovery import Past
from voxbridge.services.voice.session.worker import Workplace
from voxbridge.shared import events
from voxbridge.shared.errors import Conflict, VoxbridgeError
from voxbridge.shared.events.voice import Failure, SessionEnded
from voxbridge.shared.log.writer import SessionWriter
from voxbridge.shared.step.runner import Stepper
from voxbridge.shared.store.store import LEASE_MS, ORPHAN_AGE_S, SWEEP, Store

LOOK_S: Final = 0.2
GRACE_S: Final = 2.0
"""After an outage of Valkey, or when it has forgotten who ever held a session, a living owner takes its lease again within a
second: so long it is given."""

AT_ONCE: Final = 16
TRIES: Final = 3
"""How often a session is tried by one process before it is ended: what fails so often fails again."""

ENDINGS_S: Final = (1.0, 2.0, 4.0, 8.0, 16.0, 30.0)
"""How long each failed try to end a session is waited before the next; the last counts for all that follow."""

_log = logging.getLogger(__name__)


class House(Protocol):
    """The sessions of this process."""

    def held(self) -> Collection[str]:
        """Those that it has or is taking."""

    def room(self) -> int:
        """How many more it takes, those that are being taken over left out."""

    async def adopt(self, sid: str, term: int, past: Past, gap_ms: int) -> None:
        """Go on with a session; returns when it does."""


class _Ending:
    """A session that is to be ended, and how often that failed."""

    def __init__(self) -> None:
        self.failed = 0
        self.due = 0.0
        """When it may be tried again, on the loop's clock."""

    def put_off(self, now: float) -> None:
        """Count a failure, and wait longer than after the one before."""
        self.due = now + ENDINGS_S[min(self.failed, len(ENDINGS_S) - 1)]
        self.failed += 1


class Orphans:
    """Looks for orphans in the index of live sessions."""

    def __init__(self, place: Workplace, store: Store, house: House) -> None:
        self._place = place
        self._store = store
        self._house = house
        self._free: dict[str, float] = {}
        """Since when each orphan is seen without an owner, on the loop's clock; of this pass through the index, and of the one before."""

        self._free_before: dict[str, float] = {}
        self._owners: set[str] = set()
        self._owners_before: set[str] = set()
        self._place_in_index = 0
        self._live = 0
        self._looked = False
        self._stopped = asyncio.Event()
        self._trouble = -GRACE_S
        self._failures: dict[str, int] = {}
        self._endings: dict[str, _Ending] = {}
        self._taking: dict[str, asyncio.Task[None]] = {}
        self._turn = asyncio.Semaphore(AT_ONCE)
        self._folding = asyncio.Lock()
        """One session is folded at a time: with several, the loop would wait for all of their threads whenever it wants the interpreter."""

    async def watch(self) -> None:
        """Run until `stop`; returns when nothing is being taken over any more."""
        while not self._stopped.is_set():
            await self._look()
            with suppress(TimeoutError):
                async with asyncio.timeout(LOOK_S):
                    await self._stopped.wait()
        while self._taking:
            await asyncio.wait(self._taking.values())

    def stop(self) -> None:
        """Take over no more."""
        self._stopped.set()

    def taking(self) -> Collection[str]:
        """The sessions that are being taken over."""
        return self._taking.keys()

    def released(self, sid: str) -> None:
        """A worker gave this session up a moment ago."""
        if sid not in self._house.held():
            self._begin(sid)

    def handed(self, sid: str) -> None:
        """A worker gave this session up for this one, which has its lease already. Not taken, the lease runs out."""
        if sid not in self._house.held():
            self._begin(sid, handed=True)

    async def forget(self, sid: str) -> None:
        """Take an ended session off the index, then give up its lease."""
        try:
            await self._store.session_closed(sid)
            await self._store.release_lease(sid, self._place.worker)
        except VoxbridgeError as error:
            _log.warning("session %s: %s", sid, error.message)

    def owners(self) -> set[str]:
        """The workers that held sessions when those were last looked at."""
        return self._owners | self._owners_before

    def live(self) -> int:
        """The sessions that any worker has, or should have, as they were last counted."""
        return self._live

    async def left_by(self, worker: str) -> None:
        """A worker is known to be dead: take what it holds, as far as there is room. Raises `UNAVAILABLE`."""
        mine = self._house.held()
        for sid in await self._store.held_by(worker):
            if sid not in mine:
                self._begin(sid, dead=worker)

    async def _look(self) -> None:
        """Look at the next part of the index."""
        now = asyncio.get_running_loop().time()
        try:
            found = await self._store.sweep(self._place.clock.now_us(), first=self._place_in_index)
        except VoxbridgeError:
            self._trouble = now  # whoever could not renew then is given the time to do it now
            self._free, self._free_before, self._place_in_index = {}, {}, 0
            return
        first = now if self._looked else now - LEASE_MS / 1_000
        self._looked = True
        self._owners.update(found.owners)
        mine = self._house.held()
        for sid, ever in found.free.items():
            if sid in mine:
                continue
            since = self._free[sid] = min(self._free_before.get(sid, now), first)
            if sid in self._endings and now < self._endings[sid].due:
                continue
            quiet = ever and now - self._trouble >= GRACE_S
            if quiet or now - since >= GRACE_S:
                self._begin(sid)
        self._place_in_index += found.seen
        self._live = max(self._live, self._place_in_index)
        if found.seen < SWEEP:
            self._live, self._place_in_index = self._place_in_index, 0
            self._free, self._free_before = {}, self._free
            # One that is long due and was not free to be tried is another worker's.
            self._endings = {sid: one for sid, one in self._endings.items() if sid in self._taking or now < one.due + ENDINGS_S[-1]}
            self._owners, self._owners_before = set(), self._owners

    def _begin(self, sid: str, *, handed: bool = False, dead: str = "") -> None:
        if sid not in self._taking and not self._stopped.is_set() and self._house.room() > 0:
            task = self._taking[sid] = asyncio.create_task(self._try(sid, handed=handed, dead=dead))
            task.add_done_callback(lambda _: self._taking.pop(sid, None))

    async def _lease(self, sid: str, *, handed: bool, dead: str) -> int | None:
        if dead:
            return await self._store.seize_lease(sid, dead, self._place.worker)
        take = self._store.handed_lease if handed else self._store.acquire_lease
        return await take(sid, self._place.worker)

    async def _try(self, sid: str, *, handed: bool, dead: str) -> None:
        async with self._turn:
            try:
                term = await self._lease(sid, handed=handed, dead=dead)
                if term is None:
                    return
                await self.take(sid, term)
            except Exception as error:  # noqa: BLE001 - one orphan must not keep the others waiting
                self._failed(sid, error)
            else:
                self._failures.pop(sid, None)
                self._endings.pop(sid, None)
                return
            await self.leave(sid)

    def _failed(self, sid: str, error: Exception) -> None:
        """Say what went wrong, and count what would go wrong again."""
        ending = self._endings.get(sid)
        if ending is not None:
            ending.put_off(asyncio.get_running_loop().time())
            if ending.failed == 1:
                foreseen = isinstance(error, VoxbridgeError)
                _log.warning("session %s could not be ended; it is tried again, ever more rarely: %s", sid, error, exc_info=not foreseen)
            return
        match error:
            case Conflict():
                _log.info("session %s: its log went on while it was read: %s", sid, error.message)
            case VoxbridgeError():
                _log.warning("session %s lost its worker and could not be taken over yet: %s", sid, error.message)
                if not error.retryable:
                    self._failures[sid] = self._failures.get(sid, 0) + 1
            case _:
                _log.error("session %s lost its worker and could not be taken over", sid, exc_info=error)
                self._failures[sid] = self._failures.get(sid, 0) + 1

    async def leave(self, sid: str) -> None:
        """Give up a lease."""
        try:
            await self._store.release_lease(sid, self._place.worker)
        except VoxbridgeError as error:
            _log.warning("session %s: %s", sid, error.message)

    async def take(self, sid: str, term: int) -> None:
        """Take over a session whose lease this worker has just taken. Raises what keeps it from that."""
        recorded = [one async for one in self._place.log.read_all(sid)]
        now = self._place.clock.now_us()
        try:
            async with self._folding:
                found = await recovery.read(sid, recorded)
        except Exception:  # noqa: BLE001 - whatever is wrong with its past, its client must be told of its end
            if sid not in self._endings:
                _log.exception("session %s cannot be folded and is ended as it is", sid)
            await self._end(sid, self._end_unread(sid, recorded))
            return
        state = found.folded.state
        if state.phase == "new" and recorded and now - recorded[0].ts < ORPHAN_AGE_S * 1_000_000:
            await self.leave(sid)  # its request is still on its way to a worker
        elif state.phase != "open":
            await self._end(sid, self._complete(sid, found))
        elif self._failures.get(sid, 0) >= TRIES:
            await self._end(sid, self._complete(sid, found, inputs.Orphaned(self._place.worker)))
        else:
            gap_ms = self._gap_ms(sid, found, now)
            _log.warning("session %s lost its worker %d ms ago and is carried on", sid, gap_ms)
            await self._house.adopt(sid, max(term, state.term + 1), found, gap_ms)

    def _gap_ms(self, sid: str, found: Past, now: int) -> int:
        """How long nobody held the session: since its worker last wrote, or, where it had nothing to write, since its lease ran out."""
        gap_ms = max(0, now - found.alive_at) // 1_000
        since = self._free.get(sid, self._free_before.get(sid))
        if since is None or found.folded.state.released:
            return gap_ms
        return min(gap_ms, LEASE_MS + round((asyncio.get_running_loop().time() - since) * 1_000))

    async def _end(self, sid: str, work: Coroutine[Any, Any, None]) -> None:
        """Have the end of a session written; until it is, its tries are counted. Raises what keeps it from that."""
        self._endings.setdefault(sid, _Ending())
        await work
        self._failures.pop(sid, None)
        self._endings.pop(sid, None)
        await self.forget(sid)

    async def _complete(self, sid: str, found: Past, *more: Any) -> None:
        """Write what a crash kept from the log, and what comes of `more` inputs."""

        def nothing(_: Any) -> None:
            """Its effects died with its worker."""

        folded = found.folded
        writer = SessionWriter(self._place.log, sid, "voice", number=folded.number, last_seq=folded.last_seq)
        for due in folded.missing:
            writer.submit(due.event, ts=due.ts, cause=due.cause)
        stepper = Stepper(step.step, folded.state, writer=writer, clock=self._place.clock, perform=nothing, taken=folded.taken)
        try:
            for input in more:
                stepper.take(input)
        finally:
            await stepper.close()  # nothing is written once the lease is given up

    async def _end_unread(self, sid: str, recorded: list[events.Recorded]) -> None:
        mine = [one for one in recorded if one.writer == "voice"]
        if not any(isinstance(one.event, SessionEnded) for one in mine):
            writer = SessionWriter(self._place.log, sid, "voice", number=len(mine), last_seq=mine[-1].seq if mine else 0)
            error = Failure(code="INTERNAL", message="The voice worker of this session died, and its past cannot be read.")
            ended = SessionEnded(reason="worker_lost", error=error)
            await writer.append(ended, ts=self._place.clock.now_us(), cause=None)
