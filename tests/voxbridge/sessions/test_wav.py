"""A recording as a WAV file: both voices on the clock of the log, with silence in gaps and without audio that was not heard."""

from __future__ import annotations

import stat
import wave
from collections.abc import AsyncIterator
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from redis.asyncio import Redis

from tests.shared.backends import open_log
from voxbridge.sessions import wav
from voxbridge.shared import events
from voxbridge.shared.audio import frames, recordings
from voxbridge.shared.audio.recordings import DataKeys, Frame
from voxbridge.shared.bus import subjects
from voxbridge.shared.config import Config, Recording
from voxbridge.shared.errors import Code, VoxbridgeError
from voxbridge.shared.events import gateway
from voxbridge.shared.events import voice as ev
from voxbridge.shared.ids import new_session_id
from voxbridge.shared.log.reader import Log
from voxbridge.shared.log.writer import SessionWriter
from voxbridge.shared.secrets.vault import new_key

BEGAN_MS = 1_790_000_000_123
LENGTH_MS = 3_000


class Recorded:
    """A session of three seconds in a log, whose audio the test writes."""

    def __init__(self, log: Log, keys: DataKeys) -> None:
        self.sid = new_session_id()
        self.log = log
        self.keys = keys
        self._frames: list[Frame] = []

    async def says(self, event: events.Event, at_ms: int) -> None:
        kind = events.kind_of(event)
        writer = SessionWriter(self.log, self.sid, kind.writer, stem=f"{kind.writer}{at_ms}", fenced=False)
        await writer.append(event, ts=(BEGAN_MS + at_ms) * 1_000, cause=None)

    async def lives(self, *, ends: bool = True) -> None:
        await self.says(ev.SessionStarted(mode="local", model="m", voice="v", output="audio", recorded=True), 0)
        if ends:
            await self.says(ev.SessionEnded(reason="client"), LENGTH_MS)

    def hears(self, at_ms: int, level: int, *, ms: int = 20) -> None:
        """Add a microphone frame that came at this time."""
        self._add(0, frames.pack(frames.PCM16, 0, len(self._frames), BEGAN_MS + at_ms, _level(level, ms, frames.INPUT_RATE)))

    def sends(self, at_ms: int, level: int, *, generation: int = 1, ms: int = 20) -> None:
        """Add a frame of a reply that was sent at this time."""
        pcm = _level(level, ms, frames.OUTPUT_RATE)
        self._add(1, frames.pack(frames.PCM16, generation, len(self._frames), BEGAN_MS + at_ms, pcm))

    def flushes(self, at_ms: int, generation: int = 1) -> None:
        self._add(1, frames.pack(frames.FLUSH, generation, len(self._frames), BEGAN_MS + at_ms))

    async def stored(self, *, key: bytes | None = None) -> None:
        sealing = key or await self.keys.make(self.sid)
        for block in recordings.blocks(self._frames):
            await self.log.js.publish(subjects.recorded(self.sid), recordings.seal(sealing, self.sid, block))

    async def exported(self, folder: Path) -> tuple[NDArray[np.int16], wav.Written, Path]:
        path = folder / f"{self.sid}.wav"
        written = await wav.write(self.log, self.keys, self.sid, path)
        with wave.open(str(path), "rb") as file:
            assert (file.getnchannels(), file.getsampwidth(), file.getframerate()) == (2, 2, 24_000)
            samples = np.frombuffer(file.readframes(file.getnframes()), "<i2").reshape(-1, 2)
        return samples, written, path

    def _add(self, channel: int, frame: bytes) -> None:
        number = len(self._frames) + 1
        self._frames.append(Frame(channel, number, number, frame))


def _level(level: int, ms: int, rate: int) -> bytes:
    return np.full(rate * ms // 1_000, level, "<i2").tobytes()


def heard(samples: NDArray[np.int16], column: int) -> list[tuple[int, int, int]]:
    """Return the stretches of one voice that are not silent: begin and end in ms, and their level in the middle.

    The filter's half millisecond at either end is ignored."""
    loud = np.abs(samples[:, column].astype(int)) > 100
    edges = np.flatnonzero(np.diff(np.concatenate(([False], loud, [False])).astype(int)))
    return [
        (round(first / 24), round(last / 24), int(samples[(first + last) // 2, column]))
        for first, last in zip(edges[::2], edges[1::2], strict=True)
        if last - first > 24
    ]


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


@pytest.fixture
async def session(nats_url: str, redis_url: str, tmp_path: Path) -> AsyncIterator[Recorded]:
    async with open_log(nats_url) as log, Redis.from_url(redis_url, decode_responses=True) as redis:
        await log.ensure_streams(retention_days=1, recording=Recording(hours=1, max_bytes=50_000_000))
        yield Recorded(log, DataKeys.of(Config(data_dir=tmp_path), redis))


async def test_both_voices_lie_where_they_were_and_the_file_is_as_long_as_the_session(session: Recorded, tmp_path: Path) -> None:
    await session.lives()
    for at in range(20, 520, 20):
        session.hears(1_000 + at, 8_000)
    for at in range(0, 300, 20):
        session.sends(2_000, 4_000 + at)  # sent ahead, played one after another
    await session.stored()
    samples, written, path = await session.exported(tmp_path)
    assert (len(samples), written.seconds, written.sealed) == (72_000, 3.0, 0)
    assert heard(samples, 0) == [(1_000, 1_500, 8_000)]
    ((began, ended, _),) = heard(samples, 1)
    assert (began, ended) == (2_000, 2_300)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


async def test_of_an_interrupted_reply_there_is_what_was_played_and_without_a_report_what_was_sent(
    session: Recorded, tmp_path: Path
) -> None:
    await session.lives()
    for at in range(0, 600, 20):
        session.sends(500 + at // 2, 4_000)
    session.flushes(900)
    for _ in range(25):
        session.sends(1_500, 6_000, generation=2)
    session.flushes(1_800, generation=2)
    session.sends(1_900, 7_000, generation=2)  # sent before the flush, received after it
    await session.says(gateway.PlaybackReported(generation=1, played_ms=50, state="playing"), 600)
    await session.says(gateway.PlaybackReported(generation=1, played_ms=260, state="flushed"), 950)
    await session.stored()
    samples, _, _ = await session.exported(tmp_path)
    assert heard(samples, 1) == [(500, 760, 4_000), (1_500, 1_800, 6_000)]


async def test_what_came_before_the_start_or_after_the_end_is_left_out(session: Recorded, tmp_path: Path) -> None:
    await session.lives()
    session.hears(-100, 5_000)
    session.hears(400, 5_000)
    session.hears(LENGTH_MS + 10, 5_000)
    session.hears(LENGTH_MS + 500, 5_000)
    await session.stored()
    samples, written, _ = await session.exported(tmp_path)
    assert (len(samples), written.seconds) == (72_000, 3.0)
    assert [stretch[:2] for stretch in heard(samples, 0)] == [(380, 400), (2_990, 3_000)]


async def test_a_session_that_goes_on_is_as_long_as_its_audio(session: Recorded, tmp_path: Path) -> None:
    await session.lives(ends=False)
    session.hears(1_000, 5_000)
    await session.stored()
    samples, written, path = await session.exported(tmp_path)
    assert (round(written.seconds, 3), len(samples)) == (1.0, 24_000)
    assert path.stat().st_size == 44 + 4 * 24_000


async def test_blocks_under_another_key_are_silence_and_counted(session: Recorded, tmp_path: Path) -> None:
    await session.lives()
    session.hears(1_000, 5_000)
    await session.stored(key=new_key())
    await session.keys.make(session.sid)
    samples, written, _ = await session.exported(tmp_path)
    assert (written.sealed, heard(samples, 0), len(samples)) == (1, [], 72_000)


@pytest.mark.parametrize("missing", ["recording", "start"])
async def test_without_a_recording_or_a_start_there_is_no_file(session: Recorded, tmp_path: Path, missing: str) -> None:
    if missing == "recording":
        await session.lives()
    else:
        await session.keys.make(session.sid)
    before = names(tmp_path)
    with pytest.raises(VoxbridgeError) as refused:
        await wav.write(session.log, session.keys, session.sid, tmp_path / "none.wav")
    assert refused.value.code == Code.NOT_FOUND
    assert names(tmp_path) == before
