"""The names of things, told to sessions that begin: by a real executor and knowledge service, and without them."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import nats
import pytest
from nats.aio.client import Client

from tests.eventually import eventually
from tests.knowledge.serving import serving
from tests.terminals.serving import process, viewing
from tests.tools.conftest import Executors
from voxbridge.shared import things
from voxbridge.shared.knowledge import Ingest, asking
from voxbridge.shared.terminals.questions import Start

PACK = "tests.tools.pack"


@pytest.fixture
async def nc(nats_url: str) -> AsyncIterator[Client]:
    client = await nats.connect(nats_url)
    yield client
    await client.close()


async def told(nc: Client, account: str) -> things.Things:
    """Ask until the executor, which has just been started, is heard."""

    async def ask() -> things.Things:
        return await things.ask(nc, account) or {}

    return await eventually(ask)


async def test_graphs_and_workflows_are_named_by_account(executors: Executors, nc: Client, tmp_path: Path) -> None:
    flows = tmp_path / "workflows"
    flows.mkdir()
    (flows / "tidy.json").write_text(json.dumps({"name": "tidy up", "steps": [{"say": "Done."}]}))
    config = replace(executors.config, data_dir=tmp_path / "data")
    async with serving(config), executors.running(PACK, workflows_dir=flows):
        document = Ingest(account="ann", graph="team wiki", source="a.md", title="A", text="The oven is in the kitchen.", at=1)
        await asking(nc)(document)
        ann, bob = await told(nc, "ann"), await told(nc, "bob")
    assert "tidy up" in ann["run_workflow"]["name"]
    assert {function: ann[function]["database"] for function in ("search_kg", "get_kg_analytics", "ingest_to_kg")} == dict.fromkeys(
        ("search_kg", "get_kg_analytics", "ingest_to_kg"), ("team-wiki",)
    )
    assert set(bob) == {"run_workflow"}, "the graphs are another account's"


async def test_terminals_are_named_to_the_installations_own_account_alone(
    executors: Executors, nc: Client, nats_url: str, redis_url: str
) -> None:
    async with executors.running(PACK):
        assert "Claude" in (await told(nc, "local"))["send_to_terminal"]["terminal"], "agents go by their names, though none runs"
        with process(nats_url, redis_url):
            async with viewing(nats_url) as viewer:
                await viewer.ask(Start(by="tester", definition="sh", name="Werkstatt"))

                async def named() -> bool:
                    return "Werkstatt" in (await told(nc, "local"))["forward_output"]["source"]

                await eventually(named)
                assert set(await told(nc, "ann")) == {"run_workflow"}


async def test_without_the_knowledge_service_the_rest_is_told_and_without_an_executor_nothing(executors: Executors, nc: Client) -> None:
    async with executors.running(PACK):
        assert set(await told(nc, "ann")) == {"run_workflow"}
    assert await things.ask(nc, "ann") is None


async def test_a_question_that_cannot_be_read_is_refused(executors: Executors, nc: Client) -> None:
    async with executors.running(PACK):
        await told(nc, "ann")
        answer = await nc.request(things.SUBJECT, b"{", timeout=2)
    assert (answer.headers or {})["Nats-Service-Error-Code"] == "INVALID_ARGUMENT"


async def test_the_number_of_names_has_a_limit(executors: Executors, nc: Client, tmp_path: Path) -> None:
    for number in range(things.NAMES_LIMIT + 1):
        (tmp_path / f"{number}.json").write_text(json.dumps({"name": f"flow {number}", "steps": [{"say": "Done."}]}))
    async with executors.running(PACK, workflows_dir=tmp_path):
        found = await told(nc, "ann")
    assert len(found["run_workflow"]["name"]) == things.NAMES_LIMIT
