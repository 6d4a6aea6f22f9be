"""The types of a pure step, and folding it over the log.

Owns what a step gives back, and the state that a log leads to. Pure itself, so that a core may import it;
`voxbridge.shared.step.runner` runs a step. Keeps nothing that a crash could lose.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Generic, TypeVar

import msgspec

from voxbridge.shared import events
from voxbridge.shared.events.journal import Checkpoint
from voxbridge.shared.step.journal import In, JournalReader, LogInput

S = TypeVar("S")
Out = TypeVar("Out")


class Append(msgspec.Struct, frozen=True, tag="append"):
    """Output of a step: an event for the log."""

    event: events.Event


Step = Callable[[S, In, int], tuple[S, Sequence[Out]]]
"""`step(state, input, now_us)` over states `S`, inputs `In` and outputs `Out`. Pure: no clock, no randomness, no I/O."""


class Due(msgspec.Struct, frozen=True):
    """An event that a step asked for, with its time (µs) and its cause."""

    event: events.Event
    ts: int
    cause: int | str


class Folded(msgspec.Struct, Generic[S]):
    """A state folded from the log, and the end of this service's events in the log."""

    state: S
    taken: int
    number: int
    last_seq: int
    missing: tuple[Due, ...] = ()
    """Events that the last journal entry calls for and the log lacks, because of a crash in between. To be written before anything else."""


Watch = Callable[[In, Sequence[Out], int], None]
"""Observer of a fold: receives each input, its outputs, and its time (µs)."""


def fold(
    step: Step[S, In | LogInput, Out],
    initial: S,
    inputs: Any,
    writer: str,
    log: Sequence[events.Recorded],
    *,
    watch: Watch[In | LogInput, Out] | None = None,
    base: Folded[S] | None = None,
) -> Folded[S]:
    """Return the state after every journalled input. `log` holds all events of the session in order; with `base`, those behind its end, and
    what their journals name. `inputs` is the union of what the
    service takes besides events; Python has no type for the value of a union. `watch` receives the outputs as they occur, from which a
    service learns what it had begun and not ended. Raises `INTERNAL` when an event that the journal names is not in `log`."""
    journal: JournalReader[In] = JournalReader(writer, inputs, log)
    folded = Folded(state=initial, taken=0, number=0, last_seq=0)
    if base is not None:
        folded = Folded(state=base.state, taken=base.taken, number=base.number, last_seq=base.last_seq)
    due: list[Due] = []
    present: list[str] = []
    for recorded in log:
        if recorded.writer != writer:
            continue
        folded.number += 1
        folded.last_seq = recorded.seq
        if not journal.is_entry(recorded):
            present += [] if isinstance(recorded.event, Checkpoint) else [recorded.type]
            continue
        # A writer sends the next entry only after the events of the previous one, so only the last entry can lack some.
        due, present = [], []
        for taken, input in journal.read(recorded):
            cause: int | str = f"{writer}#{folded.taken}" if taken.seq is None else taken.seq
            folded.state, outputs = step(folded.state, input, taken.at)
            if watch is not None:
                watch(input, outputs, taken.at)
            due.extend(Due(output.event, taken.at, cause) for output in outputs if isinstance(output, Append))
            folded.taken += 1
    folded.missing = tuple(_missing(due, present))
    return folded


def _missing(due: Sequence[Due], present: Sequence[str]) -> Iterator[Due]:
    """Yield what is due and not present. They are told apart by their types, not by their number: code that decides otherwise than that of
    the dead process (A, C, B where it wrote A and B) owes C alone, and never B again."""
    left = Counter(present)
    for one in due:
        name = events.kind_of(one.event).name
        if left[name]:
            left[name] -= 1
        else:
            yield one
