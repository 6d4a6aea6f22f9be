"""`kill -9` of the executor and of the voice worker at the events of an ingest that was asked for in a call: it is done and told once."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any, Final

import pytest

from tests.agents.conftest import Installation, bare, calls, config, says
from tests.eventually import BOUND_S, eventually
from tests.gateway.conftest import serve
from tests.tools.conftest import Executors
from tests.tools.replaced import replaced
from tests.voice.conftest import Page, Workers, connection, model_server, pages, silero, store
from voxbridge.shared import events
from voxbridge.shared.events import gateway, tools, voice
from voxbridge.shared.knowledge import ListGraphs, Replay

__all__ = ["bare", "config", "connection", "model_server", "pages", "serve", "silero", "store"]

PACKS: Final = "built-in,tests.tools.dying"
WRITES: Final = 9
"""Writes of the executor in such a call: journals, the start, progress, the end."""

DOCUMENTS: Final = 3
pytestmark = pytest.mark.timeout(180)


async def begins(bare: Installation, folder: Path) -> Page:
    """Have a user ask for a folder of documents to go into a graph; return their page."""
    manuals = folder / "manuals"
    manuals.mkdir()
    for number in range(DOCUMENTS):
        (manuals / f"part{number}.md").write_text(f"# Part {number}\n\nThe pump of part {number} is serviced each spring.\n")
    page = await bare.session()
    says(bare.model, calls("ingest_to_kg", '{"database": "pumps", "source": "manuals"}'), ["I put it in."])
    await page.says(gateway.TextReceived(text="Put the manuals into the graph for the pumps"))
    await page.event(voice.ToolCalled, name="ingest_to_kg")
    return page


async def done_and_told_once(bare: Installation, page: Page) -> None:
    """Check that the task ended once, that the graph has each document once, and that the user was told once."""
    sid = page.sid

    async def ends() -> list[Any]:
        return await bare.of(sid, tools.TaskCompleted, tools.TaskFailed, tools.TaskCancelled, tools.TaskInterrupted)

    await eventually(ends)
    (done,) = await ends()
    assert isinstance(done, tools.TaskCompleted), done
    assert (done.result["documents"] + done.result["unchanged"], done.result["left_out_count"]) == (DOCUMENTS, 0)

    async def told() -> int:
        return sum(done.announce in one.text for one in await bare.of(sid, voice.AgentSaid))

    await eventually(told)
    said = len(await bare.of(sid, voice.TurnCompleted))
    says(bare.model, ["You are welcome."])
    await page.says(gateway.TextReceived(text="Thank you"))
    await bare.until(sid, voice.TurnCompleted, said + 1)
    assert (await told(), len(await bare.of(sid, tools.TaskStarted)), len(await ends())) == (1, 1, 1)
    graphs = {one.name: one.documents for one in (await bare.asks(ListGraphs(account="local"))).graphs}
    assert graphs["pumps"] == DOCUMENTS
    assert (await bare.asks(Replay(account="local"))).differences == ()


@pytest.mark.parametrize("after", range(1, WRITES))
async def test_an_executor_killed_at_any_of_its_writes_has_it_done_once(bare: Installation, tmp_path: Path, after: int) -> None:
    async with Workers(bare.config).running(), replaced(bare.config, PACKS, after) as first_died:
        await done_and_told_once(bare, await begins(bare, tmp_path))
        assert first_died(), "the process was killed in the middle"


@pytest.mark.parametrize("at", [voice.ToolCalled, tools.TaskStarted, tools.TaskProgressed, tools.TaskCompleted])
async def test_a_voice_worker_killed_at_an_event_of_it_is_followed_by_another(
    bare: Installation, tmp_path: Path, at: type[events.Event]
) -> None:
    async with Executors(bare.config).running("built-in"):
        async with Workers(bare.config).process() as first:
            page = await begins(bare, tmp_path)
            await bare.until(page.sid, at)
            first.kill()
            await asyncio.wait_for(first.wait(), BOUND_S)
        async with Workers(bare.config).running():
            await done_and_told_once(bare, page)
