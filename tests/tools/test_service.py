"""The executor on real servers: events that a caller receives in normal operation and after faults."""

from __future__ import annotations

import asyncio
import json
import signal
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from nats.aio.client import Client

from tests.eventually import eventually
from tests.tools.conftest import Caller, Executors
from voxbridge.services.tools import service as tools_service
from voxbridge.services.tools.core.results import RESULT_LIMIT
from voxbridge.services.tools.session import intake, sessions
from voxbridge.services.tools.session.contexts import TELL_LIMIT
from voxbridge.services.tools.session.session import refold
from voxbridge.shared import events
from voxbridge.shared.bus.connection import connect_nats
from voxbridge.shared.config import Config
from voxbridge.shared.embedded.nats_server import NatsServer
from voxbridge.shared.embedded.valkey_server import ValkeyServer
from voxbridge.shared.events.tools import (
    TaskCancelled,
    TaskCompleted,
    TaskInterrupted,
    TaskProgressed,
    TaskStarted,
    ToolCompleted,
    ToolFailed,
    ToolInterrupted,
    ToolStarted,
)
from voxbridge.shared.events.voice import SessionEnded, ToolCalled
from voxbridge.shared.ids import new_session_id
from voxbridge.shared.log.reader import Log
from voxbridge.shared.store.store import Store

MakeCaller = Callable[[], Awaitable[Caller]]


async def lines(path: Path, count: int) -> list[str]:
    """Wait until a file has `count` runs, and return them."""
    await eventually(lambda: path.exists() and len(path.read_text().splitlines()) >= count)
    return path.read_text().splitlines()  # noqa: ASYNC240 - one line


async def acknowledged(connection: Client) -> None:
    """Wait until the consumer has no pending message."""

    async def nothing_pending() -> bool:
        info = await connection.jetstream().consumer_info("EV", "tools")
        return not (info.num_ack_pending or info.num_pending)

    await eventually(nothing_pending)


def release(path: Path) -> None:
    Path(f"{path}.go").touch()


@asynccontextmanager
async def process(config: Config) -> AsyncIterator[asyncio.subprocess.Process]:
    """Run a real executor process."""
    env = {
        "VOXBRIDGE_NATS_URL": config.nats_url,
        "VOXBRIDGE_REDIS_URL": config.redis_url,
        "VOXBRIDGE_TOOL_PACKS": "tests.tools.pack",
        "PATH": "/usr/bin:/bin",
    }
    root = Path(__file__).parents[2]
    running = await asyncio.create_subprocess_exec(sys.executable, "-m", "voxbridge.services.tools", cwd=root, env=env)
    try:
        yield running
    finally:
        if running.returncode is None:
            running.kill()
        await running.wait()


async def check_fold(log: Log, caller: Caller, service: tools_service.ToolService) -> None:
    """Check that folding the log gives the executor's state, without missing events."""
    recorded = [event async for event in log.read_all(caller.sid)]
    folded = refold(recorded)
    assert folded.missing == ()
    assert folded.state == service.session(caller.sid).state


async def test_a_call_is_started_and_completed_with_its_causes(executors: Executors, caller: Caller, connection: Client, log: Log) -> None:
    async with executors.running() as service:
        position = await caller.call("echo", text="hello")
        done, recorded = await caller.next(ToolCompleted)
        started, start = await caller.next(ToolStarted)
        assert done.result == {"text": "hello", "spoken": "hello"}
        assert started.attempt == 1
        assert position < start.seq < recorded.seq
        # The journal numbers the inputs: 0 is the call itself, 1 its acceptance, 2 the function's return.
        assert (start.cause, recorded.cause) == ("tools#1", "tools#2")
        await acknowledged(connection)
        await check_fold(log, caller, service)


@pytest.mark.parametrize(
    ("name", "arguments", "code", "says"),
    [
        ("nothing_like_it", {}, "NOT_FOUND", "nothing_like_it"),
        ("echo", {"text": 5}, "INVALID_ARGUMENT", "`text`"),
        ("echo", {}, "INVALID_ARGUMENT", "`text`"),
        ("echo", {"text": "a", "loud": True}, "INVALID_ARGUMENT", "`loud`"),
        ("large", {"size": "many"}, "INVALID_ARGUMENT", "`size`"),
        ("large", {"size": RESULT_LIMIT - 10}, "TOO_LARGE", str(RESULT_LIMIT)),
        ("slow", {}, "TIMED_OUT", "200 ms"),
        ("blocking", {"seconds": 0.5}, "TIMED_OUT", "200 ms"),
        ("faulty", {}, "INTERNAL", "RuntimeError"),
        ("unsayable", {}, "INTERNAL", "JSON"),
    ],
)
async def test_a_call_that_cannot_succeed_fails_with_its_reason(
    executors: Executors, caller: Caller, connection: Client, name: str, arguments: dict[str, Any], code: str, says: str
) -> None:
    async with executors.running():
        await caller.call(name, **arguments)
        failed, _ = await caller.next(ToolFailed)
        await acknowledged(connection)
    assert failed.error.code == code
    assert says in failed.error.message
    assert "secret" not in failed.error.message
    assert len(caller.told(ToolFailed, ToolCompleted)) == 1


async def test_a_result_at_the_limit_is_delivered(executors: Executors, caller: Caller) -> None:
    async with executors.running():
        await caller.call("large", size=RESULT_LIMIT - len('{"text":""}'))
        done, _ = await caller.next(ToolCompleted)
    assert len(done.result["text"]) == RESULT_LIMIT - len('{"text":""}')


async def test_what_has_happened_is_not_called_failed_for_a_result_that_is_too_large(executors: Executors, caller: Caller) -> None:
    async with executors.running():
        await caller.call("print_pages", size=RESULT_LIMIT)
        done, _ = await caller.next(ToolCompleted)
    assert list(done.result) == ["not_told"]
    assert f"at most {RESULT_LIMIT}" in done.result["not_told"]


async def test_a_thousand_copies_of_a_call_have_one_effect(
    executors: Executors, caller: Caller, connection: Client, tmp_path: Path
) -> None:
    file = tmp_path / "runs"
    release(file)
    async with executors.running(), executors.running():
        await asyncio.gather(*(caller.call("effect", file=str(file)) for _ in range(1_000)))
        await caller.next(ToolCompleted)
        await acknowledged(connection)
    assert len(await lines(file, 1)) == 1
    assert len(caller.told(ToolStarted)) == 1
    assert len(caller.told(ToolCompleted, ToolFailed, ToolInterrupted)) == 1


async def test_two_executors_share_the_calls_of_many_sessions_and_of_one(
    executors: Executors, callers: MakeCaller, connection: Client, log: Log, tmp_path: Path
) -> None:
    file = tmp_path / "runs"
    release(file)
    some = [await callers() for _ in range(8)]
    async with executors.running() as one, executors.running() as other:
        await asyncio.gather(*(caller.call("effect", f"c{n}", file=str(file)) for n in range(30) for caller in some))
        for caller in some:
            for n in range(30):
                await caller.next(ToolCompleted, f"c{n}")
        await acknowledged(connection)
        assert one.stats()["taken"] > 0
        assert other.stats()["taken"] > 0
    assert len(await lines(file, 240)) == 240
    for caller in some:
        assert len(caller.told(ToolStarted)) == 30
        assert len(caller.told(ToolCompleted, ToolFailed, ToolInterrupted)) == 30
        folded = refold([event async for event in log.read_all(caller.sid)])
        assert folded.missing == ()
        assert folded.state.open == {}


async def test_a_cancelled_function_is_stopped_whichever_process_hears_of_it(
    executors: Executors, caller: Caller, connection: Client, tmp_path: Path
) -> None:
    file = tmp_path / "runs"
    async with executors.running(), executors.running():
        await caller.call("effect", file=str(file))
        await lines(file, 1)
        await caller.cancel()
        failed, _ = await caller.next(ToolFailed)
        await acknowledged(connection)
    assert failed.error.code == "CANCELLED"
    assert len(caller.told(ToolCompleted, ToolFailed)) == 1


async def test_the_late_result_of_a_cancelled_call_is_recorded(executors: Executors, caller: Caller, tmp_path: Path) -> None:
    async with executors.running():
        await caller.call("stubborn", file=str(tmp_path / "runs"))
        await lines(tmp_path / "runs", 1)
        await caller.cancel()
        done, _ = await caller.next(ToolCompleted)
    assert done.result == {"stopped": False}


async def test_a_killed_executors_call_is_interrupted_once_and_never_run_again(
    executors: Executors, config: Config, caller: Caller, connection: Client, log: Log, tmp_path: Path
) -> None:
    file = tmp_path / "runs"
    async with process(config) as killed:
        await caller.call("effect", file=str(file))
        await caller.call("harmless", "c2", file=str(file))
        await caller.call("work", "c3", file=str(file))
        await lines(file, 3)
        killed.kill()
        await killed.wait()
    release(file)
    async with executors.running():
        await caller.next(ToolInterrupted)
        done, _ = await caller.next(ToolCompleted, "c2")
        await caller.next(TaskInterrupted, "c3")
        await acknowledged(connection)
    assert done.result == {"attempt": 2}
    assert len(await lines(file, 4)) == 4, "only the idempotent one ran again"
    assert len(caller.told(ToolInterrupted)) == 1
    assert [event.call_id for event in caller.told(ToolCompleted) if isinstance(event, ToolCompleted)] == ["c3", "c2"]
    assert refold([event async for event in log.read_all(caller.sid)]).missing == ()


async def test_a_timer_survives_a_kill_and_fires_once_at_its_time(
    executors: Executors, config: Config, caller: Caller, connection: Client
) -> None:
    async with process(config) as killed:
        await caller.call("remind", ms=6_000)
        started, _ = await caller.next(TaskStarted)
        killed.kill()
        await killed.wait()
    assert started.due_ts is not None
    async with executors.running():
        completed, recorded = await caller.next(TaskCompleted)
        await acknowledged(connection)
    assert completed.announce == "It is time."
    assert 0 <= recorded.ts - started.due_ts < 30_000_000
    assert len(caller.told(TaskCompleted, TaskInterrupted)) == 1


async def test_a_drained_executor_hands_its_timers_over_at_once(
    executors: Executors, config: Config, caller: Caller, connection: Client
) -> None:
    async with process(config) as drained:
        await caller.call("remind", ms=3_000)
        started, _ = await caller.next(TaskStarted)
        begun = time.monotonic()
        drained.send_signal(signal.SIGTERM)
        assert await drained.wait() == 0
        assert time.monotonic() - begun < 15
    async with executors.running():
        _, recorded = await caller.next(TaskCompleted)
        await acknowledged(connection)
    assert started.due_ts is not None
    assert 0 <= recorded.ts - started.due_ts < 30_000_000


async def test_a_task_says_how_far_it_is_and_ends_with_what_to_say(executors: Executors, caller: Caller, tmp_path: Path) -> None:
    file = tmp_path / "runs"
    async with executors.running():
        await caller.call("work", file=str(file))
        answered, _ = await caller.next(ToolCompleted)
        progressed, _ = await caller.next(TaskProgressed)
        release(file)
        completed, _ = await caller.next(TaskCompleted)
    assert answered.result == {"task_id": "task-c1", "status": "started", "spoken": "Started work."}
    assert (progressed.done, progressed.message) == (0.5, "half way")
    assert completed.announce == "Your report is ready."


@pytest.mark.parametrize(("size", "told"), [(TELL_LIMIT, TELL_LIMIT), (TELL_LIMIT + 1, TELL_LIMIT)])
async def test_a_task_tells_something_on_the_way_and_is_as_far_as_it_was(
    executors: Executors, caller: Caller, size: int, told: int
) -> None:
    async with executors.running():
        await caller.call("chatter", size=size)
        await caller.next(TaskCompleted)
    first, second = caller.told(TaskProgressed)
    assert first == TaskProgressed(task_id="task-c1", function="chatter", done=0.25, message="a quarter")
    assert second == TaskProgressed(task_id="task-c1", function="chatter", done=0.25, message="x" * told, tell=True)


async def test_the_end_of_a_session_ends_its_timers(executors: Executors, caller: Caller, connection: Client) -> None:
    async with executors.running():
        await caller.call("remind", ms=600_000)
        await caller.next(TaskStarted)
        await caller.say(SessionEnded(reason="client"))
        cancelled, _ = await caller.next(TaskCancelled)
        await acknowledged(connection)
    assert cancelled.reason == "the session ended"


async def test_a_fact_is_in_the_log_with_its_call_as_cause(executors: Executors, caller: Caller, log: Log) -> None:
    async with executors.running():
        await caller.call("note", text="the key is under the mat")
        await caller.next(ToolCompleted)
    types = [recorded.type async for recorded in log.read_all(caller.sid, writer="tools") if recorded.type != "tools.journal"]
    assert types == ["tool.started", "note.remembered", "tool.completed"]


async def test_the_catalogue_is_published_listed_and_brought_back(
    executors: Executors, connection: Client, store: Store, log: Log, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tools_service, "LOOK_AFTER_S", 0.05)
    async with executors.running():

        async def published() -> list[str]:
            found = await eventually(store.functions)
            return sorted(function.name for function in found)

        names = await published()
        assert {"current_time", "echo", "remind"} <= set(names)
        await store.redis.flushall()
        assert await published() == names
        listed = json.loads((await connection.request("vx.svc.tools.list", b"")).data)
        assert sorted(function["name"] for function in listed) == names


async def test_a_process_that_holds_too_much_refuses(executors: Executors, caller: Caller, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tools_service, "HELD_LIMIT", 1)
    async with executors.running():
        await caller.call("remind", ms=600_000)
        await caller.next(TaskStarted)
        await caller.call("echo", "c2", text="hello")
        failed, _ = await caller.next(ToolFailed, "c2")
        await caller.cancel_task("task-c1")
        await caller.next(TaskCancelled)
    assert failed.error.code == "OVERLOADED"
    assert failed.error.retryable


async def test_idle_sessions_are_forgotten_and_folded_again(
    executors: Executors, callers: MakeCaller, connection: Client, log: Log, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sessions, "SESSIONS_KEPT", 2)
    some = [await callers() for _ in range(5)]
    async with executors.running() as service:
        for round in range(2):
            for caller in some:
                await caller.call("echo", f"c{round}", text="hello")
                await caller.next(ToolCompleted, f"c{round}")
        await acknowledged(connection)
        assert service.stats()["sessions"] <= 2
        await check_fold(log, some[-1], service)
    for caller in some:
        assert [type(event) for event in caller.told()] == [ToolStarted, ToolCompleted] * 2
        assert isinstance(caller.heard[0].event, events.journal.ToolsJournal)


async def test_a_full_process_leaves_calls_to_the_stream(
    executors: Executors, caller: Caller, connection: Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tools_service, "RUNNING_LIMIT", 1)
    first, second = tmp_path / "first", tmp_path / "second"
    async with executors.running() as service:
        await caller.call("effect", file=str(first))
        await lines(first, 1)
        await caller.call("effect", "c2", file=str(second))

        async def holds() -> bool:
            return bool((await connection.jetstream().consumer_info("EV", "tools")).num_pending == 1)

        await eventually(holds)
        assert service.stats()["running"] == 1
        assert not second.exists()
        release(first)
        await lines(second, 1)
        release(second)
        await caller.next(ToolCompleted, "c2")
    assert len(caller.told(ToolCompleted)) == 2


async def test_a_result_waits_for_a_log_that_is_away(own_nats: Callable[[], NatsServer], redis_url: str, tmp_path: Path) -> None:
    file = tmp_path / "runs"
    server = own_nats()
    client = await connect_nats(server.url, "test", pending=1_000_000)
    log = Log(client)
    await log.ensure_streams(retention_days=1)
    caller = Caller(log, new_session_id())
    await caller.start()
    async with Executors(Config(nats_url=server.url, redis_url=redis_url)).running():
        await caller.call("effect", file=str(file))
        await lines(file, 1)
        server.kill()
        release(file)
        server.start()
        await eventually(lambda: client.is_connected)
        await log.reconnected()
        await caller.next(ToolCompleted)
        await acknowledged(client)
    assert len(await lines(file, 1)) == 1
    assert len(caller.told(ToolStarted, ToolCompleted)) == 2
    await caller.stop()
    await client.close()


async def test_functions_run_while_valkey_is_away_and_notes_are_made_good(
    own_valkey: Callable[[], ValkeyServer], nats_url: str, log: Log, caller: Caller
) -> None:
    valkey = own_valkey()
    async with Executors(Config(nats_url=nats_url, redis_url=valkey.url)).running(
        "voxbridge.services.tools.packs.everyday.notes,tests.tools.pack"
    ):
        valkey.kill()
        await caller.call("echo", text="hello")
        await caller.next(ToolCompleted)
        await caller.call("remember", "c2", note="The key is under the mat.")
        await caller.next(ToolCompleted, "c2")
        await caller.call("recall", "c3", query="")
        failed, _ = await caller.next(ToolFailed, "c3")
        assert (failed.error.code, failed.error.retryable) == ("UNAVAILABLE", True)
        valkey.start()
        await caller.call("recall", "c4", query="")
        done, _ = await caller.next(ToolCompleted, "c4")
        assert done.result["notes"] == ["The key is under the mat."]


async def test_what_is_not_for_the_executor_is_left_alone(executors: Executors, caller: Caller, connection: Client) -> None:
    async with executors.running():
        await connection.jetstream().publish(f"vx.s.{new_session_id()}.ev.voice.c.tool.called", b"no event")
        await caller.say(ToolCalled(call_id="page", name="echo", arguments={}, kind="browser", turn=1, deadline_ms=0))
        await caller.cancel("never called")
        await caller.call("echo", text="hello")
        await caller.next(ToolCompleted)
        await acknowledged(connection)
    assert [type(event) for event in caller.told()] == [ToolStarted, ToolCompleted]


async def test_the_consumer_has_its_bounds(executors: Executors, connection: Client) -> None:
    async with executors.running():
        config = (await connection.jetstream().consumer_info("EV", "tools")).config
    assert (config.ack_wait, config.max_ack_pending) == (2.0, 10_000)
    assert intake.HEARTBEAT_S * 3 < 2.0
    assert config.filter_subjects is not None
    assert all(subject.startswith("vx.s.*.ev.voice.c.") for subject in config.filter_subjects[:-1])
    assert config.filter_subjects[-1] == "vx.s.*.ev.gateway.i.request"


async def test_the_end_of_a_session_without_calls_leaves_no_word(
    executors: Executors, callers: MakeCaller, connection: Client, log: Log
) -> None:
    silent, other = await callers(), await callers()
    async with executors.running():
        await silent.say(SessionEnded(reason="client"))
        await other.call("echo", text="hello")
        await other.next(ToolCompleted)
        await acknowledged(connection)
    assert [recorded.type async for recorded in log.read_all(silent.sid)] == ["session.ended"]


async def test_an_executor_tells_its_figures(executors: Executors, caller: Caller, connection: Client) -> None:
    async with executors.running():
        await caller.call("echo", text="hello")
        await caller.next(ToolCompleted)
        told = json.loads((await connection.request("vx.svc.tools.figures", b"")).data)
    assert told["process"].startswith("tools-")
    assert told["figures"]["events_appended"] > 0
