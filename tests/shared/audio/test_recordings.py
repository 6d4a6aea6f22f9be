"""Selection of recorded sessions, blocks of a recording, and their key."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path

import pytest
from nats.js.errors import NoStreamResponseError
from redis.asyncio import Redis

from tests.eventually import eventually
from voxbridge.shared.audio import recordings
from voxbridge.shared.audio.recordings import BLOCK_BYTES, DataKeys, Frame, Passed
from voxbridge.shared.bus import subjects
from voxbridge.shared.config import Config, Recording
from voxbridge.shared.log.reader import Log
from voxbridge.shared.secrets.vault import WrongKey, new_key

SID = "5e" * 16


@pytest.fixture
async def keys(store_url: str, tmp_path: Path) -> AsyncIterator[tuple[DataKeys, Redis]]:
    async with Redis.from_url(store_url, decode_responses=True) as redis:
        await redis.delete(recordings.name(SID))
        yield DataKeys.of(Config(data_dir=tmp_path), redis), redis


@pytest.mark.parametrize(
    ("setting", "agents", "asked", "recorded"),
    [
        ("off", [], None, False),
        ("off", [True], True, False),
        ("allow", [], None, False),
        ("allow", [], True, True),
        ("allow", [True], None, True),
        ("allow", [None, True], None, False),
        ("allow", [True], False, False),
        ("allow", [False], True, False),
        ("allow", [True, False], None, False),
        ("on", [], None, True),
        ("on", [None], False, False),
        ("on", [None, False], None, False),
        ("on", [False], True, False),
    ],
)
def test_who_is_recorded_is_said_by_all_and_a_refusal_counts_first(
    setting: str, agents: list[bool | None], asked: bool | None, recorded: bool
) -> None:
    assert recordings.wanted(setting, agents, asked) is recorded


def test_a_block_is_cut_where_it_is_full_and_a_larger_frame_stands_alone() -> None:
    frames = [Frame(0, n, n, b"x" * (BLOCK_BYTES // 4)) for n in range(1, 6)] + [Frame(0, 9, 9, b"x" * (BLOCK_BYTES + 1))]
    assert [[frame.seq for frame in block] for block in recordings.blocks(frames)] == [[1, 2, 3, 4], [5], [9]]
    assert list(recordings.blocks([])) == []


def test_a_block_opens_with_its_key_for_its_session_alone_and_shows_nothing_else() -> None:
    key, block = new_key(), [Frame(1, 7, 8, b"sixteen samples!" * 4)]
    stored = recordings.seal(key, SID, block)
    assert recordings.unseal(key, SID, stored) == block
    assert b"sixteen" not in stored
    for wrong in ((new_key(), SID), (key, "a" * 32)):
        with pytest.raises(WrongKey):
            recordings.unseal(*wrong, stored)


def test_frames_that_come_again_are_passed_over_and_those_of_a_bus_that_counts_anew_are_not() -> None:
    passed = Passed()
    again = ((1, 10), (2, 20), (1, 10), (2, 20), (3, 20))
    assert [passed.fresh(Frame(0, seq, at, b"")) for seq, at in again] == [True, True, False, False, True]
    assert passed.fresh(Frame(1, 1, 15, b"")), "the other channel is a stream of its own"
    assert [passed.fresh(Frame(0, seq, at, b"")) for seq, at in ((1, 40), (2, 50), (1, 40))] == [True, True, False]


async def test_a_session_has_one_key_in_one_place_until_it_is_deleted(keys: tuple[DataKeys, Redis]) -> None:
    known, redis = keys
    assert await known.find(SID) is None
    key = await known.make(SID)
    assert (len(key), await known.make(SID), await known.find(SID)) == (32, key, key)
    kept = str(await redis.get(recordings.name(SID)))
    assert key not in kept.encode()
    assert 24 * 3_600 < await redis.ttl(recordings.name(SID)) <= 48 * 3_600
    await redis.delete(recordings.name(SID))
    await known.prolong(SID)
    assert await known.find(SID) is None


async def stored(log: Log, sid: str, block: bytes, *, headers: dict[str, str] | None = None) -> None:
    """Store a block of sound. Three servers may not all know of a stream yet in the moment in which it is made."""

    async def taken() -> bool:
        with suppress(NoStreamResponseError):
            return bool(await log.js.publish(subjects.recorded(sid), block, headers=headers))
        return False

    await eventually(taken)


async def test_what_was_sealed_with_another_key_is_counted_and_passed_over(log: Log) -> None:
    await log.ensure_streams(retention_days=1, recording=Recording(hours=1, max_bytes=16_000_000))
    key = new_key()
    for seq, sealing in enumerate((key, new_key(), key), 1):
        sealed = recordings.seal(sealing, SID, [Frame(0, seq, seq, b"ab")])
        await stored(log, SID, sealed)
    first = await recordings.read(log, SID, key, after=0, limit=2)
    assert ([frame.seq for frame in first.frames], first.sealed, first.more) == ([1], 1, True)
    rest = await recordings.read(log, SID, key, after=first.after, limit=2)
    assert ([frame.seq for frame in rest.frames], rest.sealed, rest.more) == ([3], 0, False)


def test_a_block_opens_with_its_own_index_and_no_other() -> None:
    key, block = new_key(), [Frame(0, 1, 1, b"ab")]
    stored = recordings.seal(key, SID, block, "a.1")
    assert recordings.unseal(key, SID, stored, "a.1") == block
    for index in ("a.2", "b.1", ""):
        with pytest.raises(WrongKey):
            recordings.unseal(key, SID, stored, index)


async def test_blocks_that_were_taken_out_or_put_elsewhere_are_noticed(log: Log) -> None:
    await log.ensure_streams(retention_days=1, recording=Recording(hours=1, max_bytes=16_000_000))
    key, sid = new_key(), "b" * 32

    async def store(index: str, *, sealed_as: str | None = None) -> None:
        seq = int(index.rpartition(".")[2] or 9)
        sealed = recordings.seal(key, sid, [Frame(0, seq, seq, b"ab")], index if sealed_as is None else sealed_as)
        await stored(log, sid, sealed, headers={recordings.INDEX: index} if index else None)

    for index in ("", "a.1", "a.2", "a.5", "b.7", "b.8"):
        await store(index)
    await store("a.6", sealed_as="a.2")
    order = recordings.Order()
    first = await recordings.read(log, sid, key, after=0, limit=3, order=order)
    rest = await recordings.read(log, sid, key, after=first.after, limit=64, order=order)
    assert (first.sealed, first.missing, len(first.frames)) == (0, 0, 3), "one of an older release among them"
    assert (rest.sealed, rest.missing, len(rest.frames)) == (1, 2, 3)
