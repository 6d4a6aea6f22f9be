"""Recorded sessions: sealed storage across the end of a worker, export to a file, and erasure from every store."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import nats
import numpy as np
import pytest
from nats.aio.client import Client
from redis.asyncio import Redis

from tests.eventually import BOUND_S
from tests.shared.backends import open_log
from tests.voice.conftest import MakePage, Page, Workers, at_rest, becomes, left
from tests.voice.model_server import ModelServer
from tests.voice.sounds import silence, speech
from voxbridge.services.voice.audio import recorder
from voxbridge.services.voice.audio.recorder import Recorder, Recorders
from voxbridge.sessions import erase, wav
from voxbridge.shared.audio import frames, recordings
from voxbridge.shared.audio.recordings import DataKeys
from voxbridge.shared.bus import subjects
from voxbridge.shared.clock import SystemClock, wall_ms32
from voxbridge.shared.config import Config, Recording
from voxbridge.shared.embedded.nats_server import NatsServer
from voxbridge.shared.embedded.valkey_server import ValkeyServer
from voxbridge.shared.errors import Code, Conflict, Unavailable, VoxbridgeError
from voxbridge.shared.events import gateway, operator, tools
from voxbridge.shared.events import voice as ev
from voxbridge.shared.log import streams
from voxbridge.shared.log.reader import Log
from voxbridge.shared.store.store import Note, Store

SECRET = "xylophone seven seven three one"
ANSWER = "Your marmalade is safe."
NOTE = "The periwinkle safe is behind the curtain."
MARK = np.arange(-8_000, 8_000, 5, dtype="<i2").tobytes()
"""Samples that occur in no other audio."""


@pytest.fixture
def config(config: Config, tmp_path: Path) -> Config:
    return replace(config, recording="allow", data_dir=tmp_path)


async def blocks(log: Log, sid: str) -> list[bytes]:
    page = await log.frames(subjects.RECORD_STREAM, "vxr.>" if sid == ">" else subjects.recorded(sid))
    return [message.data for message in page.messages]


async def recorded(log: Log, config: Config, sid: str) -> dict[str, bytes]:
    """Return the PCM of both channels of a recording."""
    async with Redis.from_url(config.redis_url, decode_responses=True) as redis:
        key = await DataKeys.of(config, redis).find(sid)
    assert key is not None
    passed = recordings.Passed()
    found: dict[str, bytes] = dict.fromkeys(recordings.CHANNELS, b"")
    for frame in (await recordings.read(log, sid, key, after=0, limit=100)).frames:
        if passed.fresh(frame):
            found[recordings.CHANNELS[frame.channel]] += frame.data[frames.PREFIX_SIZE :]
    return found


async def test_a_session_that_asks_for_it_is_recorded_in_both_directions_and_says_so(
    workers: Workers, page: Page, store: Store, config: Config
) -> None:
    async with workers.running() as worker:
        await page.open("echo", record=True)
        started = await page.until(ev.SessionStarted)
        assert getattr(started.event, "recorded", None) is True
        await page.speaks(silence(200) + MARK)
        await page.when(lambda: sum(len(pcm) for _, pcm in page.frames) == 6_400 + len(MARK))
        await page.ends()
        await left(store, page)
        await at_rest(worker)
        stored = await blocks(page.log, page.sid)
        assert stored
        assert not any(MARK[:64] in block for block in stored)
        found = await recorded(page.log, config, page.sid)
    assert found == {"in": silence(200) + MARK, "out": silence(200) + MARK}


async def test_nothing_is_kept_of_a_session_that_nobody_wants_recorded(workers: Workers, page: Page, store: Store, config: Config) -> None:
    async with workers.running() as worker:
        await page.open("echo")
        started = await page.until(ev.SessionStarted)
        assert getattr(started.event, "recorded", None) is False
        await page.speaks(MARK)
        await page.when(lambda: page.frames)
        await page.ends()
        await left(store, page)
        await at_rest(worker)
        assert await blocks(page.log, ">") == []
        assert worker._recorders._running == {}
    assert await store.redis.exists(recordings.name(page.sid)) == 0


async def test_what_a_killed_worker_had_not_written_its_successor_writes_and_nothing_twice(
    workers: Workers, page: Page, store: Store, config: Config
) -> None:
    async with workers.process() as first:
        await page.open("echo", record=True)
        await page.until(ev.SessionStarted)
        async with workers.running() as worker:  # the bus keeps what the first worker had not written for four seconds
            await page.speaks(MARK)
            await page.when(lambda: sum(len(pcm) for _, pcm in page.frames) == len(MARK))

            async def written() -> bool:
                return bool(await blocks(page.log, page.sid))

            await becomes(written)
            await page.speaks(MARK[::-1])
            await page.when(lambda: sum(len(pcm) for _, pcm in page.frames) == 2 * len(MARK))
            first.kill()
            await page.until(ev.SessionRestored)
            await page.ends()
            await left(store, page)
            await at_rest(worker)
            found = await recorded(page.log, config, page.sid)
    assert found["in"] == MARK + MARK[::-1]
    assert found["out"] == found["in"]


async def test_a_recording_goes_on_over_a_restart_of_the_bus_which_counts_anew(
    own_nats: Callable[[], NatsServer], redis_url: str, config: Config
) -> None:
    server, sid, back = own_nats(), "7" * 32, asyncio.Event()
    async with Redis.from_url(redis_url, decode_responses=True) as redis, open_log(server.url, on_back=back.set) as log:
        await log.ensure_streams(retention_days=1, recording=Recording(hours=1, max_bytes=16_000_000))
        keys = DataKeys.of(config, redis)
        recording = Recorder(log, keys, sid, await keys.make(sid))
        for number in range(3):
            await log.nc.publish(subjects.audio_in(sid), frames.pack(frames.PCM16, 0, number, wall_ms32(), b"ab"))
        await log.nc.flush()

        async def kept() -> bool:
            return len((await log.frames(subjects.MICROPHONE_STREAM, subjects.audio_in(sid))).messages) == 3

        await becomes(kept)
        await recording.write()
        (block,) = await blocks(log, sid)

        async def on_disk() -> bool:
            return any(block in path.read_bytes() for path in server.folder.rglob("*.blk"))

        await becomes(on_disk)
        server.kill()
        server.start()
        async with asyncio.timeout(BOUND_S):
            await back.wait()

        async def taken() -> bool:  # checks the new stream
            await log.nc.publish(subjects.audio_out(sid), frames.pack(frames.PCM16, 1, 3, wall_ms32(), b"cd"))
            await log.nc.flush()
            return bool((await log.frames(subjects.REPLY_STREAM, subjects.audio_out(sid))).messages)

        await becomes(taken)
        await recording.end()
        found = await recorded(log, config, sid)
    assert found["in"] == b"ababab"
    assert found["out"].startswith(b"cd")


async def test_while_the_record_takes_nothing_one_block_waits_and_it_is_said_once(
    connection: Client, store: Store, config: Config, caplog: pytest.LogCaptureFixture
) -> None:
    log, sid, keys = Log(connection), "8" * 32, DataKeys.of(config, store.redis)
    recording = Recorder(log, keys, sid, await keys.make(sid))
    for number in range(300):
        await connection.publish(subjects.audio_in(sid), frames.pack(frames.PCM16, 0, number, wall_ms32(), b"ab"))
    await connection.flush()

    async def kept_by_the_bus() -> bool:
        return (await log.js.stream_info(subjects.MICROPHONE_STREAM)).state.messages == 300

    await becomes(kept_by_the_bus)
    await recording.write()
    await recording.write()
    assert [len(block) for block in recording._waiting] == [256]
    assert caplog.text.count("its recording has to wait") == 1
    await log.ensure_streams(retention_days=1, recording=Recording(hours=1, max_bytes=16_000_000))
    await recording.end()
    assert await recorded(log, config, sid) == {"in": b"ab" * 300, "out": b""}


class Kept:
    """Separate stores, whose files are searched."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.nats = NatsServer(folder / "nats", min_free_bytes=0)
        self.valkey = ValkeyServer(folder / "valkey", min_free_bytes=0)

    def holds(self, words: bytes, below: str = ".") -> list[str]:
        """Return the files that contain these bytes, with their counts."""
        found = [(path, path.read_bytes().count(words)) for path in (self.folder / below).rglob("*") if path.is_file()]
        return [f"{path.relative_to(self.folder)}: {count}" for path, count in found if count]


@pytest.fixture
def kept(tmp_path: Path) -> Iterator[Kept]:
    found = Kept(tmp_path / "stores")
    with found.nats, found.valkey:
        yield found


@asynccontextmanager
async def lived(kept: Kept, config: Config, models: ModelServer) -> AsyncIterator[tuple[Page, Page, Store]]:
    """Run a recorded session with words, audio, a tool call and a note until it has ended, and another one with the same words."""
    connection = await nats.connect(kept.nats.url)
    await Log(connection).ensure_streams(retention_days=1, recording=config.record)
    async with Redis.from_url(kept.valkey.url, decode_responses=True) as redis:
        store = Store(redis)
        pages = [Page(connection, store) for _ in range(2)]
        for page, account in zip(pages, ("ann", "bob"), strict=True):
            async with Workers(config).process() as worker:
                models.script("llm", [ANSWER])
                await page.open(record=True, resume_hash="ab" * 32, account=account)
                await page.until(ev.SessionStarted)
                await page.says(gateway.TextReceived(text=SECRET))
                await page.until(ev.TurnCompleted)
                models.script("stt", [SECRET])
                await page.speaks(silence(500) + speech(1_500) + MARK + silence(900))
                await page.until(ev.UserSaid, 2)
                await page.until(ev.TurnCompleted, 2)
                note = Note(note_id=f"{page.sid}.c1", text=NOTE, ts=5)
                await page.writes_as_tools(tools.ToolStarted(call_id="c1", name="remember"))
                await page.executes(
                    ev.ToolCalled(call_id="c1", name="remember", arguments={"note": NOTE}, kind="server", turn=1, deadline_ms=1),
                    {"note": NOTE},
                )
                await page.writes_as_tools(tools.NoteRemembered(note_id=note.note_id, account=account, text=NOTE))
                await store.add_note(account, note)
                await store.keep_handle(page.sid, "a handle", 600)
                await page.ends()
                await left(store, page)
                worker.terminate()
                said = await worker.communicate()
                assert SECRET.encode() not in said[1]
                assert ANSWER.encode() not in said[1]
            await page.stop()
        yield pages[0], pages[1], store
    await connection.close()


async def test_after_erasing_no_store_holds_a_word_a_sample_or_the_key_of_the_session(
    kept: Kept, config: Config, model_server: ModelServer, tmp_path: Path
) -> None:
    config = replace(config, nats_url=kept.nats.url, redis_url=kept.valkey.url)
    async with lived(kept, config, model_server) as (page, other, store):
        log, redis = page.log, store.redis
        words = [SECRET.encode(), ANSWER.encode(), NOTE.encode()]
        before = {word: kept.holds(word, "nats") for word in words}
        assert all(before.values())
        key = str(await redis.get(recordings.name(page.sid)))
        assert kept.holds(key.encode(), "valkey")
        sealed = await blocks(log, page.sid)
        assert sealed
        assert all(kept.holds(block[40:104], "nats") for block in sealed)
        assert (await recorded(log, config, page.sid))["in"]
        assert kept.holds(MARK[:64]) == []
        told = [one async for one in log.read_all(page.sid)]

        done = await erase.erase(log, redis, page.sid, by="ann herself", now=SystemClock().now_us())
        assert done == (page.sid, len(told), len(sealed), 1, ())

        (left_over,) = [one async for one in log.read_all(page.sid)]
        assert left_over.event == operator.SessionErased(by="ann herself", began=told[0].ts, mode="local", events=len(told))
        # The other session has the same words: the rest of them in any file belongs to it.
        second = await erase.erase(log, redis, other.sid, by="bob", now=SystemClock().now_us())
        assert second.left == ()

        async def gone() -> bool:  # Valkey removes replaced files with a delay
            return not kept.holds(key.encode())

        await becomes(gone)
        for trace in (*words, MARK[:64], *(block[40:104] for block in sealed), b"a handle"):
            assert kept.holds(trace) == []
        for stream, subject in subjects.kept_audio(page.sid):
            assert (await log.frames(stream, subject)).messages == []
        assert (await store.notes("ann"), await store.resumable(page.sid), await store.handle(page.sid)) == ([], None, None)
        assert await redis.keys(f"*{page.sid}*") == []
        assert [sid for sid, _ in await store.recent_sessions(limit=10)] == [other.sid, page.sid]
        stored = b"".join(path.read_bytes() for path in (kept.folder / "nats").rglob("*") if path.is_file())
        beside = [at for at in range(len(stored)) if stored.startswith(page.sid.encode(), at)]
        tombstone = stored.index(b"session.erased", stored.index(page.sid.encode()))
        assert beside
        assert all(abs(at - tombstone) < 512 for at in beside)
        with pytest.raises(VoxbridgeError) as refused:
            await wav.write(log, DataKeys.of(config, redis), page.sid, tmp_path / "late.wav")
        assert refused.value.code == Code.NOT_FOUND
        assert not (tmp_path / "late.wav").exists()


async def test_erasing_one_session_leaves_the_words_of_another(kept: Kept, config: Config, model_server: ModelServer) -> None:
    config = replace(config, nats_url=kept.nats.url, redis_url=kept.valkey.url)
    async with lived(kept, config, model_server) as (page, other, store):
        await erase.erase(page.log, store.redis, page.sid, by="ann", now=SystemClock().now_us())
        assert SECRET in {getattr(one.event, "text", "") for one in [one async for one in page.log.read_all(other.sid)]}
        assert (await recorded(page.log, config, other.sid))["in"]
        assert [note.text for note in await store.notes("bob")] == [NOTE]


async def test_what_came_after_an_erasure_is_erased_by_the_next_and_there_is_one_tombstone(
    workers: Workers, page: Page, store: Store
) -> None:
    async with workers.running():
        await page.open("echo")
        await page.until(ev.SessionStarted)
        await page.ends()
        await left(store, page)
    clock = SystemClock()
    await erase.erase(page.log, store.redis, page.sid, by="a", now=clock.now_us())
    await page.executes(ev.ToolCalled(call_id="late", name="n", arguments={}, kind="server", turn=1, deadline_ms=1), {"late": SECRET})
    done = await erase.erase(page.log, store.redis, page.sid, by="b", now=clock.now_us())
    assert done.events == 1
    assert [one.event.by for one in await page.everything() if isinstance(one.event, operator.SessionErased)] == ["a"]
    assert len(await page.everything()) == 1


async def test_a_live_session_and_one_with_a_running_function_are_refused(
    workers: Workers, page: Page, pages: MakePage, store: Store
) -> None:
    clock = SystemClock()
    async with workers.running():
        await page.open("echo")
        await page.until(ev.SessionStarted)
        with pytest.raises(Conflict, match="is live"):
            await erase.erase(page.log, store.redis, page.sid, by="a", now=clock.now_us())
        await page.writes_as_tools(tools.ToolStarted(call_id="c", name="slow"))
        await page.ends()
        await left(store, page)
    with pytest.raises(Conflict, match="function"):
        await erase.erase(page.log, store.redis, page.sid, by="a", now=clock.now_us())
    held = len(await page.everything())
    later = clock.now_us() + (erase.UNTOUCHED_S + 1) * 1_000_000
    assert (await erase.erase(page.log, store.redis, page.sid, by="a", now=later)).events == held
    with pytest.raises(VoxbridgeError) as unknown:
        await erase.erase(page.log, store.redis, "0" * 32, by="a", now=later)
    assert unknown.value.code == Code.NOT_FOUND
    nobody = pages()
    await nobody.open("echo", live=False)
    with pytest.raises(Conflict, match="has not ended"):
        await erase.erase(page.log, store.redis, nobody.sid, by="a", now=clock.now_us())


def test_the_recorder_looks_often_enough_for_a_takeover_within_what_the_bus_keeps() -> None:
    lease_s, looks_s = 3.0, 0.3
    assert recorder.EVERY_S + lease_s + looks_s < min(streams.REPLY_S, streams.MICROPHONE_S)


@pytest.mark.parametrize("ended", [False, True])
async def test_a_key_that_comes_late_is_waited_for_as_long_as_the_session_lasts(
    connection: Client, store: Store, config: Config, monkeypatch: pytest.MonkeyPatch, ended: bool
) -> None:
    log, sid, asked, make = Log(connection), "6" * 32, asyncio.Event(), DataKeys.make
    there = asyncio.Event()

    async def late(self: DataKeys, sid: str) -> bytes:
        asked.set()
        if not there.is_set():
            raise Unavailable("Valkey does not answer.")
        return await make(self, sid)

    monkeypatch.setattr(DataKeys, "make", late)
    monkeypatch.setattr(recorder, "EVERY_S", 0.02)
    monkeypatch.setattr(recorder, "END_S", 0.05)
    recorders = Recorders(log, DataKeys.of(config, store.redis))
    await recorders.begin(sid)
    assert asked.is_set()
    if ended:
        await recorders.end(sid)
        asked.clear()
        there.set()
        assert not recorders._beginning
        assert not recorders._running
        return
    there.set()

    async def recording() -> bool:
        return sid in recorders._running

    await becomes(recording)
    await recorders.end(sid)
