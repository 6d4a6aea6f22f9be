"""The screen of one account in this process: takes reports and ends of calls in order, in transactions with the log.

Owns the order: inputs are journalled, the events they cause are appended and acknowledged, and only then something is erased. Reports are
read from the log, from behind the last one that the journal names; so none is lost or taken twice, whoever dies when. Of several processes
the log refuses the one that appends second; it folds again. Does not own the rules (`core.step`).

A crash between a checkpoint and the end of an erasing leaves it to the next process that opens the account.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Sequence
from typing import Final

import msgspec

from voxbridge.services.awareness.core import checkpoints
from voxbridge.services.awareness.core.inputs import CallEnded, Erased, Forget, Input, Settled
from voxbridge.services.awareness.core.outputs import Output
from voxbridge.services.awareness.core.state import State, initial
from voxbridge.services.awareness.core.step import concerns, step
from voxbridge.services.awareness.erasing import Erasing
from voxbridge.shared import events
from voxbridge.shared.bus import subjects
from voxbridge.shared.clock import Clock
from voxbridge.shared.errors import Code, Conflict, VoxbridgeError
from voxbridge.shared.events.journal import Journal
from voxbridge.shared.log.reader import Log, decode
from voxbridge.shared.log.writer import End, SessionWriter
from voxbridge.shared.step.fold import Folded, fold
from voxbridge.shared.step.journal import LogInput
from voxbridge.shared.step.runner import StepRunner

WRITER: Final = "awareness"
TRIES: Final = 24
"""Tries to take an input while another process writes."""

TOGETHER: Final = 256
"""Reports that are taken in one transaction."""

_BACK_OFF_S: Final = 0.04

Wanted = Callable[[State], Awaitable[Sequence[Input | LogInput]]]


class _Open(msgspec.Struct):
    runner: StepRunner[State, Input, Output]
    writer: SessionWriter


class Account:
    """One account. `stem` is unique among all objects that write this log; the ids of events are derived from it."""

    def __init__(self, log: Log, account: str, *, stem: str, clock: Clock) -> None:
        self.log_id = subjects.awareness_log(account)
        self._log = log
        self._stem = stem
        self._clock = clock
        self._lock = asyncio.Lock()
        self._open: _Open | None = None
        self._folds = 0

    @property
    def busy(self) -> bool:
        """True while an input is being taken."""
        return self._lock.locked()

    @property
    def state(self) -> State:
        """The state known to this process; empty before anything was read."""
        return State() if self._open is None else self._open.runner.state

    async def catch_up(self) -> State:
        """Take every report that the log has, and return the state. Raises `UNAVAILABLE` and `CONFLICT`."""
        async with self._lock:
            while True:
                full = await self._take(self._reports)
                if not full:
                    await self._erase()
                    return self.state

    async def take(self, ended: CallEnded) -> None:
        """Take the end of a call; one that says nothing is not written either. Raises as `catch_up` does, and has done nothing then."""

        async def given(state: State) -> Sequence[Input | LogInput]:
            return (ended,) if concerns(state, ended) else ()

        async with self._lock:
            await self._take(self._reports)  # a switch that stands in the log comes first
            await self._take(given)
            await self._erase()

    async def forget(self) -> None:
        """Forget everything, and erase it from the log. Raises as `catch_up` does."""

        async def given(_: State) -> Sequence[Input | LogInput]:
            return (Forget(),)

        async with self._lock:
            while await self._take(self._reports):
                pass
            await self._take(given)
            await self._erase()

    async def refolded(self) -> tuple[bool, int]:
        """Forget the state and fold the log again. Return whether both are equal, and how many inputs there were. Raises as `catch_up`
        does."""
        await self.catch_up()
        async with self._lock:
            before = self.state
            await self._drop()
            now = await self._opened()
            return now.runner.state == before, now.runner.taken

    async def close(self) -> None:
        """Write the rest of the journal."""
        async with self._lock:
            await self._drop()

    async def _drop(self) -> None:
        now, self._open = self._open, None
        if now is not None and now.writer.failed is None:
            await now.runner.close()

    async def _take(self, wanted: Wanted) -> bool:
        """Take inputs in one transaction; return whether there may be more of them."""
        for _ in range(TRIES):
            try:
                now = await self._opened()
                inputs = await wanted(now.runner.state)
                if inputs:
                    with now.runner.together():
                        for input in (*inputs, Settled()):
                            now.runner.take(input)
                    await now.runner.close()
            except Conflict:
                self._open = None
                await asyncio.sleep(random.uniform(0, _BACK_OFF_S))  # noqa: S311 - only spreads the tries
            except BaseException:
                self._give_up()
                raise
            else:
                return len(inputs) >= TOGETHER
        raise Conflict(f"Other processes kept writing the {WRITER} events of {self.log_id}.")

    def _give_up(self) -> None:
        """Write nothing more with a state whose journal may not be in the log."""
        if self._open is not None:
            self._open.writer.stop(VoxbridgeError(Code.INTERNAL, "An input was given up."))
            self._open = None

    async def _reports(self, state: State) -> Sequence[Input | LogInput]:
        page = await self._log.page(self.log_id, writer="gateway", after=state.taken, limit=TOGETHER)
        return [LogInput(decode(message)) for message in page.messages]

    async def _erase(self) -> None:
        """Carry out what is to be erased: put a checkpoint in front of which nothing is needed, then overwrite it."""
        now = self._open
        if now is None or not now.runner.state.erasing:
            return
        try:
            wanted = now.runner.state.erasing
            checkpoint = checkpoints.made(now.runner.state, taken=now.runner.taken, number=now.writer.number)
            position = await now.writer.append(checkpoint, ts=self._clock.now_us(), cause=None)
            erasing = Erasing(self._log, self.log_id)
            await erasing.own(position)
            for one in wanted:
                await erasing.reports(one.sources, one.up_to)
            with now.runner.together():
                for one in wanted:
                    now.runner.take(Erased(one.sources, one.up_to))
            await now.runner.close()
        except BaseException:
            self._give_up()
            raise

    async def _opened(self) -> _Open:
        """Fold the log, and write the events that a crash left missing."""
        if self._open is not None:
            return self._open
        found = await folded(self._log, self.log_id)
        self._folds += 1
        writer = SessionWriter(self._log, self.log_id, WRITER, stem=f"{self._stem}-{self._folds}", end=End(found.number, found.last_seq))
        for lost in found.missing:
            writer.submit(lost.event, ts=lost.ts, cause=lost.cause)
        await writer.flushed()
        runner: StepRunner[State, Input, Output] = StepRunner(
            step, found.state, writer=writer, clock=self._clock, perform=_later, taken=found.taken
        )
        self._open = _Open(runner=runner, writer=writer)
        return self._open


def _later(_: Output) -> None:
    """Leave an erasing until its transaction is in the log: `State.erasing` has it."""


async def folded(log: Log, log_id: str) -> Folded[State]:
    """Fold what the log has of an account, from its last checkpoint on. Raises `UNAVAILABLE`."""
    last = await log.last([subjects.event_subject(log_id, WRITER, visible=False, event_type="awareness.checkpoint")])
    base = checkpoints.restored(last[0]) if last else None
    after = 0 if base is None else base.last_seq
    own = [one async for one in log.read_all(log_id, writer=WRITER, after=after)]
    named = [taken.seq for one in own if isinstance(one.event, Journal) for taken in one.event.inputs if taken.seq is not None]
    reports: list[events.Recorded] = []
    if named:
        reports = [one async for one in log.read_all(log_id, writer="gateway", after=min(named) - 1)]
    return fold(step, initial(log_id), Input, WRITER, sorted([*own, *reports], key=lambda one: one.seq), base=base)
