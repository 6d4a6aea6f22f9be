"""Runs over REST with a real executor: listed, followed step by step, answered and cancelled, in sessions and outside."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest

from tests.eventually import BOUND_S, eventually
from tests.gateway.conftest import Address, Running
from tests.tools.conftest import Executors
from voxbridge.services.gateway.calls import runs as gateway_runs
from voxbridge.services.gateway.core.messages import ANSWER_LIMIT
from voxbridge.sessions.erase import erase
from voxbridge.shared.config import Config
from voxbridge.shared.events.voice import SessionEnded, ToolCalled
from voxbridge.shared.ids import new_session_id
from voxbridge.shared.log.writer import SessionWriter

PACKS = "tests.tools.pack,voxbridge.services.tools.packs.macros.functions"
ASKING = [
    {"id": "which", "ask": "Which city?"},
    {"call": "echo", "arguments": {"text": "to ${steps.which.result.text}"}},
]


@pytest.fixture
def config(nats_url: str, redis_url: str) -> Config:
    return Config(nats_url=nats_url, redis_url=redis_url)


@pytest.fixture
async def executor(config: Config) -> AsyncIterator[None]:
    async with Executors(config).running(PACKS):
        yield


async def ask(door: Address, method: str, path: str, **options: Any) -> httpx.Response:
    async with httpx.AsyncClient(base_url=door.base, trust_env=False, timeout=BOUND_S) as client:
        return await client.request(method, f"/api/{path}", **options)


async def saved(door: Address, name: str, steps: list[Any], **fields: Any) -> None:
    made = await ask(door, "POST", "vox/macros", json={"name": name, "steps": steps, **fields})
    assert made.status_code == 200, made.text


async def begun(door: Address, name: str, **inputs: Any) -> str:
    answer = await ask(door, "POST", f"vox/macros/{name}/run", json={"inputs": inputs})
    assert answer.status_code == 202, answer.text
    return str(answer.json()["task_id"]).removeprefix("task-")


async def reaches(door: Address, run_id: str, state: str) -> dict[str, Any]:
    async def there() -> bool:
        return bool((await ask(door, "GET", f"runs/{run_id}")).json().get("state") == state)

    await eventually(there)
    found: dict[str, Any] = (await ask(door, "GET", f"runs/{run_id}")).json()
    return found


@pytest.mark.usefixtures("executor")
async def test_a_run_asks_is_answered_and_tells_each_step(running: Running) -> None:
    await saved(running, "trip", ASKING)
    run_id = await begun(running, "trip")
    waiting = await reaches(running, run_id, "waiting")
    assert (waiting["waits_for"], waiting["step"], waiting["question"]) == ("ask", "which", "Which city?")
    (listed,) = (await ask(running, "GET", "runs?state=waiting")).json()["runs"]
    assert (listed["id"], listed["name"], listed["kind"], listed["steps"]) == (run_id, "trip", "macro", 2)
    assert "attempts" not in listed
    assert "session" not in listed
    assert (await ask(running, "POST", f"runs/{run_id}/answer", json={"text": "Lisbon", "step": "other"})).status_code == 409
    assert (await ask(running, "POST", f"runs/{run_id}/answer", json={"text": "Lisbon", "step": "which"})).status_code == 202
    done = await reaches(running, run_id, "completed")
    assert [(one["step"], one["action"], one["state"]) for one in done["attempts"]] == [
        ("which", "ask", "completed"),
        ("step2", "call", "completed"),
    ]
    assert done["attempts"][1]["args"] == '{"text":"to Lisbon"}'
    assert '"text":"to Lisbon"' in done["attempts"][1]["result"]
    assert done["result"]["text"] == "to Lisbon"
    assert done["started_at_ms"] <= done["attempts"][0]["ended_at_ms"] <= done["ended_at_ms"]
    assert (await ask(running, "POST", f"runs/{run_id}/answer", json={"text": "Rome"})).status_code == 409
    assert (await ask(running, "POST", f"runs/{run_id}/cancel")).status_code == 409
    assert (await ask(running, "GET", "runs?state=waiting")).json() == {"runs": [], "count": 0}


@pytest.mark.usefixtures("executor")
async def test_a_failed_step_is_decided_upon_and_a_run_is_cancelled(running: Running) -> None:
    await saved(running, "broken", [{"id": "bad", "call": "faulty"}, {"say": "well"}], policy="ask")
    run_id = await begun(running, "broken")
    assert (await reaches(running, run_id, "waiting"))["waits_for"] == "error"
    wrong = await ask(running, "POST", f"runs/{run_id}/answer", json={"text": "hm"})
    assert (wrong.status_code, wrong.json()["limit"]) == (422, "again, go_on, stop")
    assert (await ask(running, "POST", f"runs/{run_id}/answer", json={"text": "go_on"})).status_code == 202
    done = await reaches(running, run_id, "completed")
    assert [one["state"] for one in done["attempts"]] == ["failed", "completed"]
    assert done["attempts"][0]["error"]["code"] == "INTERNAL"
    await saved(running, "trip", ASKING)
    other = await begun(running, "trip")
    await reaches(running, other, "waiting")
    assert (await ask(running, "POST", f"runs/{other}/cancel")).status_code == 202
    assert (await reaches(running, other, "cancelled"))["reason"] == "the user cancelled it"


@pytest.mark.usefixtures("executor")
async def test_a_run_goes_step_by_step_and_is_answered_before_each(running: Running) -> None:
    first = {"id": "one", "call": "echo", "arguments": {"text": "one"}}
    await saved(running, "slow", [first, {"id": "two", "say": "two"}, {"say": "three"}])
    answer = await ask(running, "POST", "vox/macros/slow/run", json={"step_by_step": True})
    run_id = str(answer.json()["task_id"]).removeprefix("task-")

    async def at(step: str) -> None:
        async def there() -> bool:
            found = (await ask(running, "GET", f"runs/{run_id}")).json()
            return (found.get("waits_for"), found.get("step")) == ("step", step)

        await eventually(there)

    await at("one")
    wrong = await ask(running, "POST", f"runs/{run_id}/answer", json={"text": "hm"})
    assert (wrong.status_code, wrong.json()["limit"]) == (422, "yes, no, stop")
    assert (await ask(running, "POST", f"runs/{run_id}/answer", json={"text": "yes"})).status_code == 202
    await at("two")
    assert (await ask(running, "POST", f"runs/{run_id}/answer", json={"text": "yes", "step": "one"})).status_code == 409
    assert (await ask(running, "POST", f"runs/{run_id}/answer", json={"text": "no", "step": "two"})).status_code == 202
    await at("step3")
    assert (await ask(running, "POST", f"runs/{run_id}/answer", json={"text": "stop"})).status_code == 202
    done = await reaches(running, run_id, "cancelled")
    assert [(one["step"], one["state"]) for one in done["attempts"]] == [("one", "completed"), ("two", "skipped")]
    both = await ask(running, "POST", "vox/macros/slow/run", json={"step_by_step": True, "dry_run": True})
    assert (both.status_code, both.json()["field"]) == (422, "step_by_step")


@pytest.mark.usefixtures("executor")
async def test_a_run_of_a_session_is_told_with_it_and_forgotten_with_it(running: Running) -> None:
    await saved(running, "trip", ASKING)
    sid = new_session_id()
    called = ToolCalled(call_id=f"fc_{sid[:8]}_1", name="run_macro", arguments={"name": "trip"}, kind="async", turn=1, deadline_ms=30_000)
    gateway = running.gateway
    voice = SessionWriter(gateway.log, sid, "voice", stem="test")
    await voice.append(called, ts=gateway.resources.clock.now_us(), cause=None)
    await reaches(running, called.call_id, "waiting")
    assert (await ask(running, "GET", "runs")).json()["runs"][0]["session"] == sid
    assert (await ask(running, "POST", f"runs/{called.call_id}/answer", json={"text": "Rome"})).status_code == 202
    assert (await reaches(running, called.call_id, "completed"))["result"]["text"] == "to Rome"
    await voice.append(SessionEnded(reason="client_ended"), ts=gateway.resources.clock.now_us(), cause=None)
    await erase(gateway.log, gateway.resources.redis, sid, by="Ada", now=gateway.resources.clock.now_us())
    assert (await ask(running, "GET", "runs")).json()["count"] == 0
    assert (await ask(running, "GET", f"runs/{called.call_id}")).status_code == 404


@pytest.mark.usefixtures("executor")
async def test_runs_have_bounds(running: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gateway_runs, "RUNS_KEPT", 2)
    await saved(running, "hello", [{"say": "hello"}])
    for _ in range(3):
        assert (await ask(running, "POST", "vox/macros/hello/run", json={})).status_code == 200
    assert (await ask(running, "GET", "runs")).json()["count"] == 2
    assert len((await ask(running, "GET", "runs?limit=1")).json()["runs"]) == 1
    assert (await ask(running, "GET", "runs?limit=201")).status_code == 422
    assert (await ask(running, "GET", "runs/nothing")).status_code == 404
    assert (await ask(running, "POST", "runs/nothing/answer", json={"text": "x" * (ANSWER_LIMIT + 1)})).status_code == 422
    assert (await ask(running, "POST", "runs/nothing/answer", json={"text": ""})).status_code == 422
