"""Functions over REST with real executors: each effect once, whatever is asked twice, killed in between or cancelled."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import msgspec
import pytest

from tests.eventually import BOUND_S, eventually
from tests.gateway.conftest import Address, Running, Serve
from tests.gateway.processes import Processes
from tests.tools.conftest import Executors
from tests.tools.test_service import lines, process, release
from voxbridge.services.gateway.calls import calls as gateway_calls
from voxbridge.services.gateway.calls import ledger as gateway_ledger
from voxbridge.services.gateway.rest.bodies import BODY_LIMIT
from voxbridge.services.gateway.rest.functions import ARGUMENTS_LIMIT, ASKED_BYTES, KEY_LIMIT
from voxbridge.services.tools.core.approvals import EXPIRES_US
from voxbridge.sessions import replay
from voxbridge.sessions.erase import erase
from voxbridge.shared.bus import subjects
from voxbridge.shared.config import Config
from voxbridge.shared.events.gateway import ToolRequested
from voxbridge.shared.events.tools import ToolStarted
from voxbridge.shared.log.reader import Log
from voxbridge.shared.log.writer import SessionWriter

LOCAL = subjects.account_log("local")
PACKS = "voxbridge.services.tools.packs.everyday.time,tests.tools.pack"


@pytest.fixture
def config(nats_url: str, redis_url: str) -> Config:
    return Config(nats_url=nats_url, redis_url=redis_url)


@pytest.fixture
async def executor(config: Config) -> AsyncIterator[None]:
    async with Executors(config).running(PACKS):
        yield


async def ask(door: Address, method: str, path: str, *, key: str = "", **options: Any) -> httpx.Response:
    headers = {"Idempotency-Key": key} if key else {}
    async with httpx.AsyncClient(base_url=door.base, trust_env=False, timeout=BOUND_S) as client:
        return await client.request(method, f"/api/vox/{path}", headers=headers, **options)


async def call(door: Address, name: str, *, key: str = "", **arguments: Any) -> httpx.Response:
    return await ask(door, "POST", f"function/{name}", key=key, json={"args": arguments})


async def requests(log: Log) -> list[ToolRequested]:
    return [one.event async for one in log.read_all(LOCAL, writer="gateway") if isinstance(one.event, ToolRequested)]


async def starts(log: Log) -> list[str]:
    return [one.event.call_id async for one in log.read_all(LOCAL, writer="tools") if isinstance(one.event, ToolStarted)]


@pytest.mark.usefixtures("executor")
async def test_a_function_is_run_and_answered_as_the_seed_has_it(running: Running) -> None:
    done = await call(running, "echo", text="hello")
    assert (done.status_code, done.json()) == (200, {"name": "echo", "result": {"success": True, "text": "hello", "spoken": "hello"}})
    bare = await ask(running, "POST", "function/current_time", json={})
    assert bare.json()["name"] == "current_time"


@pytest.mark.usefixtures("executor")
async def test_what_cannot_be_run_is_refused_with_its_status_and_field(running: Running) -> None:
    for name, arguments, status, code, field in (
        ("nothing", {}, 404, "NOT_FOUND", "name"),
        ("echo", {"text": 1}, 422, "INVALID_ARGUMENT", "text"),
        ("echo", {}, 422, "INVALID_ARGUMENT", "text"),
        ("echo", {"text": "a", "more": 1}, 422, "INVALID_ARGUMENT", "more"),
        ("switch_theme", {"theme": "dark"}, 503, "UNAVAILABLE", None),
    ):
        answer = await call(running, name, **arguments)
        told = answer.json()
        assert (answer.status_code, told["code"], told.get("field")) == (status, code, field), told
        assert told["message"].endswith(".")
    wrong = (await call(running, "echo", text=1)).json()
    assert (wrong["name"], wrong["result"]["success"], wrong["result"]["code"]) == ("echo", False, "INVALID_ARGUMENT")
    assert len(await requests(running.gateway.log)) == 4, "what nobody has is never asked for"


@pytest.mark.usefixtures("executor")
@pytest.mark.parametrize(
    ("body", "field"),
    [
        (b"{", "body"),
        (b"[]", "body"),
        (b'{"args": []}', "body"),
        (b'{"arguments": {}}', "body"),
        (b'{"args": {"text": "\xff"}}', "body"),
        (b'{"args": ' + b'{"a": ' * 70 + b"1" + b"}" * 70 + b"}", "body"),
        (b'{"args": {"text": 99999999999999999999999}}', "args"),
    ],
)
async def test_a_body_that_is_no_call_is_refused_before_anything_is_asked(running: Running, body: bytes, field: str) -> None:
    answer = await ask(running, "POST", "function/echo", content=body)
    assert (answer.status_code, answer.json()["field"]) == (422, field)
    assert await requests(running.gateway.log) == []


@pytest.mark.usefixtures("executor")
async def test_a_body_has_a_limit_and_one_at_the_limit_is_taken(running: Running) -> None:
    assert ARGUMENTS_LIMIT > BODY_LIMIT
    frame = len(b'{"args": {"text": ""}}')
    body = b'{"args": {"text": "%s"}}' % (b"x" * (ARGUMENTS_LIMIT - frame))
    fits = await ask(running, "POST", "function/echo", content=body)
    assert (fits.status_code, fits.json()["code"]) == (422, "TOO_LARGE"), "it ran, and its result is what does not fit"
    assert len(await starts(running.gateway.log)) == 1
    over = await ask(running, "POST", "function/echo", content=body + b" ")
    assert (over.status_code, over.json()["field"], over.json()["limit"]) == (422, "body", ARGUMENTS_LIMIT)
    assert len(await requests(running.gateway.log)) == 1


@pytest.mark.usefixtures("executor")
@pytest.mark.parametrize("key", ["", "a b", "ä", "x" * (KEY_LIMIT + 1)])
async def test_a_key_that_is_none_is_refused(running: Running, key: str) -> None:
    async with httpx.AsyncClient(base_url=running.base, trust_env=False, timeout=BOUND_S) as client:
        headers = [(b"Idempotency-Key", key.encode())]
        answer = await client.post("/api/vox/function/echo", json={"args": {"text": "a"}}, headers=headers)
    assert (answer.status_code, answer.json()["field"], answer.json()["limit"]) == (422, "Idempotency-Key", KEY_LIMIT)


@pytest.mark.usefixtures("executor")
async def test_a_hundred_requests_with_one_key_are_one_call(running: Running, tmp_path: Path) -> None:
    file = tmp_path / "runs"
    release(file)
    answers = await asyncio.gather(*(call(running, "effect", key="k" * KEY_LIMIT, file=str(file)) for _ in range(100)))
    assert {(one.status_code, one.text) for one in answers} == {(200, answers[0].text)}
    assert answers[0].json()["result"] == {"success": True, "attempt": 1}
    assert len(await lines(file, 1)) == 1
    other = await call(running, "effect", key="another", file=str(file))
    assert other.status_code == 200
    assert len(await lines(file, 2)) == 2, "another key is another call"


async def test_a_hundred_requests_with_one_key_at_two_gateways_are_one_call_of_two_executors(
    serve: Serve, config: Config, tmp_path: Path
) -> None:
    file = tmp_path / "runs"
    release(file)
    doors = [await serve(config.nats_url, config.redis_url), await serve(config.nats_url, config.redis_url)]
    async with Executors(config).running(PACKS), Executors(config).running(PACKS):
        answers = await asyncio.gather(*(call(doors[n % 2], "change", key="k", file=str(file)) for n in range(100)))
        again = await call(doors[1], "change", key="k", file=str(file))
    assert {one.text for one in (*answers, again)} == {'{"name":"change","result":{"success":true,"spoken":"Changed."}}'}
    assert len(await lines(file, 1)) == 1


@pytest.mark.usefixtures("executor")
async def test_a_key_with_another_request_is_refused(running: Running) -> None:
    assert (await call(running, "echo", key="k", text="a")).status_code == 200
    for name, arguments in (("echo", {"text": "b"}), ("current_time", {})):
        other = await call(running, name, key="k", **arguments)
        assert (other.status_code, other.json()["field"]) == (422, "Idempotency-Key")
    assert len(await requests(running.gateway.log)) == 1


@pytest.mark.usefixtures("executor")
@pytest.mark.parametrize("hours", [23, 25])
async def test_a_key_is_free_again_after_a_day(running: Running, tmp_path: Path, hours: int) -> None:
    file, log, now = tmp_path / "runs", running.gateway.log, running.gateway.resources.clock.now_us()
    release(file)
    arguments = {"file": str(file)}
    before = ToolRequested(
        call_id="r-before",
        name="effect",
        arguments=arguments,
        deadline_ms=2 * 86_400_000,
        key=hashlib.sha256(b"local\0k").hexdigest(),
        request=hashlib.sha256(msgspec.json.encode(["effect", arguments], order="sorted")).hexdigest(),
    )
    await SessionWriter(log, LOCAL, "gateway").append(before, ts=now - hours * 3_600_000_000, cause=None)
    await lines(file, 1)
    assert (await call(running, "effect", key="k", file=str(file))).json()["result"] == {"success": True, "attempt": 1}
    assert len(await starts(log)) == (1 if hours < 24 else 2)


@pytest.mark.usefixtures("executor")
async def test_a_first_outcome_that_was_a_failure_stays_the_outcome(running: Running) -> None:
    first = await call(running, "echo", key="k", text=1)
    again = await call(running, "echo", key="k", text=1)
    assert (first.status_code, first.json()) == (again.status_code, again.json())
    assert len(await requests(running.gateway.log)) == 1


async def test_a_gateway_that_is_killed_while_the_function_runs_loses_nothing(config: Config, tmp_path: Path) -> None:
    file = tmp_path / "runs"
    async with Executors(config).running(PACKS), Processes(tmp_path, config.nats_url, config.redis_url) as doors:
        killed, other = await doors.gateway(), await doors.gateway()
        asked = asyncio.create_task(call(killed, "change", key="k", file=str(file)))
        await lines(file, 1)
        killed.kill()
        with pytest.raises(httpx.TransportError):
            await asked
        again = asyncio.create_task(call(other, "change", key="k", file=str(file)))
        release(file)
        assert (await again).json()["result"] == {"success": True, "spoken": "Changed."}
        after = await doors.gateway(killed.port)
        assert (await call(after, "change", key="k", file=str(file))).json() == (await again).json()
    assert len(await lines(file, 1)) == 1


async def test_a_killed_executor_leaves_one_effect_and_an_honest_outcome(running: Running, config: Config, tmp_path: Path) -> None:
    file, harmless = tmp_path / "runs", tmp_path / "harmless"
    async with process(config) as killed:
        await eventually(lambda: ready(running))
        asked = asyncio.create_task(call(running, "change", key="k", file=str(file)))
        other = asyncio.create_task(call(running, "harmless", key="h", file=str(harmless)))
        await lines(file, 1)
        await lines(harmless, 1)
        killed.kill()
        await killed.wait()
    release(file)
    release(harmless)
    async with Executors(config).running(PACKS):
        answer, repeated = await asked, await other
        again = await call(running, "change", key="k", file=str(file))
    assert (answer.status_code, answer.json()["code"]) == (502, "INTERRUPTED")
    assert again.json() == answer.json(), "it is not run again"
    assert repeated.json()["result"] == {"success": True, "attempt": 2}, "what may be repeated was"
    assert len(await lines(file, 1)) == 1


async def ready(running: Running) -> bool:
    return (await call(running, "echo", text="?")).status_code == 200


@pytest.mark.usefixtures("executor")
async def test_a_function_that_takes_long_is_a_task_that_is_listed_and_asked_for(running: Running, tmp_path: Path) -> None:
    file = tmp_path / "runs"
    begun = await call(running, "work", file=str(file))
    task_id = begun.json()["result"]["task_id"]
    assert (begun.status_code, begun.json()["result"]["success"], begun.json()["result"]["status"]) == (202, True, "started")
    await lines(file, 1)
    (listed,) = (await ask(running, "GET", "tasks")).json()["tasks"]
    assert (listed["id"], listed["function"], listed["state"]) == (task_id, "work", "running")
    release(file)

    async def over() -> Any:
        found = (await ask(running, "GET", f"tasks/{task_id}")).json()
        return found if found["state"] == "completed" else None

    assert (await eventually(over))["result"]["success"] is True
    assert (await ask(running, "GET", "tasks")).json() == {"tasks": [], "count": 0, "incomplete": False}
    assert (await ask(running, "DELETE", f"tasks/{task_id}")).status_code == 409


@pytest.mark.usefixtures("executor")
async def test_a_task_is_cancelled_and_others_are_not(running: Running, tmp_path: Path) -> None:
    file = tmp_path / "runs"
    one, two = [(await call(running, "work", file=f"{file}-{n}")).json()["result"]["task_id"] for n in range(2)]
    stopped = await ask(running, "DELETE", f"tasks/{one}")
    assert (stopped.status_code, stopped.json()["state"]) == (200, "cancelled")
    assert (await ask(running, "GET", f"tasks/{one}")).json()["result"]["code"] == "CANCELLED"
    assert [task["id"] for task in (await ask(running, "GET", "tasks")).json()["tasks"]] == [two]
    missing = await ask(running, "DELETE", "tasks/task-nobody")
    assert (missing.status_code, missing.json()["field"]) == (404, "task_id")


@pytest.mark.usefixtures("executor")
@pytest.mark.parametrize("answer", ["approved", "denied"])
async def test_what_destroys_waits_for_a_person(running: Running, tmp_path: Path, answer: str) -> None:
    file = tmp_path / "runs"
    release(file)
    asked = await call(running, "destroy", key="k", file=str(file))
    result = asked.json()["result"]
    assert (asked.status_code, result["status"]) == (202, "needs_approval")
    (task,) = (await ask(running, "GET", "tasks")).json()["tasks"]
    assert (task["state"], task["approval_id"], task["id"]) == ("needs_approval", result["approval_id"], result["task_id"])
    assert not file.exists()
    (waiting,) = (await ask(running, "GET", "approvals")).json()["approvals"]
    assert (waiting["id"], waiting["function"], waiting["effect"]) == (task["approval_id"], "destroy", "destructive")
    assert (waiting["arguments"], waiting["question"]) == ({"file": str(file)}, result["spoken"])
    assert 0 < waiting["expires_at_ms"] - task["started_at_ms"] <= EXPIRES_US // 1_000
    assert (await ask(running, "GET", "tasks", params={"ended": True})).json()["count"] == 0
    clicked = await ask(running, "POST", f"approvals/{task['approval_id']}", json={"answer": answer})
    assert clicked.status_code == 202

    async def over() -> Any:
        found = (await ask(running, "GET", f"tasks/{task['id']}")).json()
        return found if "result" in found else None

    ended = await eventually(over)
    assert ended["state"] == ("completed" if answer == "approved" else "declined")
    assert file.exists() is (answer == "approved")
    (last,) = (await ask(running, "GET", "tasks", params={"ended": True})).json()["tasks"]
    assert (last["id"], last["state"], last["ended_at_ms"] >= task["started_at_ms"]) == (task["id"], ended["state"], True)
    assert (await ask(running, "GET", "approvals")).json() == {"approvals": [], "count": 0}
    late = await ask(running, "POST", f"approvals/{task['approval_id']}", json={"answer": "approved"})
    assert late.status_code == 404
    wrong = await ask(running, "POST", f"approvals/{task['approval_id']}", json={"answer": "perhaps"})
    assert (wrong.status_code, wrong.json()["field"]) == (422, "answer")


@pytest.mark.usefixtures("executor")
@pytest.mark.parametrize(("beyond", "listed"), [(0, True), (1, False)])
async def test_arguments_are_listed_with_a_request_up_to_a_limit(running: Running, beyond: int, listed: bool) -> None:
    await call(running, "destroy", file="x" * (ASKED_BYTES - len('{"file":""}') + beyond))
    (waiting,) = (await ask(running, "GET", "approvals")).json()["approvals"]
    assert ("arguments" in waiting) is listed
    assert waiting["question"].startswith("Shall I destroy with file xxx")


@pytest.mark.usefixtures("executor")
async def test_an_account_has_so_many_calls_open_and_no_more(running: Running, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gateway_calls, "OPEN_LIMIT", 3)
    file = tmp_path / "runs"
    open_ = [asyncio.create_task(call(running, "effect", key=f"k{n}", file=str(file))) for n in range(3)]
    await lines(file, 3)
    refused = await call(running, "effect", file=str(file))
    assert (refused.status_code, refused.json()["code"], refused.json()["limit"]) == (429, "RATE_LIMITED", 3)
    assert refused.headers["retry-after"] == "1"
    same = asyncio.create_task(call(running, "effect", key="k1", file=str(file)))
    release(file)
    assert {one.status_code for one in await asyncio.gather(*open_, same)} == {200}
    assert (await call(running, "effect", file=str(file))).status_code == 200


@pytest.mark.usefixtures("executor")
async def test_a_gateway_lets_so_many_requests_wait(running: Running, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gateway_calls, "WAITING_LIMIT", 2)
    file = tmp_path / "runs"
    waiting = [asyncio.create_task(call(running, "effect", key="k", file=str(file))) for _ in range(2)]
    await eventually(lambda: running.gateway.calls._waiting == 2)
    refused = await call(running, "effect", key="k", file=str(file))
    assert (refused.status_code, refused.json()["code"]) == (503, "OVERLOADED")
    release(file)
    assert {one.status_code for one in await asyncio.gather(*waiting)} == {200}


@pytest.mark.usefixtures("executor")
async def test_an_account_that_has_used_all_its_keys_is_told_so(running: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gateway_ledger, "KEYS_LIMIT", 2)
    for number in range(2):
        assert (await call(running, "echo", key=f"k{number}", text="a")).status_code == 200
    refused = await call(running, "echo", key="k2", text="a")
    assert (refused.status_code, refused.json()["field"]) == (429, "Idempotency-Key")
    assert (await call(running, "echo", key="k0", text="a")).status_code == 200
    assert (await call(running, "echo", text="a")).status_code == 200


async def test_too_fast_is_told_with_when_to_come_back(serve: Serve, config: Config) -> None:
    door = await serve(config.nats_url, config.redis_url, account_events_per_s=5)
    async with Executors(config).running(PACKS):
        answers = [one for _ in range(2) for one in await asyncio.gather(*(call(door, "echo", text="a") for _ in range(20)))]
    assert {one.status_code for one in answers} == {200, 429}
    assert {one.json()["field"] for one in answers if one.status_code == 429} == {"account_events_per_s"}


async def test_without_an_executor_one_sentence_says_so(running: Running) -> None:
    answer = await call(running, "echo", text="a")
    assert (answer.status_code, answer.json()["message"]) == (503, "No tool executor answers, so no function can run now. Ask again.")
    assert await requests(running.gateway.log) == []


async def test_a_call_that_no_executor_takes_in_time_is_timed_out_and_never_begun_later(
    running: Running, config: Config, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gateway_calls, "GRACE_S", 0.0)
    file = tmp_path / "runs"
    async with Executors(config).running(PACKS):
        assert await ready(running)
    known = running.gateway.calls._catalogue
    known["effect"] = type(known["effect"])(
        **{name: getattr(known["effect"], name) for name in known["effect"].__struct_fields__} | {"timeout_s": 0.3}
    )
    answer = await call(running, "effect", key="k", file=str(file))
    assert (answer.status_code, answer.json()["code"]) == (504, "TIMED_OUT")
    async with Executors(config).running(PACKS):
        late = await eventually(lambda: ended(running, file))
    assert late["code"] == "TIMED_OUT"
    assert not file.exists()


async def ended(running: Running, file: Path) -> Any:
    told = (await call(running, "effect", key="k", file=str(file))).json()
    return told if "not begun" in told["message"] else None


@pytest.mark.usefixtures("executor")
async def test_access_tokens_call_nothing(running: Running) -> None:
    token = (await running_token(running))["token"]
    async with httpx.AsyncClient(base_url=running.base, trust_env=False, timeout=BOUND_S) as client:
        headers = {"Authorization": f"Bearer {token}"}
        answers = [
            await client.post("/api/vox/function/echo", json={"args": {"text": "a"}}, headers=headers),
            await client.get("/api/vox/tasks", headers=headers),
            await client.delete("/api/vox/tasks/task-1", headers=headers),
            await client.post("/api/vox/approvals/approval-1", json={"answer": "approved"}, headers=headers),
        ]
    assert [one.status_code for one in answers] == [403, 403, 403, 403]
    assert await requests(running.gateway.log) == []


async def running_token(running: Running) -> dict[str, Any]:
    async with httpx.AsyncClient(base_url=running.base, trust_env=False, timeout=BOUND_S) as client:
        return dict((await client.post("/api/tokens", json={})).json())


@pytest.mark.usefixtures("executor")
async def test_the_log_of_the_account_replays_without_a_difference(running: Running, tmp_path: Path) -> None:
    file = tmp_path / "runs"
    release(file)
    for number in range(3):
        await call(running, "change", key=f"k{number}", file=str(file))
    await call(running, "work", file=str(file))
    recorded = [one async for one in running.gateway.log.read_all(LOCAL)]
    replayed = replay.run(recorded, "tools")
    assert replay.same(replayed, unfinished=True), list(replay.report(replayed))


@pytest.mark.usefixtures("executor")
async def test_an_erased_account_begins_anew(running: Running, tmp_path: Path) -> None:
    file, gateway = tmp_path / "runs", running.gateway
    release(file)
    assert (await call(running, "effect", key="k", file=str(file))).status_code == 200
    await erase(gateway.log, gateway.resources.redis, LOCAL, by="Ada", now=gateway.resources.clock.now_us())
    followed = await gateway.calls.ledgers.of("local")
    await eventually(lambda: followed.ledger.keyed(hashlib.sha256(b"local\0k").hexdigest(), 0) is None)
    assert (await call(running, "effect", key="other", file=str(file))).status_code == 200
    assert len(await lines(file, 2)) == 2
