"""A limit on how far microphone audio may run ahead of real time: a client may send a backlog, but must not flood the gateway.

Owns the limit. Does not own what happens to the excess. Pure.
"""

from __future__ import annotations

from typing import Final

from voxbridge.shared.audio.frames import INPUT_RATE

AHEAD_S: Final = 15.0
"""Seconds ahead of real time: more than a client keeps during an outage (docs/studio.md), and more than the bus keeps of a session."""

_BYTES_PER_S: Final = 2 * INPUT_RATE


class RateLimit:
    """The pace of one connection. Times are seconds of a monotonic clock."""

    def __init__(self) -> None:
        self._until = 0.0

    def takes(self, size: int, now: float) -> bool:
        """Tell whether `size` bytes of PCM16 may pass now: played in real time, they must end within `AHEAD_S` from now."""
        until = max(self._until, now) + size / _BYTES_PER_S
        if until - now > AHEAD_S:
            return False
        self._until = until
        return True
