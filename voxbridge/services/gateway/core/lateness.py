"""Whether a reply's frame is late: compared with those before it, because the clocks of two hosts may differ by more than a frame may wait.

Owns the bound. The frame that was youngest on arrival, of the last five to ten seconds, is taken to have come at once. Pure.
"""

from __future__ import annotations

from typing import Final

MAX_AGE_MS: Final = 200
"""Audio that came so much later than it could is dropped on its way to the client."""

PERIOD_MS: Final = 5_000

_MODULUS: Final = 1 << 32
_HALF: Final = 1 << 31


class Lateness:
    """Of the frames of one worker. Times are ms of Unix clocks modulo 2**32."""

    def __init__(self) -> None:
        self._least: int | None = None
        self._before: int | None = None
        self._since = 0

    def late(self, sent_ms: int, now_ms: int) -> bool:
        """Whether a frame that was sent then by its sender's clock, and came now by ours, is too late."""
        age = (now_ms - sent_ms + _HALF) % _MODULUS - _HALF
        least = self._least
        if least is None or (now_ms - self._since) % _MODULUS >= PERIOD_MS:
            self._before, self._least, self._since = least, age, now_ms
            least = age
        elif age < least:
            self._least = least = age
        before = self._before
        return age - (least if before is None or least < before else before) > MAX_AGE_MS
