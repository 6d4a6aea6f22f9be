"""How far a microphone is ahead of time: a client that sends what it kept may be, for a while; one that floods is everybody's burden.

Owns the bound. Does not own what becomes of what is too much. Pure.
"""

from __future__ import annotations

from typing import Final

from voxbridge.shared.audio.frames import INPUT_RATE

AHEAD_S: Final = 15.0
"""More than a client keeps while its line is lost (docs/studio.md), and than the bus keeps of a session."""

_BYTES_PER_S: Final = 2 * INPUT_RATE


class Pace:
    """Of one connection; moments are seconds of a clock that does not jump."""

    def __init__(self) -> None:
        self._until = 0.0

    def takes(self, size: int, now: float) -> bool:
        """Whether so many bytes of PCM16 may pass now: when they were spoken in time, they end `AHEAD_S` from now at most."""
        until = max(self._until, now) + size / _BYTES_PER_S
        if until - now > AHEAD_S:
            return False
        self._until = until
        return True
