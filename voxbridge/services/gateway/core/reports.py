"""Reports of what the user does on a page: their fields and limits, over the socket and over REST, and the events that they become.

Owns the limits, and that nothing secret-looking in an address gets into the log. Does not own who may report how often
(`voxbridge.services.gateway.awareness.recorder`). Pure.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from voxbridge.shared import events
from voxbridge.shared.awareness.text import address, without_secrets
from voxbridge.shared.errors import Code, VoxbridgeError
from voxbridge.shared.events import gateway

TEXT_LIMIT: Final = 2_048
"""Characters of one text."""

NEEDED: Final[Mapping[str, tuple[str, ...]]] = {"page_visit": ("page",), "error": ("error_type", "message"), "context": ("key",)}
"""Fields that each kind of report must have."""

FIELDS: Final = ("page", "title", "error_type", "message", "key", "value")
SOURCE_OF: Final[Mapping[type[events.Event], str]] = {
    gateway.PageVisited: "pages",
    gateway.ErrorReported: "errors",
    gateway.ContextSet: "context",
}
"""The source that each kind of report belongs to."""


def check(event_type: str, fields: Mapping[str, Any]) -> None:
    """Check a report. Raises `INVALID_ARGUMENT` naming the field and the limit."""
    if event_type not in NEEDED:
        names = ", ".join(NEEDED)
        message = f"`event_type` is one of {names}; it is {event_type[:64]!r}."
        raise VoxbridgeError(Code.INVALID_ARGUMENT, message, field="event_type", limit=names)
    for field in FIELDS:
        size = len(fields[field])
        if size > TEXT_LIMIT or (field in NEEDED[event_type] and not size):
            message = f"`{field}` has {'1' if field in NEEDED[event_type] else '0'} to {TEXT_LIMIT} characters; this one has {size}."
            raise VoxbridgeError(Code.INVALID_ARGUMENT, message, field=field, limit=TEXT_LIMIT)


def event(event_type: str, fields: Mapping[str, Any], *, session: str = "") -> events.Event:
    """Return the event that a checked report becomes. Its id, and where it is missing
    its session, are set where it is recorded."""
    page = address(fields["page"])
    if event_type == "page_visit":
        return gateway.PageVisited(visit_id="", page=page, title=without_secrets(fields["title"]), session=session)
    if event_type == "error":
        kind, message = without_secrets(fields["error_type"]), without_secrets(fields["message"])
        return gateway.ErrorReported(error_id="", error_type=kind, message=message, page=page, session=session)
    return gateway.ContextSet(key=fields["key"], value=without_secrets(fields["value"]), session=session)
