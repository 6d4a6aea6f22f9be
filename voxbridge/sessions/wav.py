"""A recorded session as a WAV file: both voices on the clock of the log (docs/privacy.md, "A recording as a file").

Owns the content of the file: stereo, 16 bits, 24 kHz, the user on the left (resampled from 16 kHz), the agent on the right as it was sent.
Sample 0 is `session.started`; stretches without frames are silence. Of a reply that was cut off, the file has what its client says it
played, otherwise what was sent before the cut. Does not own where a frame lies (`voxbridge.shared.audio.timeline`). The file is filled in
place, so its length costs no memory.
"""

from __future__ import annotations

import os
import struct
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np

from voxbridge.services.voice.audio.resample import Upsampler
from voxbridge.shared import events
from voxbridge.shared.audio import frames, recordings
from voxbridge.shared.audio.recordings import CHANNELS, DataKeys, Passed
from voxbridge.shared.audio.timeline import Cut, Placed, Placing
from voxbridge.shared.errors import Code, VoxbridgeError
from voxbridge.shared.events import gateway, operator, voice
from voxbridge.shared.log.reader import Log

RATE: Final = frames.OUTPUT_RATE
LONGEST_MS: Final = 6 * 3_600_000
"""Milliseconds of a session that are written at most: the first six hours, 2 GB."""

_BLOCKS: Final = 16
_HEADER: Final = struct.Struct("<4sI4s4sIHHIIHH4sI")
_CHANNELS: Final = 2
_WIDTH: Final = 2


class Facts(NamedTuple):
    """Facts in the log about a session's audio. `length_ms` is its length, None while the session goes on; `played` is what the client
    played of each generation that was cut off, ms."""

    began_us: int
    length_ms: int | None
    played: dict[int, int]


class Written(NamedTuple):
    """Content of the file. `sealed` counts blocks of the recording that did not open, `missing` those that are absent although blocks
    before and after them exist."""

    seconds: float
    sealed: int
    missing: int = 0


async def facts(log: Log, sid: str) -> Facts:
    """Read the facts from the log; raises `NOT_FOUND` for a session that never started, or was erased."""
    began, ended = 0, None
    played: dict[int, int] = {}
    async for recorded in _told(log, sid):
        match recorded.event:
            case operator.SessionErased():
                raise VoxbridgeError(Code.NOT_FOUND, "This session was erased.", field="session_id")
            case voice.SessionStarted() if not began:
                began = recorded.ts
            case voice.SessionEnded():
                ended = recorded.ts
            case gateway.PlaybackReported(generation=generation, played_ms=ms, state="flushed"):
                played[generation] = ms
    if not began:
        raise VoxbridgeError(Code.NOT_FOUND, "This session never started, so nothing of it was heard.", field="session_id")
    return Facts(began, None if ended is None else (ended - began) // 1_000, played)


async def _told(log: Log, sid: str) -> AsyncIterator[events.Recorded]:
    async for recorded in log.read_all(sid, visibility="c", types=("session.started", "session.ended", "session.erased")):
        yield recorded
    async for recorded in log.read_all(sid, writer="gateway", types=("playback.reported",)):
        yield recorded


async def write(log: Log, keys: DataKeys, sid: str, path: Path) -> Written:
    """Write the file, readable by its owner only; it appears once it is complete.

    Raises `NOT_FOUND` for a session that was not recorded, never started, or was erased, `WrongKey` when its key cannot be opened, and
    `OSError` when the file cannot be written.
    """
    known = await facts(log, sid)
    key = await keys.find(sid)
    if key is None:
        raise VoxbridgeError(Code.NOT_FOUND, "This session was not recorded, or its recording is too old.", field="session_id")
    with _whole_file(path) as fresh:
        return await _fill(log, key, sid, _Canvas(fresh, known))


@contextmanager
def _whole_file(path: Path) -> Iterator[Path]:
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    os.close(handle)
    fresh = Path(name)
    try:
        yield fresh
        fresh.replace(path)
    except BaseException:
        fresh.unlink(missing_ok=True)
        raise


async def _fill(log: Log, key: bytes, sid: str, canvas: _Canvas) -> Written:
    passed = Passed()
    after, more, sealed, missing = 0, True, 0, 0
    order = recordings.Order()
    while more:
        read = await recordings.read(log, sid, key, after=after, limit=_BLOCKS, order=order)
        for frame in read.frames:
            if passed.fresh(frame):
                canvas.take(CHANNELS[frame.channel], frame.data)
        after, more, sealed, missing = read.after, read.more, sealed + read.sealed, missing + read.missing
    return Written(canvas.close() / RATE, sealed, missing)


class _Canvas:
    """Samples of the file while it is filled."""

    def __init__(self, path: Path, known: Facts) -> None:
        self._path = path
        self._known = known
        longest = LONGEST_MS if known.length_ms is None else min(known.length_ms, LONGEST_MS)
        self._size = longest * RATE // 1_000
        self._end = 0
        with path.open("wb") as file:
            file.truncate(_HEADER.size + max(1, self._size) * _CHANNELS * _WIDTH)
        self._samples: Any = np.memmap(path, "<i2", "r+", _HEADER.size, (max(1, self._size), _CHANNELS))
        self._voices = {name: _Voice(self, name, known) for name in CHANNELS}

    def take(self, channel: str, frame: bytes) -> None:
        """Take a frame of one voice, in the order in which they were sent."""
        self._voices[channel].take(frame)

    def put(self, column: int, at: int, pcm: bytes) -> None:
        """Write samples of one voice from `at` on, as far as the file goes."""
        found = np.frombuffer(pcm, "<i2")[: max(0, self._size - at)]
        self._samples[at : at + len(found), column] = found
        self._end = max(self._end, at + len(found))

    def silence(self, column: int, at: int, to: int) -> None:
        """Silence one voice in this stretch."""
        self._samples[at : max(at, to), column] = 0

    def close(self) -> int:
        """Write the header; return the number of samples of each voice: to the end of the session, or of its audio so far."""
        size = self._size if self._known.length_ms is not None else self._end
        self._samples.flush()
        self._samples = None
        body = size * _CHANNELS * _WIDTH
        with self._path.open("r+b") as file:
            file.truncate(_HEADER.size + body)
            head = (b"RIFF", _HEADER.size - 8 + body, b"WAVE", b"fmt ", 16, 1, _CHANNELS, RATE, RATE * _CHANNELS * _WIDTH)
            file.write(_HEADER.pack(*head, _CHANNELS * _WIDTH, 8 * _WIDTH, b"data", body))
        return size


class _Voice:
    """Writer of one channel."""

    def __init__(self, canvas: _Canvas, name: str, known: Facts) -> None:
        self._canvas = canvas
        self._column = CHANNELS.index(name)
        self._played = known.played
        self._placing = Placing(name, known.began_us // 1_000, longest_ms=LONGEST_MS)
        self._rising: Upsampler | None = None
        self._next = 0
        self._began: dict[int, int] = {}
        """Start of each generation, in samples."""

    def take(self, frame: bytes) -> None:
        found = self._placing.take(frame)
        if isinstance(found, Placed):
            self._put(found)
        elif isinstance(found, Cut):
            self._cut(found)

    def _put(self, found: Placed) -> None:
        if not found.joined:
            self._rising = None
            self._next = round(found.at_ms * RATE / 1_000)
        self._began.setdefault(found.generation, self._next)
        pcm = bytes(found.pcm)
        if found.rate != RATE:
            self._rising = self._rising or Upsampler()
            pcm = self._rising.feed(pcm)
        self._canvas.put(self._column, self._next, pcm)
        self._next += len(pcm) // _WIDTH

    def _cut(self, cut: Cut) -> None:
        self._rising = None
        at = round(cut.at_ms * RATE / 1_000)
        if (played := self._played.get(cut.generation)) is not None and cut.generation in self._began:
            at = min(at, self._began[cut.generation] + played * RATE // 1_000)
        self._canvas.silence(self._column, at, self._next)
        self._next = min(self._next, at)
