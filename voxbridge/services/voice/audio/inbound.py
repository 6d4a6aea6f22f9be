"""A session's microphone frames in the order in which they were spoken, over takeovers and connection cuts.

Owns the frames that are held while earlier ones are read. After a takeover, the earlier frames are those that no worker heard since the
last one died. After a cut, they are those that the bus kept for the workers that it could not reach. A bus that died kept nothing: then
the gateway asks which frame was heard last, and sends the rest. Frames from a socket that resumes the session are heard only after the
event that attached the socket, though events and audio travel separately: otherwise the answer to them would be taken for one sent to
the previous socket, and be begun again.
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
"""Seconds that reading the audio of a cut may take."""

KNOWN_S: Final = 0.25
"""Seconds until each server of a cluster knows of a subscription that was made anew. Until then a frame that reaches another server is
kept by the bus and not passed on, though what the bus kept may have been read already: it is read again while frames are missing."""

AGAIN_S: Final = 0.02
"""Seconds between two readings; one frame."""

HELD_S: Final = 10
"""Seconds of audio that are held, as much as the gateway holds of a session; beyond that the oldest frames are dropped."""

HELD_LIMIT: Final = 4_096
"""Frames that are held; of tiny frames the oldest are dropped sooner."""

_NOTHING: Final = bytes(4)
_HELD_BYTES: Final = HELD_S * frames.INPUT_RATE * 2

_log = logging.getLogger(__name__)


class Inbound:
    """Inbound microphone frames of one session: takes whole frames from the bus and passes them to `hear` in order."""

    def __init__(self, log: Log, sid: str, hear: Callable[[bytes], None]) -> None:
        self._log = log
        self._sid = sid
        self._hear = hear
        self._newest = b""
        self._held: _Held | None = None
        self._taking_over = False
        self._cuts = 0
        self._whole = True
        """True if no frame was missed since a takeover began, except for those that the bus kept until they were read."""

        self._behind = _NOTHING
        """Position stamped on the last frame that was heard (`frames.said_behind`), four bytes."""

        self._reached = 0
        self._early: _Held | None = None
        """Frames whose position the session's events have not reached yet."""

    def take(self, frame: bytes) -> None:
        """Take a frame from the bus: hear it, or hold it."""
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
        """True while arriving frames are held: silence then does not mean that the user is silent."""
        return self._held is not None or self._early is not None

    def heard(self) -> bytes | None:
        """Return the prefix of the frame that was heard last; empty before the first frame, None while it is not known."""
        return None if self._held is not None else self._newest[: frames.PREFIX_SIZE]

    def take_over(self) -> None:
        """Hold arriving frames until `go_on`."""
        self._held, self._taking_over, self._whole = _Held(self._sid), True, True

    def go_on(self, kept: Sequence[bytes]) -> list[bytes]:
        """Return the held frames that are not among those that the bus kept, and hear frames as they arrive from now on. After a cut
        in between, return none: all frames wait for `catch_up`."""
        newer: list[bytes] = []
        if self._whole:
            newer = audio_catch_up.newer(list(self._held.frames) if self._held is not None else (), kept)
            self._held = None
        self._taking_over = False
        self._newest = next(reversed((*kept, *newer)), b"")
        return newer

    def cut_off(self) -> None:
        """Note that the connection to the bus is lost: frames that arrive later wait for `catch_up`."""
        self._cuts += 1
        self._whole = False
        if self._held is None:
            self._held = _Held(self._sid)

    async def catch_up(self) -> None:
        """Hear, once the bus is back, what it kept meanwhile, and then the held frames. If it is lost again before that is read, the
        next call does it."""
        if self._held is None or self._taking_over:
            return
        cuts, missed = self._cuts, list[bytes]()
        try:
            async with asyncio.timeout(CATCH_UP_S):
                missed = await self._missed()
        except (TimeoutError, VoxbridgeError) as error:
            _log.warning("session %s: what was said during a cut cannot be read: %s", self._sid, str(error) or "no answer")
        if self._held is None or self._cuts != cuts:
            return
        held, self._held = list(self._held.frames), None
        for frame in (*missed, *audio_catch_up.newer(held, missed)):
            self.take(frame)

    async def _missed(self) -> list[bytes]:
        """Return what the bus kept after the newest frame, up to the first frame that was held since."""
        known_at = asyncio.get_running_loop().time() + KNOWN_S
        while True:
            kept = await audio_catch_up.read(self._log, self._sid)
            missed = audio_catch_up.newer(kept.microphone, [self._newest] if self._newest else [])
            if self._reaches(missed) or asyncio.get_running_loop().time() >= known_at:
                return missed
            await asyncio.sleep(AGAIN_S)

    def _reaches(self, missed: Sequence[bytes]) -> bool:
        """Tell whether no frame is missing between these and the first one that was held."""
        held = list(self._held.frames) if self._held is not None else []
        after = audio_catch_up.newer(held, missed)
        before = missed[-1] if missed else self._newest
        if len(after) < len(held) or not before:
            return True
        return bool(after) and frames.parse(after[0]).sequence == (frames.parse(before).sequence + 1) & 0xFFFFFFFF


class _Held:
    """Waiting frames, at most `HELD_S` seconds and `HELD_LIMIT` frames."""

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
