"""Orphans, the sessions whose worker is gone: finding them, and taking them over.

The leases of a worker that is known to be dead (`peers`) are taken at once. The leases of any other worker must have run out, so that a
session that had an owner has none. Any worker with room takes an orphan. The lease decides which one, and the fence on the log keeps
out an owner that was wrongly thought dead. A session that cannot be folded is ended, so that its client is told. If even that
fails, it is retried at growing intervals, and the lease is released in between. After a crash here, another worker finds the orphan.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Collection, Coroutine
from contextlib import suppress
from typing import Any, Final, Protocol

from voxbridge.services.voice.core import inputs, step
from voxbridge.services.voice.session import recovery
from voxbridge.services.voice.session.recovery import PriorState
from voxbridge.services.voice.session.worker import Workplace
from voxbridge.shared import events
from voxbridge.shared.errors import Conflict, VoxbridgeError
from voxbridge.shared.events.voice import Failure, SessionEnded
from voxbridge.shared.log.writer import End, SessionWriter
from voxbridge.shared.step.runner import StepRunner
from voxbridge.shared.store.store import LEASE_MS, ORPHAN_AGE_S, SWEEP, Store

LOOK_S: Final = 0.2
REST_LOOK_S: Final = 1.0
"""Seconds between two looks while nobody has a session."""

GRACE_S: Final = 2.0
"""Seconds that owners get after an outage of Valkey, or when Valkey has forgotten that a session was ever held: a living owner takes
its lease again within a second."""

AT_ONCE: Final = 16
TRIES: Final = 3
"""Attempts of one process to take a session over before it ends the session: what fails this often fails again."""

ENDINGS_S: Final = (1.0, 2.0, 4.0, 8.0, 16.0, 30.0)
"""Seconds to wait after each failed attempt to end a session; the last value holds for all further attempts."""

_log = logging.getLogger(__name__)


class SessionHost(Protocol):
    """The sessions of this process."""

    def held(self) -> Collection[str]:
        """Return the sessions that this process has or is opening."""

    def room(self) -> int:
        """Return how many more sessions fit, beyond those that are being taken over."""

    async def adopt(self, sid: str, term: int, prior: PriorState, gap_ms: int) -> None:
        """Continue a session; returns when it runs again."""


class _Ending:
    """Failed attempts to end a session, and the time of the next one."""

    def __init__(self) -> None:
        self.failed = 0
        self.due = 0.0
        """Time at which the next attempt may begin, on the loop's clock."""

    def put_off(self, now: float) -> None:
        """Count a failure, and set a longer wait than after the previous one."""
        self.due = now + ENDINGS_S[min(self.failed, len(ENDINGS_S) - 1)]
        self.failed += 1


class Orphans:
    """Finder of orphans in the index of live sessions; takes them over."""

    def __init__(self, place: Workplace, store: Store, host: SessionHost) -> None:
        self._place = place
        self._store = store
        self._host = host
        self._free: dict[str, float] = {}
        """Time since which each orphan is seen without an owner, on the loop's clock; in this pass through the index, and in the last."""

        self._free_before: dict[str, float] = {}
        self._owners: set[str] = set()
        self._owners_before: set[str] = set()
        self._place_in_index = 0
        self._live = 0
        self._looked = False
        self._stopped = asyncio.Event()
        self._nudged = asyncio.Event()
        self._trouble = -GRACE_S
        self._failures: dict[str, int] = {}
        self._endings: dict[str, _Ending] = {}
        self._taking: dict[str, asyncio.Task[None]] = {}
        self._turn = asyncio.Semaphore(AT_ONCE)
        self._folding = asyncio.Lock()
        """Held during a fold, so one runs at a time: with several, the loop would wait for all of their threads to get the interpreter."""

    async def watch(self) -> None:
        """Run until `stop`; returns when no takeover is in progress any more."""
        while not self._stopped.is_set():
            await self._look()
            with suppress(TimeoutError):
                async with asyncio.timeout(LOOK_S if self._live or self._host.held() else REST_LOOK_S):
                    await self._nudged.wait()
            self._nudged.clear()
        while self._taking:
            await asyncio.wait(self._taking.values())

    def stop(self) -> None:
        """Begin no more takeovers."""
        self._stopped.set()
        self._nudged.set()

    def look_soon(self) -> None:
        """Look at the sessions now: a worker is said to be dead, and may have held its first one for less than `REST_LOOK_S`."""
        self._nudged.set()

    def taking(self) -> Collection[str]:
        """Return the sessions that are being taken over."""
        return self._taking.keys()

    def released(self, sid: str) -> None:
        """Take over a session that another worker has just released, if there is room."""
        if sid not in self._host.held():
            self._begin(sid)

    def handed(self, sid: str) -> None:
        """Take over a session that a worker released for this one. This worker has its lease already; if not used, the lease runs out."""
        if sid not in self._host.held():
            self._begin(sid, handed=True)

    async def forget(self, sid: str) -> None:
        """Take an ended session off the index, then release its lease."""
        try:
            await self._store.session_closed(sid)
            await self._store.release_lease(sid, self._place.worker)
        except VoxbridgeError as error:
            _log.warning("session %s: %s", sid, error.message)

    def owners(self) -> set[str]:
        """Return the workers that held sessions when those were last looked at."""
        return self._owners | self._owners_before

    def live(self) -> int:
        """Return the last count of the sessions that any worker has, or should have."""
        return self._live

    async def left_by(self, worker: str) -> None:
        """Take over the sessions of a worker that is known to be dead, as far as there is room. Raises `UNAVAILABLE`."""
        mine = self._host.held()
        for sid in await self._store.held_by(worker):
            if sid not in mine:
                self._begin(sid, dead=worker)

    async def _look(self) -> None:
        """Look at the next part of the index."""
        now = asyncio.get_running_loop().time()
        try:
            found = await self._store.sweep(self._place.clock.now_us(), first=self._place_in_index)
        except VoxbridgeError:
            self._trouble = now  # owners that could not renew their leases then get the time to do it now
            self._free, self._free_before, self._place_in_index = {}, {}, 0
            return
        first = now if self._looked else now - LEASE_MS / 1_000
        self._looked = True
        self._owners.update(found.owners)
        mine = self._host.held()
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
            # If an attempt is long due and the session was not free for it, another worker has the session.
            self._endings = {sid: one for sid, one in self._endings.items() if sid in self._taking or now < one.due + ENDINGS_S[-1]}
            self._owners, self._owners_before = set(), self._owners

    def _begin(self, sid: str, *, handed: bool = False, dead: str = "") -> None:
        if sid not in self._taking and not self._stopped.is_set() and self._host.room() > 0:
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
            except Exception as error:  # noqa: BLE001 - the failure of one orphan must not stop the others
                self._failed(sid, error)
            else:
                self._failures.pop(sid, None)
                self._endings.pop(sid, None)
                return
            await self.leave(sid)

    def _failed(self, sid: str, error: Exception) -> None:
        """Log the error, and count an error that would occur again."""
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
        """Release a lease."""
        try:
            await self._store.release_lease(sid, self._place.worker)
        except VoxbridgeError as error:
            _log.warning("session %s: %s", sid, error.message)

    async def take(self, sid: str, term: int) -> None:
        """Take over a session whose lease this worker has just taken. Raises the error that prevents it."""
        recorded = [one async for one in self._place.log.read_all(sid)]
        now = self._place.clock.now_us()
        try:
            async with self._folding:
                found = await recovery.read(sid, recorded)
        except Exception:  # noqa: BLE001 - whatever is wrong with its log, its client must be told of its end
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
            await self._host.adopt(sid, max(term, state.ownership.term + 1), found, gap_ms)

    def _gap_ms(self, sid: str, found: PriorState, now: int) -> int:
        """Return for how many ms no worker held the session: since its worker last wrote or, if later, since its lease was last renewed."""
        gap_ms = max(0, now - found.alive_at) // 1_000
        since = self._free.get(sid, self._free_before.get(sid))
        if since is None or found.folded.state.ownership.released:
            return gap_ms
        return min(gap_ms, LEASE_MS + round((asyncio.get_running_loop().time() - since) * 1_000))

    async def _end(self, sid: str, work: Coroutine[Any, Any, None]) -> None:
        """Write the end of a session by `work`, and count the attempts until that succeeds. Raises the error that prevents it."""
        self._endings.setdefault(sid, _Ending())
        await work
        self._failures.pop(sid, None)
        self._endings.pop(sid, None)
        await self.forget(sid)

    async def _complete(self, sid: str, found: PriorState, *more: Any) -> None:
        """Write the events that a crash kept from the log, and those that follow from `more` inputs."""

        def nothing(_: Any) -> None:
            """Ignore an output: the session's effects died with its worker."""

        folded = found.folded
        writer = SessionWriter(self._place.log, sid, "voice", end=End(folded.number, folded.last_seq))
        for due in folded.missing:
            writer.submit(due.event, ts=due.ts, cause=due.cause)
        stepper = StepRunner(step.step, folded.state, writer=writer, clock=self._place.clock, perform=nothing, taken=folded.taken)
        try:
            for input in more:
                stepper.take(input)
        finally:
            await stepper.close()  # all is written before the lease is released

    async def _end_unread(self, sid: str, recorded: list[events.Recorded]) -> None:
        mine = [one for one in recorded if one.writer == "voice"]
        if not any(isinstance(one.event, SessionEnded) for one in mine):
            writer = SessionWriter(self._place.log, sid, "voice", end=End(len(mine), mine[-1].seq if mine else 0))
            error = Failure(code="INTERNAL", message="The voice worker of this session died, and its past cannot be read.")
            ended = SessionEnded(reason="worker_lost", error=error)
            await writer.append(ended, ts=self._place.clock.now_us(), cause=None)
