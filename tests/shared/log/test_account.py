"""The logs of accounts: a stream without an age, read, written, followed and erased by the same means as sessions."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import nats
import pytest
from nats.js.api import StreamConfig
from redis.asyncio import Redis

from tests.eventually import eventually
from voxbridge.sessions import archive, report
from voxbridge.sessions.erase import erase
from voxbridge.shared import events
from voxbridge.shared.bus import subjects
from voxbridge.shared.embedded.nats_server import NatsServer
from voxbridge.shared.errors import Code, Conflict, VoxbridgeError
from voxbridge.shared.events.gateway import SessionRequested, TaskCancelRequested
from voxbridge.shared.events.tools import NoteRemembered, ToolStarted
from voxbridge.shared.ids import new_session_id
from voxbridge.shared.log import session_file
from voxbridge.shared.log.feed import Feed
from voxbridge.shared.log.reader import Log
from voxbridge.shared.log.writer import SessionWriter

LOCAL = subjects.account_log("local")
AT = 1_700_000_000_000_000


@pytest.fixture
async def log(nats_url: str) -> AsyncIterator[Log]:
    connection = await nats.connect(nats_url)
    log = Log(connection)
    await log.ensure_streams(retention_days=1)
    yield log
    await connection.close()


def note(text: str, number: int = 1) -> NoteRemembered:
    return NoteRemembered(note_id=f"@local.n{number}", account="local", text=text)


@pytest.mark.parametrize(
    ("account", "log_id"),
    [("local", "@local"), ("guest-0f", "@guest-0f"), ("ada@example.org", "@ada@example=org"), ("a" * 64, f"@{'a' * 64}")],
)
def test_the_id_of_an_accounts_log_names_the_account_and_is_one_part_of_a_subject(account: str, log_id: str) -> None:
    assert subjects.account_log(account) == log_id
    assert subjects.account_of(log_id) == account
    subject = subjects.event_subject(log_id, "tools", visible=False, event_type="note.remembered")
    assert subject == f"vx.a.{log_id[1:]}.ev.tools.i.note.remembered"
    assert subjects.parse_event_subject(subject) == (log_id, "tools", False)
    assert (subjects.stream_of(log_id), subjects.stream_holding(subject)) == (subjects.ACCOUNT_STREAM, subjects.ACCOUNT_STREAM)
    assert subjects.account_of(new_session_id()) == ""


@pytest.mark.parametrize("account", ["", "a" * 65, "Ada", "a b", "*", ">", "a*", "@local", "-a", ".a", "a\n", "ä", "a=b"])
def test_what_is_no_name_of_an_account_has_no_log(account: str) -> None:
    with pytest.raises(VoxbridgeError) as refused:
        subjects.account_log(account)
    assert (refused.value.code, refused.value.field) == (Code.INVALID_ARGUMENT, "account")


async def test_an_accounts_events_are_written_in_order_under_a_fence_and_followed_live(log: Log) -> None:
    heard: list[events.Recorded] = []
    first = SessionWriter(log, LOCAL, "tools")
    await first.append(note("stored"), ts=AT, cause=None)
    feed = Feed(log, LOCAL, heard.append)
    await feed.start()
    await first.append(note("live", 2), ts=AT, cause=None)
    await eventually(lambda: len(heard) == 2)
    assert [(one.sid, one.event.text) for one in heard if isinstance(one.event, NoteRemembered)] == [
        ("@local", "stored"),
        ("@local", "live"),
    ]
    assert await log.read(LOCAL, writer="tools") == heard
    assert await log.position(LOCAL, "tools") == (heard[-1].seq, first.message_id(heard[-1].id))
    with pytest.raises(Conflict):
        await SessionWriter(log, LOCAL, "tools").append(note("by another process", 3), ts=AT, cause=None)
    await feed.stop()


async def test_one_account_reads_nothing_of_another_and_no_session(log: Log) -> None:
    other, sid = subjects.account_log("ada@example.org"), new_session_id()
    for one in (LOCAL, other, sid):
        await SessionWriter(log, one, "tools").append(note(one), ts=AT, cause=None)
    assert [one.sid for one in await log.read(LOCAL)] == [LOCAL]
    assert [one.sid for one in await log.read(other)] == [other]
    assert [one.sid for one in await log.read(sid)] == [sid]
    assert [one.sid for one in await log.read(subjects.ACCOUNTS)] == [LOCAL, other]
    assert [one.sid for one in await log.read("*")] == [sid]
    last = await log.last([subjects.stored_subject(one, "tools", "i", "note.remembered") for one in (LOCAL, other)])
    assert [one.sid for one in last] == [LOCAL, other]


async def test_listings_of_sessions_show_no_account(log: Log) -> None:
    sid = new_session_id()
    await SessionWriter(log, sid, "gateway").append(SessionRequested(mode="local"), ts=AT, cause=None)
    await SessionWriter(log, LOCAL, "gateway").append(TaskCancelRequested(task_id="task-1"), ts=AT, cause=None)
    assert [one.id for one in await report.newest(log, 10)] == [sid]
    assert await report.find(log, "@local") == LOCAL
    with pytest.raises(VoxbridgeError, match="nothing of the account 'ada'") as missing:
        await report.find(log, "@ada")
    assert missing.value.code is Code.NOT_FOUND


async def test_an_account_outlives_the_retention_of_sessions(log: Log) -> None:
    sid = new_session_id()
    await SessionWriter(log, sid, "tools").append(note("of a session"), ts=AT, cause=None)
    await SessionWriter(log, LOCAL, "tools").append(note("of the account"), ts=AT, cause=None)
    config = (await log.js.stream_info(subjects.EVENT_STREAM)).config
    await log.js.update_stream(config.evolve(max_age=0.2, duplicate_window=0.1))
    assert (await log.js.stream_info(subjects.ACCOUNT_STREAM)).config.max_age in (None, 0)

    async def gone() -> bool:
        return not await log.read(sid)

    await eventually(gone)
    assert [one.event for one in await log.read(LOCAL)] == [note("of the account")]


async def test_an_account_is_exported_and_imported_like_a_session(log: Log, own_nats: Callable[[], NatsServer], tmp_path: Path) -> None:
    writer = SessionWriter(log, LOCAL, "tools")
    for number in range(3):
        await writer.append(note(f"number {number}", number), ts=AT, cause=None)
    lines = [line async for line in archive.export(log, LOCAL)]
    header = session_file.read_header(lines[0])
    assert (header.sid, header.events, len(lines)) == (LOCAL, 3, 4)
    file = tmp_path / "account.jsonl"
    file.write_bytes(b"".join(lines))
    connection = await nats.connect(own_nats().url)
    try:
        elsewhere = Log(connection)
        await elsewhere.ensure_streams()
        assert (await archive.load(elsewhere, file))[:2] == (LOCAL, 3)
        assert [one.event for one in await elsewhere.read(LOCAL)] == [note(f"number {number}", number) for number in range(3)]
        with pytest.raises(VoxbridgeError) as twice:
            await archive.load(elsewhere, file)
        assert twice.value.code is Code.CONFLICT
    finally:
        await connection.close()


async def test_an_erased_account_leaves_a_tombstone_and_is_written_again_afterwards(log: Log, redis_url: str) -> None:
    sid, other = new_session_id(), subjects.account_log("ada")
    await SessionWriter(log, sid, "tools").append(note("of a session"), ts=AT, cause=None)
    await SessionWriter(log, other, "tools").append(note("of another account"), ts=AT, cause=None)
    writer = SessionWriter(log, LOCAL, "tools")
    await writer.append(note("the secret"), ts=AT, cause=None)
    await writer.append(note("another", 2), ts=AT + 1, cause=None)
    async with Redis.from_url(redis_url) as redis:
        done = await erase(log, redis, LOCAL, by="Ada", now=AT + 9)
        assert (done.events, done.blocks) == (2, 0)
        (stone,) = await log.read(LOCAL)
        assert isinstance(stone.event, events.operator.SessionErased)
        assert (stone.event.by, stone.event.began, stone.event.events) == ("Ada", AT, 2)
        assert len(await log.read(sid)) == len(await log.read(other)) == 1
        assert [one.id for one in await report.newest(log, 10)] == []
        again = SessionWriter(log, LOCAL, "tools")
        await again.append(note("afterwards"), ts=AT, cause=None)
        assert (await erase(log, redis, LOCAL, by="Ada", now=AT)).events == 1


async def test_an_account_whose_function_runs_is_not_erased(log: Log, redis_url: str) -> None:
    await SessionWriter(log, LOCAL, "tools").append(ToolStarted(call_id="c1", name="slow"), ts=AT, cause=None)
    async with Redis.from_url(redis_url) as redis:
        with pytest.raises(Conflict, match="A function of the account still runs"):
            await erase(log, redis, LOCAL, by="Ada", now=AT + 1_000_000)


async def test_an_installation_of_an_earlier_release_gets_the_stream_and_loses_nothing(own_nats: Callable[[], NatsServer]) -> None:
    connection = await nats.connect(own_nats().url)
    try:
        log, js = Log(connection), connection.jetstream()
        await js.add_stream(StreamConfig(name=subjects.EVENT_STREAM, subjects=[subjects.EVENT_SUBJECTS], max_age=86_400))
        sid = new_session_id()
        await js.publish(
            subjects.event_subject(sid, "tools", visible=False, event_type="note.remembered"),
            events.encode(note("before"), event_id=f"{sid}.tools.0", sid=sid, ts=AT, cause=None),
        )
        await asyncio.gather(*(log.ensure_streams() for _ in range(3)))
        assert len(await log.read(sid)) == 1
        config = json.loads((await connection.request(f"$JS.API.STREAM.INFO.{subjects.ACCOUNT_STREAM}")).data)["config"]
        assert (config["subjects"], config["max_age"], config["storage"]) == ([subjects.ACCOUNT_SUBJECTS], 0, "file")
        await SessionWriter(log, LOCAL, "tools").append(note("after"), ts=AT, cause=None)
        assert len(await log.read(LOCAL)) == 1
    finally:
        await connection.close()
