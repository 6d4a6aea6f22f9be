"""The path of microphone frames to the bus, for all sockets of the process.

Owns when frames are written. With few sockets that is at once. With more, frames are gathered for a moment (`SOME`, `MANY`): waking the
bus, the voice worker and this process costs far more than a frame does, and one wake serves them all. While the bus is away, the last
`HELD_S` of each session are held. While the bus is connected but takes no more, only the last `LATE_S` are: more would add a growing
delay. After a lost connection, the session's worker is asked for the last frame it heard, and the frames after it are written in order,
before anything newer: a server that died may not have passed them on. When a socket resumes a session, its frames are held, the last
`HELD_S`, until the log has the event that attaches the socket, and carry that event's position. Otherwise a worker that heard them before
the event would take its answer for one sent to the previous socket, and begin it again. Does not own what a frame holds. A crash of this
process loses the gathered and held frames.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from typing import Final, NamedTuple

from nats.errors import Error as NatsError

from voxbridge.services.gateway.metrics import Metrics
from voxbridge.shared.audio import frames
from voxbridge.shared.bus import subjects
from voxbridge.shared.bus.client import FastClient


class Gathering(NamedTuple):
    """The way in which frames are gathered: the number of sockets from which on, the seconds, and the frames that are written at once."""

    sockets: int
    within_s: float
    frames: int


SOME: Final = Gathering(20, 0.002, 5)
"""With 25 calls a frame costs 29 % less than written at once, with 50 calls 13 %, and takes a millisecond more."""

MANY: Final = Gathering(80, 0.004, 1_024)
"""A fifth of a frame of 20 ms; with 100 calls that gathers 20 frames."""

RECENT: Final = 50
"""Frames of a session, written last, that may have to be written again: one second."""
HELD_S: Final = 10
"""Seconds of a session's audio that are held."""
LATE_S: Final = 1
"""Seconds of a session's audio that are held while the bus is connected and takes no more."""
ANSWER_S: Final = 6.0
"""Seconds for the worker to reconnect and report what it heard; after that, the held frames are written anyway."""

_BYTES_PER_S: Final = 2 * frames.INPUT_RATE
_ASK_S: Final = 0.1
_LOOK_S: Final = 0.02
_log = logging.getLogger(__name__)


class Microphone:
    """The microphone frames of one session."""

    def __init__(self, sid: str) -> None:
        self.sid = sid
        self.subject = subjects.audio_in(sid)
        self.recent: deque[bytes] = deque(maxlen=RECENT)
        self.held: deque[bytes] = deque()
        self.holding = False
        self.position = 0
        """Log position of the event that attached this socket to a resumed session; 0 for the session's first socket."""

        self.unattached = False
        """True until the log acknowledges that event; frames are held meanwhile."""

        self.lost_bytes = 0
        self._held_bytes = 0

    def hold(self, frame: bytes, seconds: int) -> int:
        """Hold a frame, and `seconds` of audio at most; return how many older frames were dropped."""
        gave_way = 0
        self.held.append(frame)
        self._held_bytes += _size(frame)
        while self._held_bytes > seconds * _BYTES_PER_S and len(self.held) > 1:
            self.lost_bytes += self._drop()
            gave_way += 1
        return gave_way

    def go_on_after(self, prefix: bytes) -> None:
        """Also hold the recent frames after the one with this prefix, before all others: the worker heard that frame last. Do nothing if
        the prefix is empty or unknown, because what the worker missed cannot be told."""
        recent = list(self.recent) if prefix else []
        for index in range(len(recent) - 1, -1, -1):
            if recent[index].startswith(prefix):
                again = recent[index + 1 :]
                self.recent = deque(recent[: index + 1], maxlen=RECENT)
                self.held.extendleft(reversed(again))
                self._held_bytes += sum(map(_size, again))
                return

    def take_held(self) -> list[bytes]:
        """Return the held frames, oldest first, and hold none."""
        held = list(self.held)
        self.held.clear()
        self._held_bytes = 0
        return held

    def written(self) -> None:
        """Note that the oldest held frame was written."""
        self.recent.append(self.held[0])
        self._drop()

    def _drop(self) -> int:
        size = _size(self.held.popleft())
        self._held_bytes -= size
        return size


class Microphones:
    """The microphones of all sockets, and their publishing."""

    def __init__(self, nc: FastClient, metrics: Metrics) -> None:
        self._nc = nc
        self._metrics = metrics
        self._waiting: list[tuple[Microphone, bytes]] = []
        self._due: asyncio.TimerHandle | None = None
        self._open: set[Microphone] = set()
        self._closed: set[Microphone] = set()
        self._sending: asyncio.Task[None] | None = None
        self._cut = False
        """True from the loss of the bus until all held frames are written."""

    def open(self, sid: str) -> Microphone:
        """Return a new microphone for a session."""
        microphone = Microphone(sid)
        self._open.add(microphone)
        return microphone

    def close(self, microphone: Microphone) -> None:
        """Close a microphone. Held frames are still written."""
        self._open.discard(microphone)
        if microphone.holding:
            self._closed.add(microphone)

    def publish(self, microphone: Microphone, frame: bytes) -> None:
        """Publish one frame, now or with the next ones. Frames of a session stay in order."""
        sockets = self._metrics.sockets
        if not self._waiting and sockets < SOME.sockets:
            self._write(microphone, frame)
            return
        how = MANY if sockets >= MANY.sockets else SOME
        if not self._waiting:
            self._due = asyncio.get_running_loop().call_later(how.within_s, self.flush)
        self._waiting.append((microphone, frame))
        if len(self._waiting) >= how.frames:
            self.flush()

    def attached(self, microphone: Microphone, position: int) -> None:
        """Write the frames that were held until the log had the attaching event, stamped with its position."""
        self.flush()  # gathered frames join the held ones, in order
        microphone.unattached, microphone.position = False, position
        for frame in microphone.take_held():
            self._write(microphone, frames.restamp(frame, frames.parse(frame).time_ms, position))
        if microphone not in self._open:
            self.close(microphone)

    def flush(self) -> None:
        """Write the gathered frames."""
        if self._due is not None:
            self._due.cancel()
        waiting, self._waiting, self._due = self._waiting, [], None
        for microphone, frame in waiting:
            self._write(microphone, frame)

    def _write(self, microphone: Microphone, frame: bytes) -> None:
        if microphone.unattached:
            self._metrics.dropped["log_away"] += microphone.hold(frame, HELD_S)
            return
        if not microphone.holding:
            if self._nc.publish_now(microphone.subject, frame):
                microphone.recent.append(frame)
                self._metrics.frames_in += 1
                return
            microphone.holding = True
            if self._sending is None:
                self._sending = asyncio.create_task(self._write_later())
        self._cut = self._cut or not self._nc.is_connected
        if self._cut:
            self._metrics.dropped["bus_away"] += microphone.hold(frame, HELD_S)
        else:
            self._metrics.dropped["bus_busy"] += microphone.hold(frame, LATE_S)

    async def _write_later(self) -> None:
        seen = self._nc.stats["reconnects"] if self._nc.is_connected else -1
        while holding := [microphone for microphone in (*self._open, *self._closed) if microphone.holding]:
            await asyncio.sleep(_LOOK_S)
            if not self._nc.is_connected:
                self._cut = True
                continue
            if seen == self._nc.stats["reconnects"]:
                for microphone in holding:
                    self._release(microphone)
            else:
                seen = self._nc.stats["reconnects"]
                for microphone in self._open:  # the frames written last may be lost, even if none was written since
                    microphone.holding = microphone.holding or bool(microphone.recent)
                await asyncio.gather(*(self._go_on(one) for one in (*self._open, *self._closed) if one.holding))
        self._sending, self._cut = None, False

    async def _go_on(self, microphone: Microphone) -> None:
        """Write the frames that the worker has not heard. If the connection is lost again, `_write_later` notices."""
        try:
            async with asyncio.timeout(ANSWER_S):
                microphone.go_on_after(await self._heard(microphone.sid))
        except TimeoutError:
            _log.warning("session %s: nobody said what was heard of the microphone; all that is held is sent", microphone.sid)
        self._release(microphone)

    async def _heard(self, sid: str) -> bytes:
        """Return the prefix of the frame that the session's worker heard last; empty when it heard none."""
        while True:
            try:
                answer = await self._nc.request(subjects.MICROPHONE, sid.encode(), timeout=_ASK_S)
            except NatsError:  # no worker is subscribed yet, or the bus is away again
                await asyncio.sleep(_LOOK_S)
            else:
                return answer.data

    def _release(self, microphone: Microphone) -> None:
        """Write the held frames, as many as the connection takes."""
        while microphone.held:
            if not self._nc.publish_now(microphone.subject, microphone.held[0]):
                return
            microphone.written()
            self._metrics.frames_in += 1
        microphone.holding = False
        self._closed.discard(microphone)
        lost, microphone.lost_bytes = microphone.lost_bytes / _BYTES_PER_S, 0
        if lost and self._cut:  # a bus that is always busy shows in the metrics
            _log.warning("session %s: %.1f s of the microphone's audio were lost while the bus was away", microphone.sid, lost)


def _size(frame: bytes) -> int:
    return len(frame) - frames.PREFIX_SIZE
