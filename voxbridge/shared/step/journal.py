"""The reading of a journal: the inputs that a service took for a session, in order, from the entries that it wrote. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Generic, TypeGuard, TypeVar

import msgspec

from voxbridge.shared import events
from voxbridge.shared.errors import Code, VoxbridgeError
from voxbridge.shared.events.journal import JOURNALS, Journal, Taken

In = TypeVar("In")


class LogInput(msgspec.Struct, frozen=True, tag="log"):
    """An event of the log as an input; the journal keeps its position instead of its bytes."""

    recorded: events.Recorded


class JournalBroken(VoxbridgeError):
    """Error of an entry that cannot be read. `missing` is the position of an event that it names and that is not there."""

    def __init__(self, message: str, *, missing: int | None = None) -> None:
        super().__init__(Code.INTERNAL, message, retryable=False)
        self.missing = missing


class JournalReader(Generic[In]):
    """Reader of one writer's journal. `inputs` is the union of what the writer takes besides events; Python has no type for the value of a
    union. `log` are the events that an entry may name."""

    def __init__(self, writer: str, inputs: Any, log: Iterable[events.Recorded] = ()) -> None:
        self._writer = writer
        self._type = JOURNALS[writer]
        self._name = events.kind_of(self._type(first=0, inputs=())).name
        self._decoder: msgspec.msgpack.Decoder[In] = msgspec.msgpack.Decoder(inputs)
        self._by_seq = {recorded.seq: recorded for recorded in log}

    def add(self, recorded: events.Recorded) -> None:
        """Add an event that a later entry may name."""
        self._by_seq[recorded.seq] = recorded

    def is_entry(self, recorded: events.Recorded) -> bool:
        """Tell whether an event of the writer is an entry. Raises `JournalBroken` for one that is, or may be, and cannot be read."""
        if isinstance(recorded.event, events.Unreadable):
            # An event of unknown type that clients do not see may be the journal.
            if recorded.type in (self._name, events.UNREADABLE) and not recorded.visible:
                raise JournalBroken(f"The journal of {self._writer}: {recorded.event.unreadable}")
            return False
        return self.holds_entry(recorded.event)

    def holds_entry(self, event: events.Event) -> TypeGuard[Journal]:
        """Tell whether this is an entry of the writer's journal."""
        return isinstance(event, self._type)

    def read(self, entry: events.Recorded) -> Iterator[tuple[Taken, In | LogInput]]:
        """Return the inputs of an entry, each with when and how it was taken. Raises `JournalBroken`."""
        journal = entry.event
        if not self.holds_entry(journal):
            raise TypeError(f"{entry.type} is not a journal of {self._writer}")
        for number, taken in enumerate(journal.inputs, journal.first):
            yield taken, self._input(entry, taken, number)

    def _input(self, entry: events.Recorded, taken: Taken, number: int) -> In | LogInput:
        where = f"The journal of {self._writer} at position {entry.seq}"
        if taken.seq is not None:
            if taken.seq not in self._by_seq:
                raise JournalBroken(f"{where} names position {taken.seq}, which is not there.", missing=taken.seq)
            return LogInput(self._by_seq[taken.seq])
        try:
            return self._decoder.decode(taken.input)
        except (msgspec.MsgspecError, UnicodeDecodeError) as error:
            raise JournalBroken(f"{where} has an input {number} that cannot be read: {error}.") from error
