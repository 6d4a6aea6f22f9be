"""Recording of sessions: the audio that passes on the bus is sealed with the session's key and stored in `RECORD`.

Owns when audio is read and written. A recorder reads the seconds of audio that the bus keeps of each direction, beside the path of
live audio. So a session that is not recorded pays nothing, and a worker that takes a session over finds what its predecessor had not
written yet. A crash loses nothing that the bus still has; a restart of the bus loses at most `EVERY_S` of a recording.
"""

from __future__ import annotations

import asyncio
import logging
import os
from typing import Final

from nats.errors import Error as NatsError
from nats.js.api import Header
from nats.js.errors import APIError

from voxbridge.shared.audio import recordings
from voxbridge.shared.audio.recordings import DataKeys, Frame, Passed
from voxbridge.shared.bus import subjects
from voxbridge.shared.cancellation import ended
from voxbridge.shared.errors import VoxbridgeError
from voxbridge.shared.log.reader import Log

EVERY_S: Final = 0.5
"""Seconds between two writes: well within what the bus keeps (`voxbridge.shared.log.streams.REPLY_S`), even if a dead worker's lease has
to run out first."""

PROLONG_S: Final = 3_600.0
END_S: Final = 1.0
"""Seconds that writing the end of a recording may take."""

_ACK_S: Final = 2.0
_log = logging.getLogger(__name__)


class Recorder:
    """Recorder of one session. It runs from its creation until `end`."""

    def __init__(self, log: Log, keys: DataKeys, sid: str, key: bytes) -> None:
        self._log = log
        self._keys = keys
        self._sid = sid
        self._key = key
        self._passed = Passed()
        self._after = [0, 0]
        self._waiting: list[list[Frame]] = []
        self._name, self._stored, self._tried = os.urandom(4).hex(), 0, False
        self._ill = False
        self._writing = asyncio.Lock()
        self._running = asyncio.create_task(self._run())
        log.follow(self)

    async def catch_up(self) -> None:
        """Read from the beginning again: the bus was away and may count anew."""
        self._after = [0, 0]

    async def write(self) -> None:
        """Write the audio that passed since the last call. Audio that cannot be written is retried in the next call."""
        async with self._writing:
            try:
                await self._write()
                self._ill = False
            except (VoxbridgeError, NatsError, APIError, TimeoutError, OSError) as error:
                if not self._ill:
                    _log.warning("session %s: its recording has to wait: %s", self._sid, error)
                self._ill = True

    async def end(self) -> None:
        """Write the rest and stop."""
        self._log.unfollow(self)
        await ended(self._running)
        try:
            async with asyncio.timeout(END_S):
                await self.write()
        except TimeoutError:
            _log.warning("session %s: the end of its recording was not written in time", self._sid)

    async def _run(self) -> None:
        loop = asyncio.get_running_loop()
        prolonged = loop.time()
        while True:
            await self.write()  # at once: the bus does not keep for long what a dead worker had not written
            await asyncio.sleep(EVERY_S)
            if loop.time() - prolonged >= PROLONG_S:
                prolonged = loop.time()
                try:
                    await self._keys.prolong(self._sid)
                except VoxbridgeError as error:
                    _log.warning("session %s: %s", self._sid, error.message)

    async def _write(self) -> None:
        for channel, (stream, subject) in enumerate(subjects.kept_audio(self._sid)):
            more = True
            while more:
                await self._store()
                page = await self._log.frames(stream, subject, after=self._after[channel])
                found = [recordings.frame_of(message) for message in page.messages]
                if found:
                    self._after[channel] = found[-1].seq
                self._waiting += recordings.blocks(frame for frame in found if self._passed.fresh(frame))
                more = page.more and bool(found)
        await self._store()

    async def _store(self) -> None:
        while self._waiting:
            block = self._waiting[0]
            index = f"{self._name}.{self._stored + 1}"
            sealed = recordings.seal(self._key, self._sid, block, index)
            # Keeps a block whose acknowledgement was lost from being stored twice. The id holds both ends of the block, since a
            # successor's block may begin like this one and be longer.
            headers: dict[str, str] = {
                Header.MSG_ID: f"{self._sid}.{block[0].channel}.{block[0].seq}.{block[-1].seq}.{block[-1].at}",
                recordings.INDEX: index,
            }
            again, self._tried = self._tried, True
            stored = await self._log.js.publish(subjects.recorded(self._sid), sealed, timeout=_ACK_S, headers=headers)
            if again or not stored.duplicate:  # another recorder's copy of the block has that recorder's number
                self._stored += 1
            self._tried = False
            self._waiting.pop(0)


class Recorders:
    """The recorders of one process."""

    def __init__(self, log: Log, keys: DataKeys | None) -> None:
        self._log = log
        self._keys = keys
        self._running: dict[str, Recorder] = {}
        self._beginning: dict[str, asyncio.Task[None]] = {}

    async def prepare(self, sid: str) -> None:
        """Make the key of a session before anything of it is recorded. Raises `UNAVAILABLE`."""
        if self._keys is not None:
            await self._keys.make(sid)

    async def begin(self, sid: str) -> None:
        """Record a session, beginning with what the bus still has of it. While there is no key for it, log that and ask again."""
        if self._keys is None or sid in self._running or sid in self._beginning:
            return
        self._beginning[sid] = asyncio.create_task(self._begin(self._keys, sid))
        await asyncio.wait({self._beginning[sid]}, timeout=END_S)

    async def _begin(self, keys: DataKeys, sid: str) -> None:
        try:
            while sid not in self._running:
                try:
                    self._running[sid] = Recorder(self._log, keys, sid, await keys.make(sid))
                except VoxbridgeError as error:
                    _log.error("session %s is not recorded yet: %s", sid, error.message)
                    await asyncio.sleep(EVERY_S)
        finally:
            self._beginning.pop(sid, None)

    async def end(self, sid: str) -> None:
        """Write the rest of a session's recording, if there is one."""
        beginning = self._beginning.pop(sid, None)
        if beginning is not None:
            await ended(beginning)
        recorder = self._running.pop(sid, None)
        if recorder is not None:
            await recorder.end()
