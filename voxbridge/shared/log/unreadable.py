"""Count of the events of the log that this process could not read; each is logged once.

Owns the count behind `events_unreadable` in `/metrics` and `$SRV.STATS`. Does not own the replacement for such an event
(`voxbridge.shared.events.Unreadable`). A crash here begins the count again.
"""

from __future__ import annotations

import logging
from collections import deque
from typing import Final

from voxbridge.shared.events import Recorded, Unreadable

REMEMBERED: Final = 1_024
"""Events that are remembered, so that they are not logged again."""

_log = logging.getLogger(__name__)


class Broken:
    """Unreadable events that one process met."""

    def __init__(self) -> None:
        self.count = 0
        """Events that could not be read; one that is read again counts once, as long as it is remembered."""
        self._said: deque[tuple[str, int]] = deque(maxlen=REMEMBERED)

    def met(self, recorded: Recorded) -> None:
        """Count and log an event that could not be read."""
        place = recorded.sid, recorded.seq
        if place in self._said or not isinstance(recorded.event, Unreadable):
            return
        self._said.append(place)
        self.count += 1
        _log.error("session %s: an event (%s) is passed over: %s", recorded.sid, recorded.type, recorded.event.unreadable)


BROKEN: Final = Broken()
"""The count of this process."""
