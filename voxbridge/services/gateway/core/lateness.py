"""Detection of late reply frames. Each frame is compared with those before it, because the clocks of two hosts may differ by more than a
frame may wait.

Owns the limit. The frame of the last five to ten seconds with the smallest age is taken to have arrived without delay. Pure.
"""

from __future__ import annotations

from typing import Final

MAX_AGE_MS: Final = 200
"""Milliseconds of delay after which audio is dropped on its way to the client."""

PERIOD_MS: Final = 5_000

_MODULUS: Final = 1 << 32
_HALF: Final = 1 << 31


class Lateness:
    """The delay of one worker's frames. Times are ms of Unix clocks modulo 2**32."""

    def __init__(self) -> None:
        self._least: int | None = None
        self._before: int | None = None
        self._since = 0

    def late(self, sent_ms: int, now_ms: int) -> bool:
        """Tell whether a frame is too late. `sent_ms` is by the sender's clock, `now_ms` by ours."""
        age = (now_ms - sent_ms + _HALF) % _MODULUS - _HALF
        least = self._least
        if least is None or (now_ms - self._since) % _MODULUS >= PERIOD_MS:
            self._before, self._least, self._since = least, age, now_ms
            least = age
        elif age < least:
            self._least = least = age
        before = self._before
        return age - (least if before is None or least < before else before) > MAX_AGE_MS
