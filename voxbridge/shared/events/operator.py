"""Events that an operator's command writes about a whole session, with the rights of `voxbridge.shared.bus.accounts.ADMIN`."""

from __future__ import annotations

from voxbridge.shared.events.envelope import Event, event


@event("session.erased", writer="operator", visible=True)
class SessionErased(Event, frozen=True, kw_only=True):
    """Everything else that the log, the record and Valkey held of the session, or of an account itself, was made unreadable
    (docs/privacy.md). `by` is the name that the person who asked gave; `began` is when the session was requested, µs; `mode` is the
    requested mode; `events` is how many events there were."""

    by: str
    began: int
    mode: str
    events: int
