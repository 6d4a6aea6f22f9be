"""The calls that the page has to answer: which are open, and which call an answer belongs to.

Owns the rule that a call is answered once. Does not own what happens with an answer. Pure; a crash here loses nothing: a resumed connection
rebuilds the same calls from the log.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from voxbridge.shared import events
from voxbridge.shared.errors import Code, VoxbridgeError

OPEN_LIMIT: Final = 256
"""Calls that may be open; one more drops the oldest."""
CLOSED_LIMIT: Final = 4_096
"""Ended calls that are remembered until the past is known."""


class Calls:
    """The open calls of one session, oldest first. Those of a resumed session are not `whole` until `complete` adds its past."""

    __slots__ = ("_closed", "_open")

    def __init__(self, *, whole: bool = True) -> None:
        self._open: dict[str, str] | None = None
        self._closed: dict[str, None] | None = None if whole else {}

    @property
    def whole(self) -> bool:
        """True when every call is known."""
        return self._closed is None

    def complete(self, past: Calls) -> None:
        """Add the past: the calls that were open before the first event taken here, or at some moment since."""
        own, closed = self._open or {}, self._closed or {}
        older = {id: name for id, name in (past._open or {}).items() if id not in closed and id not in own}
        both = [*older.items(), *own.items()]
        self._open, self._closed = dict(both[-OPEN_LIMIT:]), None

    def take(self, event: events.Event) -> None:
        """Open or close the call of this event, if it is about one."""
        match event:
            case events.voice.ToolCalled(call_id=call_id, name=name, kind="browser"):
                if self._open is None:
                    self._open = {}
                self._open[call_id] = name
                if len(self._open) > OPEN_LIMIT:
                    del self._open[next(iter(self._open))]
            case (
                events.voice.ToolCancelled(call_id=call_id)
                | events.tools.ToolCompleted(call_id=call_id)
                | events.tools.ToolFailed(call_id=call_id)
                | events.tools.ToolInterrupted(call_id=call_id)
                | events.gateway.BrowserCallAnswered(call_id=call_id)
            ):
                if self._open is not None:
                    self._open.pop(call_id, None)
                if self._closed is not None:
                    self._closed[call_id] = None
                    if len(self._closed) > CLOSED_LIMIT:
                        del self._closed[next(iter(self._closed))]
            case _:
                pass

    def answered(self, name: str, call_id: str | None) -> str:
        """Close the call that this answers, and return its id. Without an id, the oldest call of that name is meant.

        Raises `NOT_FOUND` when there is none.
        """
        calls = self._open or {}
        if call_id is None:
            found = next((id for id, of in calls.items() if of == name), None)
        else:
            found = call_id if calls.get(call_id) == name else None
        if found is None:
            raise VoxbridgeError(
                Code.NOT_FOUND,
                f"No call of {name[:64]!r} with this id is open: it was answered, cancelled, or never made.",
                field="fn_call_id",
            )
        del calls[found]
        return found

    def __bool__(self) -> bool:
        """Tell whether any call is open."""
        return bool(self._open)


def fold(past: Iterable[events.Recorded]) -> Calls:
    """Return the calls that these events of a session left open. The events may come in any order."""
    calls = Calls()
    for recorded in sorted(past, key=lambda one: one.seq):
        calls.take(recorded.event)
    return calls
