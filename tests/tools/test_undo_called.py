"""Taking back what functions did, on real servers: by whatever door, over sessions, and once over kills."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from nats.aio.client import Client

from tests.eventually import eventually
from tests.tools.conftest import Caller, Executors
from tests.tools.replaced import replaced
from tests.tools.test_account_calls import Asking
from tests.tools.test_service import MakeCaller, acknowledged
from voxbridge.services.tools.session.session import refold
from voxbridge.shared import events
from voxbridge.shared.bus import subjects
from voxbridge.shared.config import Config
from voxbridge.shared.events.gateway import ApprovalClicked
from voxbridge.shared.events.tools import NoteForgotten, TaskCancelled, TaskCompleted, ToolCompleted, ToolFailed, ToolUndone
from voxbridge.shared.log.reader import Log
from voxbridge.shared.log.writer import SessionWriter
from voxbridge.shared.store.store import Store

LOCAL = subjects.account_log("local")
NOTES = "voxbridge.services.tools.packs.everyday.notes,voxbridge.services.tools.packs.catalogue.functions"
STEPS = [{"call": "remember", "arguments": {"note": "One."}}, {"call": "remember", "arguments": {"note": "Two."}}]


@pytest.fixture
async def client(log: Log) -> AsyncIterator[Asking]:
    client = Asking(log)
    await client.start()
    yield client
    await client.stop()


async def did(caller: Caller, name: str, call_id: str, /, **arguments: Any) -> dict[str, Any]:
    """Call a function and return its result."""
    await caller.call(name, call_id, **arguments)
    done, _ = await caller.next((ToolCompleted, ToolFailed), call_id)
    assert isinstance(done, ToolCompleted), done
    return done.result


async def refused(caller: Caller, name: str, call_id: str, /, **arguments: Any) -> str:
    await caller.call(name, call_id, **arguments)
    failed, _ = await caller.next(ToolFailed, call_id)
    return failed.error.message


async def undone(log: Log) -> list[str]:
    """Return the calls that were taken back, as the log of the account tells it."""
    found = log.read_all(LOCAL, writer="tools", types=("tool.undone",))
    return [one.event.call_id async for one in found if isinstance(one.event, ToolUndone)]


async def test_the_last_note_is_forgotten_and_then_the_one_before(
    executors: Executors, caller: Caller, store: Store, log: Log, connection: Client
) -> None:
    async with executors.running(NOTES):
        assert await did(caller, "undo_last", "u0") == {"undone": [], "spoken": "There is nothing that I can take back."}
        await did(caller, "remember", "c1", note="The key is under the mat.")
        await did(caller, "remember", "c2", note="The bike is in the cellar.")
        assert await did(caller, "undo_last", "u1") == {"undone": ["c2"], "spoken": "I forgot the note."}
        assert (await did(caller, "recall", "r1", query=""))["notes"] == ["The key is under the mat."]
        assert (await did(caller, "undo_last", "u2"))["undone"] == ["c1"], "the same words a second time are meant"
        assert (await did(caller, "undo_last", "u3", call="c1"))["undone"] == []
        await store.redis.flushall()
        assert (await did(caller, "recall", "r2", query=""))["notes"] == [], "what Valkey lost is made again without them"
        await acknowledged(connection)
    assert await undone(log) == ["c2", "c1"]


async def test_what_a_call_did_is_taken_back_over_rest_and_the_other_way_round(
    executors: Executors, caller: Caller, callers: MakeCaller, client: Asking
) -> None:
    later = await callers()
    async with executors.running(NOTES):
        await did(caller, "remember", "c1", note="One.")
        await did(caller, "remember", "c2", note="Two.")
        assert (await did(client, "undo_last", "r1", call="c1"))["undone"] == ["c1"]
        await did(client, "remember", "r2", note="Three.")
        assert (await did(later, "undo_last", "u1"))["undone"] == ["r2"], "the last one of the account"
        assert (await did(later, "undo_last", "u2"))["undone"] == ["c2"]
        assert (await did(later, "recall", "r3", query=""))["notes"] == []


async def test_a_macro_is_taken_back_as_a_whole_and_macros_themselves_too(executors: Executors, caller: Caller) -> None:
    async with executors.running("built-in"):
        await did(caller, "create_macro", "m1", name="two", steps=STEPS)
        await did(caller, "run_macro", "m2", name="two")
        await caller.next(TaskCompleted, "m2")
        result = await did(caller, "undo_last", "u1")
        assert result == {"undone": ["m2.step2.1", "m2.step1.1"], "spoken": "I forgot the note. I forgot the note."}
        await did(caller, "change_macro", "m3", name="two", new_name="both", trigger="do both")
        assert (await did(caller, "undo_last", "u2"))["spoken"] == "two is as it was."
        (shown,) = (await did(caller, "list_macros", "l1"))["macros"]
        assert (shown["name"], shown["triggers"]) == ("two", [])
        await did(caller, "delete_macro", "m4", name="two")
        gateway = SessionWriter(caller.log, caller.sid, "gateway", stem="yes", fenced=False)
        await gateway.append(ApprovalClicked(approval_id="approval-m4", answer="approved"), ts=caller.now(), cause=None)
        await caller.next(TaskCompleted, "m4")
        assert (await did(caller, "undo_last", "u3"))["spoken"] == "two is there again."
        assert (await did(caller, "list_macros", "l2"))["macros"] == [shown]
        await did(caller, "change_macro", "m5", name="two", trigger="do both")
        assert "was changed after this call" in await refused(caller, "undo_last", "u4", call="m1")
        assert (await did(caller, "undo_last", "u5"))["undone"] == ["m5"]
        assert (await did(caller, "undo_last", "u6"))["undone"] == ["m1"], "what could not be taken back could later"
        assert (await did(caller, "list_macros", "l3"))["macros"] == []


async def test_a_timer_of_another_session_is_stopped(executors: Executors, caller: Caller, callers: MakeCaller) -> None:
    later = await callers()
    async with executors.running("built-in"), executors.running("built-in"):
        await did(caller, "set_timer", "t1", seconds=600, label="tea")
        assert await did(later, "undo_last", "u1") == {"undone": ["t1"], "spoken": "I stopped the timer."}
        await caller.next(TaskCancelled, "t1")
        assert (await did(later, "list_tasks", "l1"))["count"] == 0


async def test_what_was_written_into_the_workspace_is_removed_unless_somebody_changed_it(
    executors: Executors, caller: Caller, tmp_path: Path
) -> None:
    (tmp_path / "work").mkdir()
    async with executors.running("built-in", workspace_dirs=str(tmp_path / "work")):
        await did(caller, "create_project", "p1", name="Shop", description="Sells tea.")
        made = await did(caller, "generate_react_component", "g1", name="price tag", project="shop")
        file = tmp_path / "work" / made["file"]
        text = file.read_text()
        assert "has other files by now" in await refused(caller, "undo_last", "u1", call="p1")
        file.write_text(text + "// mine\n")
        assert "was changed since, so it stays" in await refused(caller, "undo_last", "u2")
        file.write_text(text)
        assert (await did(caller, "undo_last", "u3"))["spoken"] == "I removed the file PriceTag.tsx."
        assert not file.exists()
        file.parent.rmdir()
        assert (await did(caller, "undo_last", "u4"))["spoken"] == "I removed the project Shop."
        assert list((tmp_path / "work").iterdir()) == []
        await did(caller, "generate_react_component", "g2", name="shown")
        assert (await did(caller, "undo_last", "u5"))["undone"] == [], "nothing was written"


@pytest.mark.parametrize("after", range(1, 15))
async def test_an_executor_killed_at_any_of_its_writes_takes_back_once(
    config: Config, caller: Caller, connection: Client, log: Log, store: Store, after: int
) -> None:
    async with replaced(config, f"tests.tools.dying,{NOTES}", after) as first_died:
        await did(caller, "remember", "c0", note="This one stays.")
        await did(caller, "remember", "c1", note="The key is under the mat.")
        await did(caller, "undo_last", "u1")
        await acknowledged(connection)
        died = first_died()
    assert died or after > 12, "the process was killed in the middle"
    assert await undone(log) == ["c1"]
    facts = [one.event async for one in log.read_all(LOCAL, writer=subjects.FACTS, types=("note.forgotten",))]
    assert facts == [NoteForgotten(note_id=f"{caller.sid}.c1", account="local")]
    assert [note.text for note in await store.notes("local")] == ["This one stays."]
    assert len([one for one in caller.told(ToolCompleted) if _call(one) == "u1"]) == 1
    for sid in (caller.sid, LOCAL):
        assert refold([event async for event in log.read_all(sid)]).missing == ()


async def test_the_undo_of_an_interrupted_call_is_not_offered(config: Config, caller: Caller, connection: Client, tmp_path: Path) -> None:
    async with replaced(config, f"tests.tools.dying,{NOTES}", 2):  # journal, tool.started: then it is not known what happened
        await caller.call("leave", "c1", file=str(tmp_path / "left"))
        await eventually(lambda: any(_call(one) == "c1" for one in caller.told()))
        assert (await did(caller, "undo_last", "u1"))["undone"] == []


def _call(event: events.Event) -> str:
    return getattr(event, "call_id", "")
