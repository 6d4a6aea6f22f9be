"""The journal: the inputs a service took for a session, in order, between two of its outputs (design, section 3).

An input that is itself an event is recorded by its position; any other input is recorded whole. With the journal, the log holds everything
that is needed to run a step again.
"""

from __future__ import annotations

from typing import Final

import msgspec

from voxbridge.shared.events.envelope import Event, event

NOTHING: Final = msgspec.Raw(b"\xc0")
"""msgpack's nil. An optional `Raw` cannot be decoded, so an absent input is written as nil."""


class Taken(msgspec.Struct, frozen=True, array_like=True):
    """An input: when it was taken (µs of the Unix clock), and either its log position or its own bytes (msgpack)."""

    at: int
    seq: int | None
    input: msgspec.Raw = NOTHING


class Journal(Event, frozen=True, kw_only=True):
    """An entry of a journal."""

    first: int
    """Number of the first input below, counted from 0 over the life of the session."""

    inputs: tuple[Taken, ...]

    together: bool = False
    """True if the events behind it may be of any of its inputs; otherwise they are of the last one, which ended the entry."""


@event("voice.journal", writer="voice")
class VoiceJournal(Journal, frozen=True, kw_only=True):
    """Inputs taken by the voice service."""


@event("tools.journal", writer="tools")
class ToolsJournal(Journal, frozen=True, kw_only=True):
    """Inputs taken by the tool executor."""


@event("tools.checkpoint", writer="tools")
class Checkpoint(Event, frozen=True, kw_only=True):
    """The state after the inputs before it, so that a log without an end is not folded from its beginning. It says nothing that the journal
    does not: a state of another `shape`, as of another release, is passed over."""

    taken: int
    """Number of the next input."""

    number: int
    """Number of this event among those of its writer."""

    shape: str
    state: bytes


@event("awareness.journal", writer="awareness")
class AwarenessJournal(Journal, frozen=True, kw_only=True):
    """Inputs taken by the awareness service."""


@event("awareness.checkpoint", writer="awareness")
class AwarenessCheckpoint(Checkpoint, frozen=True, kw_only=True):
    """The state that remains where everything before it is erased: what its journal named is no longer there."""


@event("terminals.journal", writer="terminals")
class TerminalsJournal(Journal, frozen=True, kw_only=True):
    """Inputs taken by the terminals service."""


JOURNALS: dict[str, type[Journal]] = {
    "voice": VoiceJournal,
    "tools": ToolsJournal,
    "awareness": AwarenessJournal,
    "terminals": TerminalsJournal,
}
