"""Microphone frames on their way to the bus, of all sockets of the process.

Owns when they are written. With few sockets that is at once. With many, frames wait for one another for `GATHER_S`: waking the
bus, the voice worker and this process again costs far more than a frame does, and one wake serves all that came meanwhile.
While the bus is away frames are held, the last `HELD_S` of each session; while it takes no more for now, the last `LATE_S`: more would only
be heard later and later. After a cut the session's worker is asked which frame it heard last, and what follows that one is written in
order, before anything newer: a server that dies may not have passed on what it was given. Frames of a socket that resumes a session are
held, the last `HELD_S`, until the log has the event that attaches the socket, and carry that event's position: a worker that heard them
before the event would take its answer for one sent to the previous socket, and begin it again. Does not own what a frame holds. A crash
of this process loses what waits and what is held.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from typing import Final

from nats.errors import Error as NatsError

from voxbridge.services.gateway.metrics import Metrics
from voxbridge.shared.audio import frames
from voxbridge.shared.bus import subjects
from voxbridge.shared.bus.client import FastClient

GATHER_FROM: Final = 80
"""Sockets from which frames are gathered."""
GATHER_S: Final = 0.004
"""A fifth of a frame of 20 ms."""
GATHER_LIMIT: Final = 1_024
"""Frames that may wait; one more is the signal to write them all."""
RECENT: Final = 50
"""Frames of a session that were written last and may have to be written again: a second."""
HELD_S: Final = 10
"""Seconds of a session's audio that are held."""
LATE_S: Final = 1
"""Seconds of a session's audio that a bus which is there may be behind."""
ANSWER_S: Final = 6.0
"""How long the worker may take to be connected again and to say what it heard; then what is held is written all the same."""

_BYTES_PER_S: Final = 2 * frames.INPUT_RATE
_ASK_S: Final = 0.1
_LOOK_S: Final = 0.02
_log = logging.getLogger(__name__)


class Microphone:
    """The frames of one session."""

    def __init__(self, sid: str) -> None:
        self.sid = sid
        self.subject = subjects.audio_in(sid)
        self.recent: deque[bytes] = deque(maxlen=RECENT)
        self.held: deque[bytes] = deque()
        self.holding = False
        self.position = 0
        """Log position of the event that attached this socket to a resumed session; 0 for the session's first socket."""

        self.unattached = False
        """The log has not acknowledged that event yet, so frames are held."""

        self.lost_bytes = 0
        self._held_bytes = 0

    def hold(self, frame: bytes, seconds: int) -> int:
        """Hold a frame, and so many seconds in all; returns how many older ones gave way."""
        gave_way = 0
        self.held.append(frame)
        self._held_bytes += _size(frame)
        while self._held_bytes > seconds * _BYTES_PER_S and len(self.held) > 1:
            self.lost_bytes += self._drop()
            gave_way += 1
        return gave_way

    def go_on_after(self, prefix: bytes) -> None:
        """The worker heard the frame with this prefix last: those that were written after it are held too, before all others. Of one that
        is not known, or that heard none, nobody can tell what it missed."""
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
        """The oldest that is held was written."""
        self.recent.append(self.held[0])
        self._drop()

    def _drop(self) -> int:
        size = _size(self.held.popleft())
        self._held_bytes -= size
        return size


class Microphones:
    """Publishes what the clients say."""

    def __init__(self, nc: FastClient, metrics: Metrics) -> None:
        self._nc = nc
        self._metrics = metrics
        self._waiting: list[tuple[Microphone, bytes]] = []
        self._open: set[Microphone] = set()
        self._closed: set[Microphone] = set()
        self._sending: asyncio.Task[None] | None = None
        self._cut = False
        """The bus was away, and not all is written yet that was held."""

    def open(self, sid: str) -> Microphone:
        """A session's microphone."""
        microphone = Microphone(sid)
        self._open.add(microphone)
        return microphone

    def close(self, microphone: Microphone) -> None:
        """Nothing more comes from it; what is held is still written."""
        self._open.discard(microphone)
        if microphone.holding:
            self._closed.add(microphone)

    def publish(self, microphone: Microphone, frame: bytes) -> None:
        """Publish one frame, now or with the next ones. Frames of a session stay in order."""
        if not self._waiting and self._metrics.sockets < GATHER_FROM:
            self._write(microphone, frame)
            return
        if not self._waiting:
            asyncio.get_running_loop().call_later(GATHER_S, self.flush)
        self._waiting.append((microphone, frame))
        if len(self._waiting) > GATHER_LIMIT:
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
        """Write what waits."""
        waiting, self._waiting = self._waiting, []
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
                for microphone in self._open:  # what they wrote last may be lost, even if they wrote nothing since
                    microphone.holding = microphone.holding or bool(microphone.recent)
                await asyncio.gather(*(self._go_on(one) for one in (*self._open, *self._closed) if one.holding))
        self._sending, self._cut = None, False

    async def _go_on(self, microphone: Microphone) -> None:
        """Write what the worker has not heard. A connection that is lost again is seen by the next look."""
        try:
            async with asyncio.timeout(ANSWER_S):
                microphone.go_on_after(await self._heard(microphone.sid))
        except TimeoutError:
            _log.warning("session %s: nobody said what was heard of the microphone; all that is held is sent", microphone.sid)
        self._release(microphone)

    async def _heard(self, sid: str) -> bytes:
        """The prefix of the frame that the session's worker heard last; empty when it heard none."""
        while True:
            try:
                answer = await self._nc.request(subjects.MICROPHONE, sid.encode(), timeout=_ASK_S)
            except NatsError:  # nobody hears the question yet, or the bus is away again
                await asyncio.sleep(_LOOK_S)
            else:
                return answer.data

    def _release(self, microphone: Microphone) -> None:
        """Write what is held, as far as the connection takes it."""
        while microphone.held:
            if not self._nc.publish_now(microphone.subject, microphone.held[0]):
                return
            microphone.written()
            self._metrics.frames_in += 1
        microphone.holding = False
        self._closed.discard(microphone)
        lost, microphone.lost_bytes = microphone.lost_bytes / _BYTES_PER_S, 0
        if lost and self._cut:  # one that is busy all the time is in the metrics
            _log.warning("session %s: %.1f s of the microphone's audio were lost while the bus was away", microphone.sid, lost)


def _size(frame: bytes) -> int:
    return len(frame) - frames.PREFIX_SIZE
