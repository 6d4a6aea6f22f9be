"""The calls that the page has to answer: which are open, and which call an answer belongs to.

Owns the rule that a call is answered once. Does not own what happens with an answer. Pure; a crash here loses nothing: a resumed connection
rebuilds the same calls from the log.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, TypeVar

import msgspec
from msgspec.structs import replace

from voxbridge.shared import events
from voxbridge.shared.errors import Code, VoxbridgeError

_V = TypeVar("_V")

OPEN_LIMIT: Final = 256
"""Calls that may be open; one more drops the oldest."""
CLOSED_LIMIT: Final = 4_096
"""Ended calls that are remembered until the past is known."""


class Calls(msgspec.Struct, frozen=True):
    """The open calls of one session: name by id, oldest first. The dicts are never changed."""

    open: Mapping[str, str] = {}
    closed: Mapping[str, None] | None = None
    """Ids of the calls that ended before the past was known; None once it is known."""

    @property
    def whole(self) -> bool:
        """True when every call is known."""
        return self.closed is None

    def completed(self, past: Calls) -> Calls:
        """Return these calls with those of the past: open before the first event taken here, or at some moment since."""
        closed = self.closed or {}
        older = {open_id: name for open_id, name in past.open.items() if open_id not in closed and open_id not in self.open}
        return Calls(dict([*older.items(), *self.open.items()][-OPEN_LIMIT:]))

    def take(self, event: events.Event) -> Calls:
        """Return the calls after this event."""
        match event:
            case events.voice.ToolCalled(call_id=call_id, name=name, kind="browser"):
                return replace(self, open=_newest({**self.open, call_id: name}, OPEN_LIMIT))
            case (
                events.voice.ToolCancelled(call_id=call_id)
                | events.tools.ToolCompleted(call_id=call_id)
                | events.tools.ToolFailed(call_id=call_id)
                | events.tools.ToolInterrupted(call_id=call_id)
                | events.gateway.BrowserCallAnswered(call_id=call_id)
            ):
                closed = None if self.closed is None else _newest({**self.closed, call_id: None}, CLOSED_LIMIT)
                return Calls(_without(self.open, call_id), closed)
            case _:
                return self

    def answered(self, name: str, call_id: str | None) -> tuple[str, Calls]:
        """Return the id of the call that this answers, and the calls without it. Without an id, the oldest call of that name is meant.

        Raises `NOT_FOUND` when there is none.
        """
        if call_id is None:
            found = next((open_id for open_id, of in self.open.items() if of == name), None)
        else:
            found = call_id if self.open.get(call_id) == name else None
        if found is None:
            raise VoxbridgeError(
                Code.NOT_FOUND,
                f"No call of {name[:64]!r} with this id is open: it was answered, cancelled, or never made.",
                field="fn_call_id",
            )
        return found, replace(self, open=_without(self.open, found))


def fold(past: Iterable[events.Recorded]) -> Calls:
    """Return the calls that these events of a session left open. The events may come in any order."""
    calls = Calls()
    for recorded in sorted(past, key=lambda one: one.seq):
        calls = calls.take(recorded.event)
    return calls


def _newest(calls: dict[str, _V], limit: int) -> dict[str, _V]:
    if len(calls) > limit:
        del calls[next(iter(calls))]
    return calls


def _without(calls: Mapping[str, str], call_id: str) -> Mapping[str, str]:
    return {open_id: name for open_id, name in calls.items() if open_id != call_id} if call_id in calls else calls
