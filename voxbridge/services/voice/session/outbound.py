"""Outgoing frames of a session: held back until it is certain that this process owns the session, and while the bus is away.

Owns when a frame may be sent. A crash loses the frames that were held; a bus that dies loses the frames that it was given last.
"""

from __future__ import annotations

import asyncio

from voxbridge.services.voice.session.stall_guard import StallGuard
from voxbridge.shared.bus import moments
from voxbridge.shared.bus.client import FastClient


class Outbound:
    """Publisher of the frames of one session."""

    def __init__(self, nc: FastClient, subject: str, stall_guard: StallGuard, going_on: asyncio.Event) -> None:
        """Create the outlet. `going_on` is set once the log names this process as the owner, and the input of a gap was taken."""
        self._nc = nc
        self._subject = subject
        self._stall_guard = stall_guard
        self._going_on = going_on

    def ready(self) -> bool:
        """Tell whether a frame may be sent now."""
        return self._going_on.is_set() and self._stall_guard.steady() and self._nc.is_connected

    async def hold(self) -> None:
        """Wait until a frame may be sent."""
        await self._going_on.wait()
        while not self.ready():
            await self._nc.until_connected()
            await self._stall_guard.hold()

    def told(self, subject: str, moment: moments.Moment) -> bool:
        """Send a moment at once, before any frame that follows it. Return False if it has to wait for the bus or for this process."""
        return self._stall_guard.steady() and self._nc.publish_now(subject, moments.encode(moment))

    def publish(self, frame: bytes) -> None:
        """Send a frame, after `ready` has returned True."""
        self._nc.publish_now(self._subject, frame)
