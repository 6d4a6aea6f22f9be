"""The calls of a session in this process: takes inputs in order, and those that wait together in one transaction with the log.

Owns the order: inputs are taken, the events they cause are appended and acknowledged, and only then their other outputs are performed.
Several processes may serve calls of one session. The log refuses the process that appends second; it folds the session again and takes
again the inputs that the log does not show as recorded after all. Does not own the rules (`voxbridge.services.tools.core.step`).

A crash between a journal entry and its events leaves events missing; the next process that folds the session writes them first.
"""

from __future__ import annotations

import asyncio
import random
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from typing import Final

import msgspec

from voxbridge.services.tools.core.inputs import Accepted, Input, Rejected
from voxbridge.services.tools.core.outputs import Output, Resolve
from voxbridge.services.tools.core.state import State
from voxbridge.services.tools.core.step import step
from voxbridge.services.tools.session import checkpoints
from voxbridge.shared import events
from voxbridge.shared.bus import subjects
from voxbridge.shared.clock import Clock
from voxbridge.shared.errors import Code, Conflict, VoxbridgeError
from voxbridge.shared.events.journal import Journal
from voxbridge.shared.log.reader import Log
from voxbridge.shared.log.writer import End, SessionWriter
from voxbridge.shared.step.fold import Folded, fold
from voxbridge.shared.step.journal import LogInput
from voxbridge.shared.step.runner import StepRunner

WRITER: Final = "tools"
TRIES: Final = 24
"""Tries to take an input while other processes write in the same session."""

TOGETHER: Final = 16
"""Inputs that are taken in one transaction."""

_BACK_OFF_S: Final = 0.04
_HEARD: Final = (("voice", "c", ">"), ("gateway", "i", subjects.REQUEST))
"""Events that an executor takes from the log: writer, visibility, topic."""

Decide = Callable[[Resolve], Accepted | Rejected | None]
"""Decides on a call; None leaves it to the process that takes the call next."""

Perform = Callable[["Session", Output], Awaitable[None]]


class _Open(msgspec.Struct):
    stepper: StepRunner[State, Input, Output]
    writer: SessionWriter
    mark: str


class _Item:
    """An input that waits to be taken, and what came of it."""

    def __init__(self, input: Input | LogInput) -> None:
        self.input = input
        self.mark = ""
        """Id of the journal entry that holds this input, as of the last try; empty before the first."""
        self.recorded = False
        """True once the log was seen to hold that entry."""
        self.outputs: list[Output] = []
        self.taken: asyncio.Future[None] = asyncio.get_running_loop().create_future()


class Session:
    """The calls of one session. `perform` gets the outputs, once the events they rest on are recorded.

    `stem` is unique among all objects that write this session; the ids of events are derived from it.
    """

    def __init__(self, log: Log, sid: str, *, stem: str, clock: Clock, decide: Decide, perform: Perform) -> None:
        self.sid = sid
        self._log = log
        self._stem = stem
        self._clock = clock
        self._decide = decide
        self._perform = perform
        self._lock = asyncio.Lock()
        self._now: _Open | None = None
        self._folds = 0
        self._base: Folded[State] | None = None
        """State and end of the log as this process last knew both to agree."""
        self._saved = 0
        self._saves = bool(subjects.account_of(sid))
        self._waiting: deque[_Item] = deque()
        self._trying: list[_Item] = []
        self._outputs: list[Output] = []

    @property
    def busy(self) -> bool:
        """True while an input is being taken."""
        return self._lock.locked() or bool(self._waiting)

    @property
    def state(self) -> State:
        """The state known to this process; empty before the first input."""
        return State() if self._now is None else self._now.stepper.state

    async def take(self, input: Input | LogInput) -> None:
        """Take one input. Raises `UNAVAILABLE` or `CONFLICT` when the log did not accept it; nothing was done then."""
        item = _Item(input)
        self._waiting.append(item)
        try:
            async with self._lock:
                while not item.taken.done():
                    self._trying = [self._waiting.popleft() for _ in range(min(TOGETHER, len(self._waiting)))]
                    try:
                        await self._take(self._trying)
                    finally:  # where this caller is stopped, the others go on with their inputs when it is their turn
                        self._waiting.extendleft(left for left in reversed(self._trying) if not left.taken.done())
        finally:
            if not item.taken.done() and item in self._waiting:  # given up before it was its turn
                self._waiting.remove(item)
        item.taken.result()

    async def take_within(self, input: Input) -> None:
        """Take an input while an output of this session is performed, before its other outputs. Raises as `take` does."""
        item = _Item(input)
        self._trying = [*self._trying, item]
        await self._take([item])
        item.taken.result()

    async def refreshed(self) -> None:
        """Fold what other processes wrote, so that `state` is what the log says now. Raises as `take` does."""
        async with self._lock:
            last_seq, _ = await self._log.position(self.sid, WRITER)
            if self._now is not None and (self._base is None or last_seq != self._base.last_seq):
                self._now = None
            if self._now is None:
                await self._open()

    async def opened(self) -> None:
        """Fold the session, so that `state` is known. Raises as `take` does."""
        async with self._lock:
            if self._now is None:
                await self._open()

    async def close(self) -> None:
        """Write the rest of the journal, as far as the log takes it. Inputs that changed the state are already recorded."""
        async with self._lock:
            if self._now is not None:
                now, self._now = self._now, None
                with suppress(VoxbridgeError):
                    await now.stepper.close()

    async def _take(self, items: list[_Item]) -> None:
        """Take inputs in one transaction. If it fails, each of several is taken by itself, so that one does not fail the others."""
        try:
            await self._transact(items)
        except Exception as error:  # noqa: BLE001 - it is raised where the input came from
            if len(items) == 1:
                items[0].taken.set_exception(error)
                return
            for item in items:
                await self._take([item])
        else:
            for item in items:
                item.recorded = True
            for item in items:
                await self._act(item)

    async def _act(self, item: _Item) -> None:
        """Perform the outputs of an input that is recorded; a second time only those that are left."""
        try:
            while item.outputs:
                output = item.outputs.pop(0)
                if not isinstance(output, Resolve):
                    await self._perform(self, output)
        except Exception as error:  # noqa: BLE001 - it is raised where the input came from
            item.taken.set_exception(error)
        else:
            item.taken.set_result(None)

    async def _transact(self, items: list[_Item]) -> None:
        for _ in range(TRIES):
            try:
                now = self._now or await self._open()
                await self._step(now, [item for item in items if not item.recorded])
            except Conflict:
                self._now = None
                await asyncio.sleep(random.uniform(0, _BACK_OFF_S))  # noqa: S311 - only spreads the tries
            except BaseException:
                # The journal of this stepper may hold an input that was never performed: it must not be written.
                if self._now is not None:
                    self._now.writer.stop(VoxbridgeError(Code.INTERNAL, "An input was given up."))
                    self._now = None
                raise
            else:
                return
        raise Conflict(f"Other processes kept writing the {WRITER} events of session {self.sid}.")

    async def _step(self, now: _Open, items: list[_Item]) -> None:
        stepper, state, number = now.stepper, now.stepper.state, now.writer.number
        with stepper.together():
            for item in items:
                # The entry that holds this input is the next event of this writer.
                item.mark = f"{now.mark}{now.writer.number}"
                item.outputs = self._outputs = []
                stepper.take(item.input)
                for output in item.outputs:  # grows while it is iterated: a decision may add outputs
                    decision = self._decide(output) if isinstance(output, Resolve) else None
                    if decision is not None:
                        stepper.take(decision)
        if stepper.state is not state or now.writer.number != number:
            await stepper.close()
            await self._agreed(now)

    async def _agreed(self, now: _Open) -> None:
        """Remember where state and log agree; in the log of an account, which has no end, now and then there too."""
        stepper, writer = now.stepper, now.writer
        if self._saves and stepper.taken // checkpoints.EVERY > self._saved:
            self._saved = stepper.taken // checkpoints.EVERY
            event = checkpoints.made(stepper.state, taken=stepper.taken, number=writer.number)
            if event is not None:
                await writer.append(event, ts=self._clock.now_us(), cause=None)
        self._base = Folded(state=stepper.state, taken=stepper.taken, number=writer.number, last_seq=writer.last_seq)

    async def _open(self) -> _Open:
        """Fold the session from the log, and write the events that a crash left missing."""
        folded = await self._folded()
        self._folds += 1
        stem = f"{self._stem}-{self._folds}"
        writer = SessionWriter(self._log, self.sid, WRITER, stem=stem, end=End(folded.number, folded.last_seq))
        for lost in folded.missing:
            writer.submit(lost.event, ts=lost.ts, cause=lost.cause)
        await writer.flushed()
        stepper: StepRunner[State, Input, Output] = StepRunner(
            step, folded.state, writer=writer, clock=self._clock, perform=self._collect, taken=folded.taken
        )
        self._now = _Open(stepper=stepper, writer=writer, mark=f"{self.sid}.{WRITER}.{stem}.")
        self._saved = folded.taken // checkpoints.EVERY
        self._base = Folded(state=folded.state, taken=folded.taken, number=writer.number, last_seq=writer.last_seq)
        return self._now

    async def _folded(self) -> Folded[State]:
        """Fold what the log has behind the last state that is known, or all of it."""
        base = self._base or (await self._checkpoint() if self._saves else None)
        own = await self._own(base)
        if base is not None and not await self._goes_on(base, own):  # it was erased meanwhile
            base = None
            own = await self._own(base)
        ids = {recorded.id for recorded in own}
        for item in (*self._trying, *self._waiting):
            item.recorded = item.recorded or item.mark in ids
        entries = [recorded.event for recorded in own if isinstance(recorded.event, Journal)]
        named = [taken.seq for entry in entries for taken in entry.inputs if taken.seq is not None]
        heard: list[events.Recorded] = []
        if named:
            for writer, visibility, topic in _HEARD:
                found = self._log.read_all(self.sid, writer=writer, visibility=visibility, topic=topic, after=min(named) - 1)
                heard += [recorded async for recorded in found]
        return refold(sorted([*own, *heard], key=lambda recorded: recorded.seq), base=base)

    async def _own(self, base: Folded[State] | None) -> list[events.Recorded]:
        after = 0 if base is None else base.last_seq
        return [recorded async for recorded in self._log.read_all(self.sid, writer=WRITER, after=after)]

    async def _checkpoint(self) -> Folded[State] | None:
        """Return the state of the last checkpoint, if there is one that this release can read."""
        found = await self._log.last([subjects.event_subject(self.sid, WRITER, visible=False, event_type="tools.checkpoint")])
        return checkpoints.restored(found[0]) if found else None

    async def _goes_on(self, base: Folded[State], own: Sequence[events.Recorded]) -> bool:
        """Tell whether the log still holds what this state rests on, with these events behind it."""
        if not own:
            return (await self._log.position(self.sid, WRITER))[0] == base.last_seq
        first = own[0].event
        return isinstance(first, Journal) and first.first == base.taken

    def _collect(self, output: Output) -> None:
        self._outputs.append(output)


def refold(log: Sequence[events.Recorded], *, base: Folded[State] | None = None) -> Folded[State]:
    """Fold a session's log, behind `base`, into its state and the events that a crash left missing (`missing`)."""
    return fold(step, State(), Input, WRITER, log, base=base)
