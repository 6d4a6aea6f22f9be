"""Macros over REST with a real executor."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.eventually import BOUND_S, eventually
from tests.gateway.conftest import Address, Running
from tests.tools.conftest import Executors
from tests.tools.test_service import release
from voxbridge.services.tools.packs.macros.functions import SHOWN_LIMIT
from voxbridge.shared.config import Config

PACKS = "tests.tools.pack,voxbridge.services.tools.packs.macros.functions"
STEPS = [{"call": "echo", "arguments": {"text": "hello ${input.who}"}}]


@pytest.fixture
def config(nats_url: str, redis_url: str) -> Config:
    return Config(nats_url=nats_url, redis_url=redis_url)


@pytest.fixture
async def executor(config: Config) -> AsyncIterator[None]:
    async with Executors(config).running(PACKS):
        yield


async def ask(door: Address, method: str, path: str = "", *, key: str = "", **options: Any) -> httpx.Response:
    headers = {"Idempotency-Key": key} if key else {}
    async with httpx.AsyncClient(base_url=door.base, trust_env=False, timeout=BOUND_S) as client:
        return await client.request(method, f"/api/vox/macros{path}", headers=headers, **options)


async def names(door: Address) -> list[str]:
    return [one["macro_id"] for one in (await ask(door, "GET")).json()["macros"]]


@pytest.mark.usefixtures("executor")
async def test_a_macro_is_saved_listed_run_and_deleted(running: Running) -> None:
    macro = {"name": "Say hello", "steps": STEPS, "trigger": "greet {who}", "inputs": {"who": {}}}
    made = await ask(running, "POST", key="k1", json=macro)
    assert (made.status_code, made.json()["success"], made.json()["macro_id"]) == (200, True, "say_hello")
    assert (await ask(running, "POST", key="k1", json=macro)).json()["macro_id"] == "say_hello"
    listed = (await ask(running, "GET")).json()
    assert listed["macros"] == [
        {"macro_id": "say_hello", "name": "Say hello", "triggers": ["greet {who}"], "steps": 1, "inputs": ["who"]}
    ]  # fmt: skip
    shown = (await ask(running, "GET", "/say_hello")).json()["macros"][0]
    (step,) = shown["document"]["steps"]
    assert step["action"] == {"do": "call", "function": "echo", "arguments": {"text": "hello ${input.who}"}}
    assert (await ask(running, "GET", "/say_goodbye")).status_code == 404
    begun = await ask(running, "POST", "/say_hello/run", json={"inputs": {"who": "Ada"}})
    assert begun.status_code == 202

    async def result() -> dict[str, Any]:
        async with httpx.AsyncClient(base_url=running.base, trust_env=False, timeout=BOUND_S) as client:
            found: dict[str, Any] = (await client.get(f"/api/vox/tasks/{begun.json()['task_id']}")).json()
        return found

    async def is_done() -> bool:
        return "result" in await result()

    await eventually(is_done)
    assert (await result())["result"]["text"] == "hello Ada"
    assert (await ask(running, "DELETE", "/say_hello")).status_code == 202

    async def is_gone() -> bool:
        return await names(running) == []

    await eventually(is_gone)


@pytest.mark.usefixtures("executor")
async def test_of_many_macros_the_next_ones_are_asked_for(running: Running) -> None:
    for number in range(SHOWN_LIMIT + 1):
        assert (await ask(running, "POST", json={"name": f"macro {number:02}", "steps": STEPS, "inputs": {"who": {}}})).status_code == 200
    first = (await ask(running, "GET")).json()
    assert (first["count"], len(first["macros"]), first["more"]) == (SHOWN_LIMIT + 1, SHOWN_LIMIT, 1)
    rest = (await ask(running, "GET", params={"skip": SHOWN_LIMIT})).json()
    assert ([one["name"] for one in rest["macros"]], rest.get("more")) == ([f"macro {SHOWN_LIMIT}"], None)
    beyond = (await ask(running, "GET", params={"skip": 200})).json()
    assert (beyond["macros"], beyond["count"]) == ([], SHOWN_LIMIT + 1)
    assert (await ask(running, "GET", params={"skip": 201})).status_code == 422


@pytest.mark.usefixtures("executor")
async def test_a_step_that_destroys_is_approved_over_rest(running: Running, tmp_path: Path) -> None:
    file = tmp_path / "runs"
    release(file)
    steps = [{"call": "destroy", "arguments": {"file": str(file)}}]
    assert (await ask(running, "POST", json={"name": "Clean up", "steps": steps})).status_code == 200
    begun = (await ask(running, "POST", "/clean_up/run")).json()
    async with httpx.AsyncClient(base_url=f"{running.base}/api/vox", trust_env=False, timeout=BOUND_S) as client:

        async def waiting() -> Any:
            return (await client.get("/approvals")).json()["approvals"]

        (asked,) = await eventually(waiting)
        assert (asked["function"], asked["arguments"]) == ("destroy", {"file": str(file)})
        assert not file.exists()
        assert (await client.post(f"/approvals/{asked['id']}", json={"answer": "approved"})).status_code == 202

        async def over() -> Any:
            found = (await client.get(f"/tasks/{begun['task_id']}")).json()
            return found if "result" in found else None

        assert (await eventually(over))["state"] == "completed"
        assert await waiting() == []
    assert len(file.read_text().splitlines()) == 1


@pytest.mark.usefixtures("executor")
async def test_what_is_wrong_with_a_macro_is_said_with_its_status(running: Running) -> None:
    for method, path, body, status in (
        ("POST", "", {"name": "x"}, 422),
        ("POST", "", {"name": "x", "steps": []}, 404),
        ("POST", "", {"name": "x", "steps": ["nothing"]}, 404),
        ("POST", "", {"name": "x", "steps": ["echo"]}, 422),
        ("POST", "", {"name": "x", "steps": ["echo"], "more": 1}, 422),
        ("POST", "", {"name": "x", "steps": [{"say": "x" * 40_000}]}, 422),
        ("POST", "/nothing/run", {}, 404),
        ("POST", "/nothing/run", {"inputs": 1}, 422),
        ("POST", "/nothing/run", {"more": 1}, 422),
        ("POST", f"/{'x' * 65}/run", {}, 422),
        ("DELETE", "/nothing", None, 404),
    ):
        answer = await ask(running, method, path, json=body)
        assert answer.status_code == status, (body, answer.text)
        assert answer.json()["message"]
    assert await names(running) == []
