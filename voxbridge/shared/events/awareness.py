"""Events that the awareness service writes: what it knows of a user's screen, each time that changed."""

from __future__ import annotations

from voxbridge.shared.awareness.view import View
from voxbridge.shared.events.envelope import Event, event


@event("awareness.changed", writer="awareness")
class AwarenessChanged(Event, frozen=True, kw_only=True):
    """The few entries that an agent may be told are others than before."""

    view: View
