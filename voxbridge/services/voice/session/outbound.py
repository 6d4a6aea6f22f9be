"""A session's frames on their way to its client: held back until it is certain that the session is this process's to speak in, and
while the bus is away.

Owns when a frame may go. A crash loses what was held, and a bus that dies what it was given last.
"""

from __future__ import annotations

import asyncio

from voxbridge.services.voice.session.stall_guard import Tenure
from voxbridge.shared.bus.client import FastClient


class Outlet:
    """Publishes the frames of one session."""

    def __init__(self, nc: FastClient, subject: str, tenure: Tenure, going_on: asyncio.Event) -> None:
        """`going_on` is set once the log says that the session is this process's, and what came in a gap was taken."""
        self._nc = nc
        self._subject = subject
        self._tenure = tenure
        self._going_on = going_on

    def ready(self) -> bool:
        """Whether a frame may go now."""
        return self._going_on.is_set() and self._tenure.steady() and self._nc.is_connected

    async def hold(self) -> None:
        """Wait until a frame may go."""
        await self._going_on.wait()
        while not self.ready():
            await self._nc.until_connected()
            await self._tenure.hold()

    def publish(self, frame: bytes) -> None:
        """Send a frame; `ready` has said that it may go."""
        self._nc.publish_now(self._subject, frame)
