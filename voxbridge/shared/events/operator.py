"""What is written by an operator's command, with the rights of `voxbridge.shared.bus.accounts.ADMIN`: what was done to a whole session."""

from __future__ import annotations

from voxbridge.shared.events.envelope import Event, event


@event("session.erased", writer="operator", visible=True)
class SessionErased(Event, frozen=True, kw_only=True):
    """All else that the log, the record and Valkey held of the session was made unreadable (docs/privacy.md). `by` is who asked, as
    they said; `began` is when the session was requested, µs; `mode` as it was requested; `events` is how many there were."""

    by: str
    began: int
    mode: str
    events: int
