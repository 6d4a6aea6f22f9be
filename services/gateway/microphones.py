"""Microphone frames on their way to the bus, of all sockets of the process.

Owns when they are written. With few sockets that is at once. With many, frames wait for one another for `GATHER_S`: waking the
bus, the voice worker and this process again costs far more than a frame does, and one wake serves all that came meanwhile.
Does not own what a frame holds. A crash loses the frames of the last `GATHER_S`.
"""

from __future__ import annotations

import asyncio
from typing import Final

from services.gateway.metrics import Metrics
from shared.fast_client import FastClient

GATHER_FROM: Final = 80
"""Sockets from which frames are gathered."""
GATHER_S: Final = 0.004
"""A fifth of a frame of 20 ms."""
GATHER_LIMIT: Final = 1_024
"""Frames that may wait; one more is the signal to write them all."""


class Microphones:
    """Publishes what the clients say."""

    def __init__(self, nc: FastClient, metrics: Metrics) -> None:
        self._nc = nc
        self._metrics = metrics
        self._waiting: list[tuple[str, bytes]] = []

    def publish(self, subject: str, frame: bytes) -> None:
        """Publish one frame, now or with the next ones. Frames of a subject stay in order."""
        if not self._waiting and self._metrics.sockets < GATHER_FROM:
            self._write(subject, frame)
            return
        if not self._waiting:
            asyncio.get_running_loop().call_later(GATHER_S, self.flush)
        self._waiting.append((subject, frame))
        if len(self._waiting) > GATHER_LIMIT:
            self.flush()

    def flush(self) -> None:
        """Write what waits."""
        waiting, self._waiting = self._waiting, []
        for subject, frame in waiting:
            self._write(subject, frame)

    def _write(self, subject: str, frame: bytes) -> None:
        """A frame that the connection does not take now would be late anyway."""
        if self._nc.publish_now(subject, frame):
            self._metrics.frames_in += 1
        else:
            self._metrics.dropped["bus_busy"] += 1
