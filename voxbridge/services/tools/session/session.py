"""The calls of a session in this process: takes inputs one at a time, each as a transaction with the log.

Owns the order: an input is taken, the events it causes are appended and acknowledged, and only then its other outputs are performed.
Several processes may serve calls of one session. The log refuses the process that appends second; it folds the session again and takes its
input again, unless the log shows that it was recorded after all. Does not own the rules (`voxbridge.services.tools.core.step`).

A crash between a journal entry and its events leaves events missing; the next process that folds the session writes them first.
"""

from __future__ import annotations

import asyncio
import random
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
        self._recorded: frozenset[str] = frozenset()
        self._folds = 0
        self._base: Folded[State] | None = None
        """State and end of the log as this process last knew both to agree."""
        self._saved = 0
        self._saves = bool(subjects.account_of(sid))
        self._outputs: list[Output] = []

    @property
    def busy(self) -> bool:
        """True while an input is being taken."""
        return self._lock.locked()

    @property
    def state(self) -> State:
        """The state known to this process; empty before the first input."""
        return State() if self._now is None else self._now.stepper.state

    async def take(self, input: Input | LogInput) -> None:
        """Take one input. Raises `UNAVAILABLE` or `CONFLICT` when the log did not accept it; nothing was done then."""
        async with self._lock:
            for output in await self._transact(input):
                await self._perform(self, output)

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

    async def _transact(self, input: Input | LogInput) -> Sequence[Output]:
        for _ in range(TRIES):
            mark = ""
            try:
                now = self._now or await self._open()
                mark = f"{now.mark}{now.writer.number}"
                await self._step(now, input)
            except Conflict:
                self._now = None
                if mark and await self._was_recorded(mark):
                    break
                await asyncio.sleep(random.uniform(0, _BACK_OFF_S))  # noqa: S311 - only spreads the tries
            except BaseException:
                # The journal of this stepper may hold an input that was never performed: it must not be written.
                if self._now is not None:
                    self._now.writer.stop(VoxbridgeError(Code.INTERNAL, "An input was given up."))
                    self._now = None
                raise
            else:
                break
        else:
            raise Conflict(f"Other processes kept writing the {WRITER} events of session {self.sid}.")
        return [output for output in self._outputs if not isinstance(output, Resolve)]

    async def _step(self, now: _Open, input: Input | LogInput) -> None:
        stepper, state, number = now.stepper, now.stepper.state, now.writer.number
        self._outputs = []
        stepper.take(input)
        for output in self._outputs:  # grows while it is iterated: a decision may add outputs
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

    async def _was_recorded(self, mark: str) -> bool:
        for _ in range(TRIES):
            try:
                await self._open()
            except Conflict:
                continue
            return mark in self._recorded
        raise Conflict(f"Other processes kept writing the {WRITER} events of session {self.sid}.")

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
        self._recorded = frozenset(recorded.id for recorded in own)
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
