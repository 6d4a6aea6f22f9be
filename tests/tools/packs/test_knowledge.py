"""The functions about knowledge graphs, from a call to the knowledge service and back."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.knowledge.serving import serving
from tests.pdf import pdf
from tests.tools.conftest import Caller, Executors
from tests.tools.packs.asking import Asking, asking
from voxbridge.shared.errors import Code
from voxbridge.shared.events.tools import TaskCompleted, TaskFailed, TaskProgressed

pytestmark = pytest.mark.timeout(120)
PAGE = (
    "<html><head><title>Bees &amp; co</title><style>p{}</style></head><body><h1>Hives</h1><p>A hive has<br>one queen.</p>"
    "<script>alert(1)</script></body></html>"
)


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    folder = tmp_path / "work"
    (folder / "docs").mkdir(parents=True)
    (folder / "docs/leave.md").write_text("# Leave\nHolidays are thirty days. Questions go to Mary Poppins.\n")
    (folder / "docs/bees.html").write_text(PAGE)
    (folder / "docs/mower.pdf").write_bytes(pdf("The warranty of the mower lasts seven years.", title="The mower"))
    (folder / "docs/broken.txt").write_bytes(b"\xff\xfe\xff")
    (folder / "docs/empty.md").write_text("\n")
    return folder


async def task(ask: Asking, caller: Caller, name: str, **arguments: Any) -> Any:
    """Run an async function and return its result, or its failure."""
    started = await ask.answer(name, **arguments)
    assert started["status"] == "started"
    waiting = [asyncio.create_task(caller.next(kind, started["task_id"].removeprefix("task-"))) for kind in (TaskCompleted, TaskFailed)]
    done, left = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
    for one in left:
        one.cancel()
    await asyncio.gather(*left, return_exceptions=True)
    event, _ = done.pop().result()
    assert isinstance(event, TaskCompleted | TaskFailed)
    return event.result if isinstance(event, TaskCompleted) else event.error


async def test_a_folder_is_learned_and_answered_from(executors: Executors, caller: Caller, workspace: Path) -> None:
    async with serving(replace(executors.config, data_dir=workspace.parent)), asking(executors, caller, workspace, "knowledge") as ask:
        assert "no knowledge graph yet" in (await ask.answer("list_kgs"))["spoken"]
        learned = await task(ask, caller, "ingest_to_kg", database="Hand book", source="docs")
        assert (learned["documents"], learned["database"], learned["left_out_count"]) == (3, "hand-book", 2)
        assert {one["source"] for one in learned["left_out"]} == {"docs/broken.txt", "docs/empty.md"}
        assert learned["announce"] == "3 documents went into hand-book, 2 could not be read."
        assert len(caller.told(TaskProgressed)) >= 1
        again = await task(ask, caller, "ingest_to_kg", database="hand book", source="docs")
        assert (again["documents"], again["unchanged"], again["announce"]) == (0, 3, "Nothing in hand-book changed, 2 could not be read.")
        answered = await ask.answer("query_kg", query="how many holidays do I have")
        assert answered["spoken"] == "Holidays are thirty days. That is from leave.md."
        assert answered["passages"][0]["source"] == "docs/leave.md"
        warranty = await ask.answer("query_kg", query="how long is the warranty")
        assert warranty["spoken"] == "The warranty of the mower lasts seven years. That is from The mower."
        people = await ask.answer("search_kg", query="mary", database="hand book", node_type="name")
        assert [(node["name"], node["kind"]) for node in people["nodes"]] == [("Mary Poppins", "name")]
        found = await task(ask, caller, "cross_kg_search", query="queen of a hive")
        assert (found["count"], found["announce"]) == (1, "1 graph of 1 had something: hand-book.")
        assert (await ask.answer("get_kg_analytics", database="handbook".replace("db", "d b")))["documents"] == 3


async def test_a_text_goes_into_a_graph_and_a_newer_one_takes_its_place(executors: Executors, caller: Caller, workspace: Path) -> None:
    async with serving(replace(executors.config, data_dir=workspace.parent)), asking(executors, caller, workspace, "knowledge") as ask:
        text = "Anna wants the report by Friday. Bob writes the second part."
        taken = await task(ask, caller, "ingest_to_kg", database="calls", source="call with Anna", text=text)
        assert (taken["documents"], taken["unchanged"]) == (1, 0)
        answered = await ask.answer("query_kg", query="when does Anna want the report")
        assert answered["spoken"] == "Anna wants the report by Friday. That is from call with Anna."
        newer = await task(ask, caller, "ingest_to_kg", database="calls", source="call with Anna", text="Anna wants it by Monday.")
        assert newer["documents"] == 1
        assert (await ask.answer("get_kg_analytics", database="calls"))["documents"] == 1


async def test_what_is_not_there_is_said_in_a_sentence(executors: Executors, caller: Caller, workspace: Path) -> None:
    async with serving(replace(executors.config, data_dir=workspace.parent)), asking(executors, caller, workspace, "knowledge") as ask:
        nothing = await ask.refusal("search_kg", query="x", database="nothing")
        assert (nothing.code, nothing.message) == (Code.NOT_FOUND, "There is no knowledge graph nothing. There are none yet.")
        await task(ask, caller, "ingest_to_kg", database="a", source="leave dot md")
        assert (await ask.refusal("query_kg", query="zebra")).code == Code.NOT_FOUND
        outside = await task(ask, caller, "ingest_to_kg", database="a", source="../../etc/passwd")
        assert outside.code in (Code.PERMISSION_DENIED, Code.NOT_FOUND)
        private = await task(ask, caller, "ingest_to_kg", database="a", source="http://127.0.0.1:9/x")
        assert private.code in (Code.PERMISSION_DENIED, Code.INVALID_ARGUMENT)


async def test_without_the_service_a_call_is_answered(executors: Executors, caller: Caller, workspace: Path) -> None:
    async with asking(executors, caller, workspace, "knowledge") as ask:
        refused = await ask.refusal("query_kg", query="anything")
    assert (refused.code, refused.message) == (
        Code.UNAVAILABLE, "The knowledge service does not answer: start it, or look at its log, and ask again.",
    )  # fmt: skip
