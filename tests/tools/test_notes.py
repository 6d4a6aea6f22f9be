"""Remembering and recalling through the executor, with Valkey as it is and as it loses everything."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from services.tools import service as tools_service
from shared.clock import SystemClock
from shared.events.tools import NoteRemembered, ToolCompleted, ToolFailed
from shared.ids import new_session_id
from shared.store import Store
from tests.tools.conftest import Caller, Executors
from voxbridge import erase, session_files

PACKS = "services.tools.functions.notes"


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
        with session_files.whole_file(file) as out:
            async for line in session_files.export(log, original.sid):
                out.write(line)
        copies = [(await session_files.load(log, file, sid=new_session_id()))[0] for _ in range(2)]
        await erased(copies[0])
        assert await recalled(other, "r1") == ["The key is under the mat."]
        await erased(original.sid)
        assert await recalled(other, "r2") == []
        await store.redis.flushall()
        assert await recalled(other, "r3") == [], "though the other copy is still in the log"
        assert [one.type async for one in log.read_all(copies[1], type="note.remembered")] == ["note.remembered"]


async def test_blank_notes_are_refused(executors: Executors, caller: Caller) -> None:
    async with executors.running(PACKS):
        await caller.call("remember", note="   ")
        failed, _ = await caller.next(ToolFailed)
    assert failed.error.code == "INVALID_ARGUMENT"
