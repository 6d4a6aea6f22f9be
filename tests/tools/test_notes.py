"""Remembering and recalling through the executor, with Valkey intact and after it lost everything."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from redis.asyncio import Redis

from tests.eventually import eventually
from tests.tools.conftest import Caller, Executors
from voxbridge.services.tools import service as tools_service
from voxbridge.services.tools.projection import Notes
from voxbridge.sessions import archive, erase
from voxbridge.shared.bus import subjects
from voxbridge.shared.clock import SystemClock
from voxbridge.shared.errors import Conflict, Unavailable
from voxbridge.shared.events.tools import NoteRemembered, ToolCompleted, ToolFailed
from voxbridge.shared.events.voice import SessionEnded
from voxbridge.shared.ids import new_session_id
from voxbridge.shared.log.reader import Log
from voxbridge.shared.log.writer import SessionWriter
from voxbridge.shared.store.store import Note, Store

PACKS = "voxbridge.services.tools.packs.everyday.notes"


async def recalled(caller: Caller, call_id: str, query: str = "", account: str = "me") -> list[str]:
    await caller.call("recall", call_id, account=account, query=query)
    done, _ = await caller.next(ToolCompleted, call_id)
    found = done.result["notes"]
    assert isinstance(found, list)
    return found


async def test_what_was_remembered_is_recalled_in_another_session_of_the_account(
    executors: Executors, callers: Callable[[], Awaitable[Caller]]
) -> None:
    first, second = await callers(), await callers()
    async with executors.running(PACKS):
        await first.call("remember", account="me", note="The key is  under the mat.")
        done, _ = await first.next(ToolCompleted)
        assert done.result == {"note": "The key is under the mat.", "spoken": "I'll remember that."}
        assert await recalled(second, "r1", "where is my key") == ["The key is under the mat."]
        assert await recalled(second, "r2", account="you") == []
    (fact,) = first.told(NoteRemembered)
    assert isinstance(fact, NoteRemembered)
    assert (fact.account, fact.note_id) == ("me", f"{first.sid}.c1")


async def test_notes_that_valkey_lost_come_back_from_the_log(
    executors: Executors, caller: Caller, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tools_service, "LOOK_AFTER_S", 3_600)
    async with executors.running(PACKS):
        for number in range(300):
            await caller.call("remember", f"c{number}", account="me", note=f"Fact number {number}.")
            await caller.next(ToolCompleted, f"c{number}")
        await store.redis.flushall()
        assert await recalled(caller, "r1", "fact 299 number") == ["Fact number 299.", *(f"Fact number {n}." for n in (298, 297, 296, 295))]
    assert len(await store.notes("me")) == 300


async def test_a_new_executor_makes_the_notes_whole(executors: Executors, caller: Caller, store: Store) -> None:
    async with executors.running(PACKS):
        await caller.call("remember", account="me", note="The key is under the mat.")
        await caller.next(ToolCompleted)
    await store.redis.flushall()
    async with executors.running(PACKS):
        assert await recalled(caller, "r1") == ["The key is under the mat."]


async def test_a_copy_of_a_session_neither_takes_its_notes_along_nor_brings_them_back(
    executors: Executors, callers: Callable[[], Awaitable[Caller]], store: Store, tmp_path: Path
) -> None:
    original, other = await callers(), await callers()
    file = tmp_path / "call.jsonl"

    async def erased(sid: str) -> None:
        later = SystemClock().now_us() + 2 * erase.UNTOUCHED_S * 1_000_000
        await erase.erase(log, store.redis, sid, by="me", now=later)

    async with executors.running(PACKS) as executor:
        log = executor._log
        await original.call("remember", account="me", note="The key is under the mat.")
        await original.next(ToolCompleted)
        with archive.whole_file(file) as out:
            async for line in archive.export(log, original.sid):
                out.write(line)
        copies = [(await archive.load(log, file, sid=new_session_id()))[0] for _ in range(2)]
        await erased(copies[0])
        assert await recalled(other, "r1") == ["The key is under the mat."]
        await erased(original.sid)
        assert await recalled(other, "r2") == []
        await store.redis.flushall()
        assert await recalled(other, "r3") == [], "though the other copy is still in the log"
        assert [one.type async for one in log.read_all(copies[1], types=("note.remembered",))] == ["note.remembered"]


class Held(Store):
    """A store that blocks before it writes notes, until the test releases it."""

    def __init__(self, redis: Redis) -> None:
        super().__init__(redis)
        self.came, self.go_on = asyncio.Event(), asyncio.Event()

    async def add_note(self, account: str, note: Note) -> bool:
        self.came.set()
        await self.go_on.wait()
        return await super().add_note(account, note)


@pytest.fixture
async def remembered(executors: Executors, caller: Caller, log: Log) -> str:
    """Run a session that stores a note and ends. Return its id."""
    async with executors.running(PACKS):
        await caller.call("remember", account="me", note="The key is under the mat.")
        await caller.next(ToolCompleted)
    await caller.say(SessionEnded(reason="client"))
    return caller.sid


async def erase_now(log: Log, store: Store, sid: str) -> erase.Erased:
    return await erase.erase(log, store.redis, sid, by="me", now=SystemClock().now_us())


async def test_an_erased_note_does_not_come_back_by_an_executor_that_had_read_it(remembered: str, log: Log, store: Store) -> None:
    reader = Held(store.redis)
    restoring = asyncio.create_task(Notes(log, reader).restore())
    await reader.came.wait()
    assert (await erase_now(log, store, remembered)).notes == 1
    reader.go_on.set()
    await restoring
    assert await store.notes("me") == []
    assert await store.redis.hgetall("vx:notes:{me}:text") == {}


async def test_an_erased_note_that_comes_back_while_valkey_has_forgotten_everything_is_removed(
    remembered: str, log: Log, store: Store
) -> None:
    reader = Held(store.redis)
    restoring = asyncio.create_task(Notes(log, reader).restore())
    await reader.came.wait()
    await erase_now(log, store, remembered)
    await store.redis.flushall()
    reader.go_on.set()
    await restoring
    assert await store.notes("me") == []


async def test_an_erased_note_that_a_dying_executor_brought_back_is_removed_by_the_next_one(
    executors: Executors, remembered: str, log: Log, store: Store, callers: Callable[[], Awaitable[Caller]]
) -> None:
    await erase_now(log, store, remembered)
    await store.redis.flushall()
    await store.add_note("me", Note(note_id=f"{remembered}.c1", text="The key is under the mat.", ts=5))
    other = await callers()
    async with executors.running(PACKS):
        await eventually(store.functions)
        assert await recalled(other, "r1") == []


async def test_a_note_that_came_back_between_two_tries_of_erasing_is_erased_by_the_second(
    remembered: str, log: Log, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def dies(*_: object) -> int:
        raise Unavailable("killed here")

    monkeypatch.setattr(erase, "_forget_notes", dies)
    with pytest.raises(Unavailable, match="killed here"):
        await erase_now(log, store, remembered)
    monkeypatch.undo()
    await store.redis.flushall()
    await store.add_note("me", Note(note_id=f"{remembered}.c1", text="The key is under the mat.", ts=5))
    assert (await erase_now(log, store, remembered)).notes == 1
    assert await store.notes("me") == []


async def test_notes_that_keep_coming_back_are_no_success(remembered: str, log: Log, store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    async def always(*_: object) -> list[tuple[str, str]]:
        return [("me", f"{remembered}.c1")]

    monkeypatch.setattr(Store, "notes_from", always)
    with pytest.raises(Unavailable, match="comes back"):
        await erase_now(log, store, remembered)


async def test_a_session_that_is_written_to_all_the_while_is_no_success(
    remembered: str, log: Log, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def leaves(*_: object, **__: object) -> None:
        pass

    monkeypatch.setattr(erase, "_overwrite", leaves)
    with pytest.raises(Conflict, match="goes on writing"):
        await erase_now(log, store, remembered)


async def test_blank_notes_are_refused(executors: Executors, caller: Caller) -> None:
    async with executors.running(PACKS):
        await caller.call("remember", note="   ")
        failed, _ = await caller.next(ToolFailed)
    assert failed.error.code == "INVALID_ARGUMENT"


async def age_out(log: Log, sid: str) -> None:
    """Let the sessions' retention pass."""
    config = (await log.js.stream_info(subjects.EVENT_STREAM)).config
    await log.js.update_stream(config.evolve(max_age=0.2, duplicate_window=0.1))

    async def gone() -> bool:
        return not await log.read(sid)

    await eventually(gone)
    await log.js.update_stream(config)


async def test_a_note_outlives_the_retention_of_its_session(
    executors: Executors, callers: Callable[[], Awaitable[Caller]], log: Log, store: Store, remembered: str
) -> None:
    await age_out(log, remembered)
    await store.redis.flushall()
    later = await callers()
    async with executors.running(PACKS):
        assert await recalled(later, "r1", "where is my key") == ["The key is under the mat."]


async def test_a_note_of_an_earlier_release_is_found_in_its_session_alone(
    executors: Executors, callers: Callable[[], Awaitable[Caller]], log: Log, store: Store
) -> None:
    old, later = new_session_id(), await callers()
    note = NoteRemembered(note_id=f"{old}.c1", account="me", text="The key is under the mat.")
    await SessionWriter(log, old, "tools").append(note, ts=SystemClock().now_us(), cause=None)
    async with executors.running(PACKS):
        assert await recalled(later, "r1") == ["The key is under the mat."]
        erased = await erase.erase(log, store.redis, old, by="me", now=SystemClock().now_us() + 8_000_000_000)
        assert erased.notes == 1
        assert await recalled(later, "r2") == []


async def test_erasing_a_session_erases_its_note_from_the_accounts_log_and_no_other(
    executors: Executors, callers: Callable[[], Awaitable[Caller]], log: Log, store: Store, remembered: str
) -> None:
    other = await callers()
    async with executors.running(PACKS):
        await other.call("remember", account="me", note="Anna is allergic to nuts.")
        await other.next(ToolCompleted)
        await erase_now(log, store, remembered)
        assert [one.event.text async for one in log.read_all("@me") if isinstance(one.event, NoteRemembered)] == [
            "Anna is allergic to nuts."
        ]
        await store.redis.flushall()
        assert await recalled(other, "r1") == ["Anna is allergic to nuts."]


async def test_a_note_that_is_remembered_again_under_its_id_is_kept_once(log: Log, store: Store) -> None:
    notes = Notes(log, store)
    for _ in range(3):
        await notes.add("me", Note(note_id="s.c1", text="once", ts=1))
    assert [one.writer async for one in log.read_all("@me")] == ["facts"]
    assert await notes.restore() == 1


async def test_erasing_an_account_erases_the_notes_in_its_log(log: Log, store: Store) -> None:
    await Notes(log, store).add("me", Note(note_id="@me.c1", text="The key is under the mat.", ts=SystemClock().now_us()))
    done = await erase.erase(log, store.redis, "@me", by="me", now=SystemClock().now_us())
    assert (done.events, done.notes) == (1, 1)
    assert await store.notes("me") == []
    assert [one.type async for one in log.read_all("@me")] == ["session.erased"]
