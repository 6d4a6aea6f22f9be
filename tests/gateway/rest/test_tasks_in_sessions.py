"""Tasks that calls of sessions began, listed and cancelled over REST."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.eventually import eventually
from tests.gateway.conftest import Address, Running
from tests.gateway.rest.test_functions import ask, call
from tests.tools.conftest import Caller, Executors
from tests.tools.test_service import lines, release
from voxbridge.services.tools.session import accounts
from voxbridge.shared.bus import subjects
from voxbridge.shared.config import Config
from voxbridge.shared.events.tools import TaskCancelled, TaskStarted
from voxbridge.shared.events.voice import SessionEnded
from voxbridge.shared.ids import new_session_id

PACKS = ",".join(f"voxbridge.services.tools.packs.{name}" for name in ("catalogue.functions", "everyday.timer")) + ",tests.tools.pack"
MakeCaller = Callable[[], Awaitable[Caller]]


@pytest.fixture
def config(nats_url: str, redis_url: str) -> Config:
    return Config(nats_url=nats_url, redis_url=redis_url)


@pytest.fixture
async def callers(running: Running) -> AsyncIterator[MakeCaller]:
    """Make sessions that call functions."""
    async with AsyncExitStack() as open_things:

        async def make() -> Caller:
            caller = Caller(running.gateway.log, new_session_id())
            await caller.start()
            open_things.push_async_callback(caller.stop)
            return caller

        yield make


async def listed(door: Address) -> dict[str, Any]:
    answer = await ask(door, "GET", "tasks")
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


async def works(caller: Caller, call_id: str, file: Path) -> None:
    await caller.call("work", call_id, file=str(file))
    await caller.next(TaskStarted, call_id)


async def test_tasks_of_calls_are_listed_beside_those_outside_and_cancelled(
    config: Config, running: Running, callers: MakeCaller, tmp_path: Path
) -> None:
    caller, other = await callers(), await callers()
    async with Executors(config).running(PACKS):
        await works(caller, "c1", tmp_path / "in")
        await lines(tmp_path / "in", 1)
        await other.call("set_timer", "c2", seconds=600, label="tea")
        await other.next(TaskStarted, "c2")
        await other.say(SessionEnded(reason="client"))
        outside = (await call(running, "work", file=str(tmp_path / "out"))).json()["result"]["task_id"]
        found = await listed(running)
        assert [(task["id"], task.get("session")) for task in found["tasks"]] == [
            ("task-c1", caller.sid),
            ("task-c2", other.sid),
            (outside, None),
        ]
        assert (found["count"], found["incomplete"]) == (3, False)
        one, timer, _ = found["tasks"]
        assert (one["function"], one["state"], one["done"], one["message"]) == ("work", "running", 0.5, "half way")
        assert (timer["function"], timer["label"], timer["due_at_ms"] - timer["started_at_ms"] >= 600_000) == ("set_timer", "tea", True)
        assert (await ask(running, "GET", "tasks/task-c1")).json()["session"] == caller.sid
        for task_id, by in (("task-c1", caller), ("task-c2", other)):
            stopped = await ask(running, "DELETE", f"tasks/{task_id}")
            assert (stopped.status_code, stopped.json()["state"], stopped.json()["session"]) == (200, "cancelled", by.sid)
            assert stopped.json()["ended_at_ms"] >= stopped.json()["started_at_ms"]
            await by.next(TaskCancelled, task_id.removeprefix("task-"))

        async def left() -> bool:
            return [task["id"] for task in (await listed(running))["tasks"]] == [outside]

        await eventually(left)
        gone = await ask(running, "DELETE", "tasks/task-c1")
        assert (gone.status_code, gone.json()["field"]) == (404, "task_id")
        assert (await ask(running, "GET", "tasks/task-c1")).status_code == 404


async def test_of_two_tasks_with_one_id_the_session_says_which(
    config: Config, running: Running, callers: MakeCaller, tmp_path: Path
) -> None:
    first, second = await callers(), await callers()
    async with Executors(config).running(PACKS):
        for number, caller in enumerate((first, second)):
            await works(caller, "c1", tmp_path / str(number))
        which = await ask(running, "DELETE", "tasks/task-c1")
        assert (which.status_code, which.json()["field"]) == (409, "session")
        nobody = await ask(running, "DELETE", "tasks/task-c1", params={"session": new_session_id()})
        assert nobody.status_code == 404
        assert (await ask(running, "DELETE", "tasks/task-c1", params={"session": "no session"})).status_code == 422
        stopped = await ask(running, "DELETE", "tasks/task-c1", params={"session": second.sid})
        assert (stopped.status_code, stopped.json()["session"]) == (200, second.sid)
        (left,) = (await listed(running))["tasks"]
        assert left["session"] == first.sid
        release(tmp_path / "0")


async def test_a_session_that_cannot_be_read_is_said_and_hides_no_other(config: Config, running: Running, callers: MakeCaller) -> None:
    sound, damaged = await callers(), await callers()
    async with Executors(config).running(PACKS):
        for caller in (sound, damaged):
            seq = await caller.call("remind", caller.sid[:8], ms=600_000)
            await caller.next(TaskStarted, caller.sid[:8])
        assert (await listed(running))["incomplete"] is False
    await running.gateway.log.js.delete_msg(subjects.EVENT_STREAM, seq)  # the journal of the session names this event
    async with Executors(config).running(PACKS):
        found = await listed(running)
        assert ([task["session"] for task in found["tasks"]], found["incomplete"]) == ([sound.sid], True)
        unknown = await ask(running, "DELETE", "tasks/task-nobody")
        assert (unknown.status_code, unknown.json()["code"]) == (503, "UNAVAILABLE")
        asked = await call(running, "list_tasks")
        assert asked.json()["result"]["incomplete"] is True
        assert asked.json()["result"]["spoken"].endswith("I could not look into every other call, so there may be more.")
        stopped = await ask(running, "DELETE", f"tasks/task-{sound.sid[:8]}")
        assert stopped.status_code == 200
        nothing = await call(running, "cancel_task", task="tea")
        assert (nothing.status_code, nothing.json()["code"]) == (503, "UNAVAILABLE")


async def test_beyond_the_sessions_that_are_read_the_list_is_incomplete(
    config: Config, running: Running, callers: MakeCaller, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(accounts, "SESSIONS_READ", 1)
    async with Executors(config).running(PACKS):
        for number, incomplete in enumerate((False, True)):
            caller = await callers()
            await caller.call("remind", f"c{number}", ms=600_000)
            await caller.next(TaskStarted, f"c{number}")
            found = await listed(running)
            assert ([task["session"] for task in found["tasks"]], found["incomplete"]) == ([caller.sid], incomplete)


async def test_without_an_executor_the_list_says_that_it_is_incomplete(running: Running) -> None:
    assert await listed(running) == {"tasks": [], "count": 0, "incomplete": True}
    ended: httpx.Response = await ask(running, "GET", "tasks", params={"ended": True})
    assert ended.json() == {"tasks": [], "count": 0, "incomplete": False}
    assert (await ask(running, "DELETE", "tasks/task-c1")).status_code == 503
