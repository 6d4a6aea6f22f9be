"""Runner of a pure step: takes inputs in order, journals them, and carries out what the step asks for.

The step is `step(state, input, now) -> (state, outputs)`. This shell gives it time, writes the journal ahead of every event it appends, and
hands all other outputs to the service that knows how to perform them. Because the journal holds every input,
`voxbridge.shared.step.fold.fold` rebuilds the state from the log, and a replay gives the outputs again.

When an output cannot go into the log (it is too large, the log is too far behind, another process owns the session), the writer is stopped
for good: a state whose outputs are missing must not continue.

A crash loses the inputs of the last 100 ms that no output followed.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Final, Generic, NamedTuple

import msgspec

from voxbridge.shared import events
from voxbridge.shared.clock import Clock
from voxbridge.shared.errors import Code, VoxbridgeError
from voxbridge.shared.events.journal import JOURNALS, Taken
from voxbridge.shared.log.writer import SessionWriter
from voxbridge.shared.step.fold import Append, Out, S, Step
from voxbridge.shared.step.journal import In, LogInput

JOURNAL_INTERVAL_S: Final = 0.1
JOURNAL_LIMIT: Final = 512
"""Inputs in one journal entry; a full one is written at once."""

JOURNAL_BYTES: Final = 256 * 1024
"""Bytes of inputs in one journal entry, beyond which it is written at once."""

INPUT_LIMIT: Final = 512 * 1024
"""Bytes of one input. Larger data comes as events, which the journal names by position."""

_encoder = msgspec.msgpack.Encoder()


class _Held(NamedTuple):
    """An event that waits for the journal entry ahead of it: its time (µs), its cause, and how many inputs had been taken with it."""

    event: events.Event
    now: int
    cause: int | str
    taken: int


class StepRunner(Generic[S, In, Out]):
    """State of one session in one service, and the only place where it changes."""

    def __init__(
        self,
        step: Step[S, In | LogInput, Out],
        state: S,
        *,
        writer: SessionWriter,
        clock: Clock,
        perform: Callable[[Out], None],
        taken: int = 0,
    ) -> None:
        """Set up the stepper. `taken` is how many inputs of this session and service the log already holds."""
        self.state = state
        self.taken = taken
        self._step = step
        self._writer = writer
        self._clock = clock
        self._perform = perform
        self._journal_type = JOURNALS[writer.writer]
        self._waiting: deque[In | LogInput] = deque()
        self._taking = False
        self._unwritten: list[Taken] = []
        self._bytes = 0
        self._timer: asyncio.TimerHandle | None = None
        self._held: list[_Held] | None = None

    @contextmanager
    def together(self) -> Iterator[None]:
        """Write the inputs that are taken in this block as one journal entry, and the events of all of them behind it."""
        self._held = []
        try:
            yield
            if self._writer.failed is None:
                self._release()
        finally:
            self._held = None

    def take(self, input: In | LogInput) -> None:
        """Take one input: step, journal it, and carry out the outputs in order.

        An input given while another is taken (by `perform`) is taken after it. An input that is over `INPUT_LIMIT` (`TOO_LARGE`) or at
        which the step raises was not taken: nothing has changed. Raises the error that stopped the writer, if it is stopped: the session no
        longer belongs to this process.
        """
        self._waiting.append(input)
        if self._taking:
            return
        self._taking = True
        try:
            while self._waiting:
                self._take(self._waiting.popleft())
        finally:
            self._taking = False
            self._waiting.clear()

    def _take(self, input: In | LogInput) -> None:
        if self._writer.failed is not None:
            raise self._writer.failed
        now = self._clock.now_us()
        cause: int | str
        size = 0
        if isinstance(input, LogInput):
            cause = input.recorded.seq
            taken = Taken(at=now, seq=cause)
        else:
            cause = f"{self._writer.writer}#{self.taken}"
            encoded = _encoder.encode(input)
            size = len(encoded)
            if size > INPUT_LIMIT:
                name = type(input).__name__
                raise VoxbridgeError(
                    Code.TOO_LARGE, f"An input has at most {INPUT_LIMIT} bytes; this {name} has {size}.", limit=INPUT_LIMIT
                )
            taken = Taken(at=now, seq=None, input=msgspec.Raw(encoded))
        self.state, outputs = self._step(self.state, input, now)
        self.taken += 1
        self._unwritten.append(taken)
        self._bytes += size
        for output in outputs:
            if isinstance(output, Append) and self._held is not None:
                self._held.append(_Held(output.event, now, cause, self.taken))
            elif isinstance(output, Append):
                self._flush(now)
                self._submit(output.event, now, cause)
            else:
                self._perform(output)
        if len(self._unwritten) >= JOURNAL_LIMIT or self._bytes >= JOURNAL_BYTES:
            self._release()
            self._flush(now)
        elif self._unwritten and self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(JOURNAL_INTERVAL_S, self._flush_now)

    async def close(self) -> None:
        """Write the rest of the journal and wait for the log."""
        self._flush_now()
        await self._writer.flushed()

    def _flush_now(self) -> None:
        if self._writer.failed is None:
            with suppress(VoxbridgeError):  # the writer is stopped and has told its owner
                self._flush(self._clock.now_us())

    def _release(self) -> None:
        """Write the journal and then the events that waited for it."""
        if not self._held:
            return
        held, self._held = self._held, []
        self._flush(held[-1].now, together=any(one.taken != self.taken for one in held))
        for one in held:
            self._submit(one.event, one.now, one.cause)

    def _flush(self, now: int, *, together: bool = False) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._unwritten:
            inputs, self._unwritten, self._bytes = tuple(self._unwritten), [], 0
            self._submit(self._journal_type(first=self.taken - len(inputs), inputs=inputs, together=together), now, None)

    def _submit(self, event: events.Event, now: int, cause: int | str | None) -> None:
        try:
            self._writer.submit(event, ts=now, cause=cause)
        except VoxbridgeError as error:
            self._writer.stop(error)
            raise
