"""A session's microphone frames in the order in which they were said, over takeovers and cuts.

Owns what is held while it is read what came before. Of a takeover that is what nobody heard since a worker died; of a cut, what the bus
kept for those that it could not reach. A bus that died kept nothing: then the gateway asks what was heard, and has the rest. What is said
on a socket that resumes the session is heard after the event that attached it, though events and audio travel apart: otherwise its answer
would be taken for one sent to the previous socket, and be begun again.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Sequence
from typing import Final

from voxbridge.services.voice.audio import catch_up as audio_catch_up
from voxbridge.shared.audio import frames
from voxbridge.shared.errors import VoxbridgeError
from voxbridge.shared.log.reader import Log

CATCH_UP_S: Final = 1.0
"""How long it may take to read what was said during a cut."""

HELD_S: Final = 10
"""Seconds of audio that are held, as much as the gateway holds of a session; of more, the oldest goes."""

HELD_LIMIT: Final = 4_096
"""Frames that are held; of tiny ones the oldest go sooner."""

_NOTHING: Final = bytes(4)
_HELD_BYTES: Final = HELD_S * frames.INPUT_RATE * 2

_log = logging.getLogger(__name__)


class Incoming:
    """Takes whole frames from the bus and gives them to `hear`."""

    def __init__(self, log: Log, sid: str, hear: Callable[[bytes], None]) -> None:
        self._log = log
        self._sid = sid
        self._hear = hear
        self._newest = b""
        self._held: _Held | None = None
        self._taking_over = False
        self._cuts = 0
        self._whole = True
        """True if the bus was not lost since the takeover began, so that what it kept and what is held are all there is."""

        self._behind = _NOTHING
        """Position in the last frame that was heard, as its four bytes."""

        self._reached = 0
        self._early: _Held | None = None
        """Frames whose position the events have not reached yet."""

    def take(self, frame: bytes) -> None:
        """A frame came."""
        if self._held is not None:
            self._held.add(frame)
            return
        self._newest = frame
        behind = frames.said_behind(frame)
        if behind != self._behind and self._waits(behind):
            self._early = self._early or _Held(self._sid)
            self._early.add(frame)
            return
        self._behind = behind
        self._hear(frame)

    def reach(self, position: int) -> None:
        """Note that the gateway's events were taken up to this position, and hear the frames that waited for it."""
        self._reached = position
        early, self._early = self._early, None
        for frame in early.frames if early is not None else ():
            self.take(frame)

    def _waits(self, behind: bytes) -> bool:
        if behind == _NOTHING:
            return False
        ahead = (int.from_bytes(behind, "little") - self._reached) & 0xFFFFFFFF
        return 0 < ahead < 0x8000_0000

    @property
    def holds(self) -> bool:
        """True while incoming frames wait: silence does not mean then that the user has stopped speaking."""
        return self._held is not None or self._early is not None

    def heard(self) -> bytes | None:
        """The prefix of the frame that was heard last, empty before the first one; nothing while that is not known."""
        return None if self._held is not None else self._newest[: frames.PREFIX_SIZE]

    def take_over(self) -> None:
        """Hold what comes until `go_on`."""
        self._held, self._taking_over, self._whole = _Held(self._sid), True, True

    def go_on(self, kept: Sequence[bytes]) -> list[bytes]:
        """End the takeover, and return the held frames that the bus had not kept; later frames are heard as they come. If the bus was lost
        meanwhile, return none: everything waits for `catch_up`."""
        newer: list[bytes] = []
        if self._whole:
            newer = audio_catch_up.newer(list(self._held.frames) if self._held is not None else (), kept)
            self._held = None
        self._taking_over = False
        self._newest = next(reversed((*kept, *newer)), b"")
        return newer

    def cut_off(self) -> None:
        """The bus is lost: what comes after it waits for `catch_up`."""
        self._cuts += 1
        self._whole = False
        if self._held is None:
            self._held = _Held(self._sid)

    async def catch_up(self) -> None:
        """Hear what the bus kept during a cut, and then what was held. If the bus is lost again while that is read, do nothing: the next
        reconnect calls this again."""
        if self._held is None or self._taking_over:
            return
        cuts, missed = self._cuts, list[bytes]()
        try:
            async with asyncio.timeout(CATCH_UP_S):
                kept = await audio_catch_up.read(self._log, self._sid)
            missed = audio_catch_up.newer(kept.microphone, [self._newest] if self._newest else [])
        except (TimeoutError, VoxbridgeError) as error:
            _log.warning("session %s: what was said during a cut cannot be read: %s", self._sid, str(error) or "no answer")
        if self._held is None or self._cuts != cuts:
            return
        held, self._held = list(self._held.frames), None
        for frame in (*missed, *audio_catch_up.newer(held, missed)):
            self.take(frame)


class _Held:
    """Frames that wait, `HELD_S` and `HELD_LIMIT` of them at most."""

    def __init__(self, sid: str) -> None:
        self.frames: deque[bytes] = deque()
        self._sid = sid
        self._bytes = 0
        self._said = False

    def add(self, frame: bytes) -> None:
        self.frames.append(frame)
        self._bytes += len(frame) - frames.PREFIX_SIZE
        while self._bytes > _HELD_BYTES or len(self.frames) > HELD_LIMIT:
            self._bytes -= len(self.frames.popleft()) - frames.PREFIX_SIZE
            if not self._said:
                self._said = True
                _log.warning("session %s: more than %d s of its microphone wait; the oldest are lost", self._sid, HELD_S)
