"""Calls without a session: requested by the gateway in the log of an account, and run by the same rules."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from nats.aio.client import Client

from tests.eventually import eventually
from tests.tools.conftest import Caller, Executors
from tests.tools.test_service import lines, process, release
from voxbridge.cli import cli
from voxbridge.services.tools.session import checkpoints
from voxbridge.services.tools.session.session import refold
from voxbridge.sessions import archive, replay
from voxbridge.sessions.erase import erase
from voxbridge.sessions.index import list_it
from voxbridge.shared import events
from voxbridge.shared.bus import subjects
from voxbridge.shared.clock import SystemClock
from voxbridge.shared.config import Config
from voxbridge.shared.events.gateway import TaskCancelRequested, ToolRequested
from voxbridge.shared.events.journal import Checkpoint
from voxbridge.shared.events.tools import TaskCancelled, ToolCompleted, ToolFailed, ToolInterrupted, ToolStarted
from voxbridge.shared.log.reader import Log
from voxbridge.shared.log.writer import SessionWriter
from voxbridge.shared.store.store import Store

LOCAL = subjects.account_log("local")


class Asking(Caller):
    """A gateway that asks for functions outside sessions."""

    def __init__(self, log: Log) -> None:
        super().__init__(log, LOCAL)
        self._gateway = SessionWriter(log, LOCAL, "gateway", stem="test", fenced=False)

    async def call(
        self, name: str, /, call_id: str = "c1", *, deadline_ms: int = 30_000, account: str = "local", **arguments: object
    ) -> int:
        return await self.ask(
            ToolRequested(call_id=call_id, name=name, arguments=dict(arguments), deadline_ms=deadline_ms, account=account)
        )

    async def ask(self, event: events.Event) -> int:
        return await self._gateway.append(event, ts=SystemClock().now_us(), cause=None)


@pytest.fixture
async def client(log: Log) -> AsyncIterator[Asking]:
    client = Asking(log)
    await client.start()
    yield client
    await client.stop()


async def acknowledged(connection: Client) -> None:
    """Wait until the accounts' consumer has no pending message."""

    async def nothing_pending() -> bool:
        info = await connection.jetstream().consumer_info(subjects.ACCOUNT_STREAM, subjects.TOOLS_CONSUMER)
        return not (info.num_ack_pending or info.num_pending)

    await eventually(nothing_pending)


async def test_a_call_is_run_and_answered_in_the_log_of_its_account(executors: Executors, client: Asking, connection: Client) -> None:
    async with executors.running():
        position = await client.call("echo", text="hello")
        done, recorded = await client.next(ToolCompleted)
        started, start = await client.next(ToolStarted)
        await acknowledged(connection)
    assert done.result == {"text": "hello", "spoken": "hello"}
    assert (start.sid, start.cause, started.attempt) == (LOCAL, f"tools#{1}", 1)
    assert recorded.seq > start.seq > position


async def test_wrong_arguments_and_unknown_functions_fail_as_in_a_session(executors: Executors, client: Asking) -> None:
    async with executors.running():
        await client.call("echo", "c1", wrong=1)
        await client.call("nothing", "c2")
        wrong, _ = await client.next(ToolFailed, "c1")
        unknown, _ = await client.next(ToolFailed, "c2")
    assert (wrong.error.code, unknown.error.code) == ("INVALID_ARGUMENT", "NOT_FOUND")


async def test_a_hundred_copies_of_a_call_have_one_effect_with_two_executors(
    executors: Executors, client: Asking, connection: Client, tmp_path: Path
) -> None:
    file = tmp_path / "runs"
    release(file)
    async with executors.running(), executors.running():
        await asyncio.gather(*(client.call("effect", file=str(file)) for _ in range(100)))
        await client.next(ToolCompleted)
        await acknowledged(connection)
    assert len(await lines(file, 1)) == 1
    assert len(client.told(ToolCompleted, ToolFailed, ToolInterrupted)) == 1


async def test_two_executors_share_the_calls_of_one_account(
    executors: Executors, client: Asking, connection: Client, log: Log, tmp_path: Path
) -> None:
    file = tmp_path / "runs"
    release(file)
    async with executors.running() as one, executors.running() as other:
        await asyncio.gather(*(client.call("effect", f"c{n}", file=str(file)) for n in range(30)))
        for n in range(30):
            await client.next(ToolCompleted, f"c{n}")
        await acknowledged(connection)
        assert one.stats()["taken"] > 0
        assert other.stats()["taken"] > 0
    assert len(await lines(file, 30)) == 30
    assert len(client.told(ToolStarted)) == 30
    folded = refold([event async for event in log.read_all(LOCAL)])
    assert (folded.missing, folded.state.open) == ((), {})


async def test_a_killed_executors_call_is_interrupted_and_one_that_may_be_repeated_runs_again(
    executors: Executors, config: Config, client: Asking, connection: Client, tmp_path: Path
) -> None:
    file = tmp_path / "runs"
    async with process(config) as killed:
        await client.call("change", file=str(file))
        await client.call("harmless", "c2", file=str(file))
        await lines(file, 2)
        killed.kill()
        await killed.wait()
    release(file)
    async with executors.running():
        await client.next(ToolInterrupted)
        done, _ = await client.next(ToolCompleted, "c2")
        await acknowledged(connection)
    assert done.result == {"attempt": 2}
    assert len(await lines(file, 3)) == 3


async def test_a_task_of_an_account_is_cancelled_whichever_process_hears_of_it(
    executors: Executors, client: Asking, connection: Client, tmp_path: Path
) -> None:
    file = tmp_path / "runs"
    async with executors.running(), executors.running():
        await client.call("work", file=str(file))
        await lines(file, 1)
        await client.ask(TaskCancelRequested(task_id="task-c1"))
        await client.next(TaskCancelled)
        await acknowledged(connection)


async def test_the_state_after_a_checkpoint_is_that_of_the_whole_log(
    executors: Executors, client: Asking, log: Log, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checkpoints, "EVERY", 10)
    file = tmp_path / "runs"
    release(file)
    async with executors.running():
        for n in range(12):
            await client.call("effect", f"c{n}", file=str(file))
            await client.next(ToolCompleted, f"c{n}")
    async with executors.running() as successor, executors.running():
        await client.call("effect", "c3", file=str(file))  # ended long ago
        for n in range(12, 24):
            await client.call("effect", f"c{n}", file=str(file))
            await client.next(ToolCompleted, f"c{n}")
        session = successor.session(LOCAL)
        await session.opened()
        recorded = [event async for event in log.read_all(LOCAL)]
    stones = [one for one in recorded if isinstance(one.event, Checkpoint)]
    assert len(stones) >= 4
    for stone in stones:
        before = refold([one for one in recorded if one.seq < stone.seq])
        base = checkpoints.restored(stone)
        assert base is not None
        assert (base.state, base.taken, base.number) == (before.state, before.taken, before.number + 1)
        whole = refold(recorded)
        behind = refold([one for one in recorded if one.writer != "tools" or one.seq > stone.seq], base=base)
        assert (behind.state, behind.taken, behind.number, behind.last_seq) == (whole.state, whole.taken, whole.number, whole.last_seq)
    assert len(await lines(file, 24)) == 24, "the call that had ended did not run again"
    replayed = replay.run(recorded, "tools")
    assert replay.same(replayed), list(replay.report(replayed))


async def test_a_checkpoint_of_another_release_is_passed_over(
    executors: Executors, client: Asking, log: Log, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checkpoints, "EVERY", 5)
    file = tmp_path / "runs"
    release(file)
    with monkeypatch.context() as older:
        older.setattr(checkpoints, "shape", lambda: "another")
        async with executors.running():
            for n in range(4):
                await client.call("effect", f"c{n}", file=str(file))
                await client.next(ToolCompleted, f"c{n}")
    (*_, stone) = [one async for one in log.read_all(LOCAL) if isinstance(one.event, Checkpoint)]
    assert checkpoints.restored(stone) is None
    async with executors.running() as service:
        await client.call("effect", "c9", file=str(file))
        await client.next(ToolCompleted, "c9")
        assert service.session(LOCAL).state == refold([one async for one in log.read_all(LOCAL)]).state


async def test_an_executor_goes_on_after_its_accounts_log_was_erased(
    executors: Executors, client: Asking, connection: Client, log: Log, store: Store
) -> None:
    async with executors.running():
        await client.call("echo", text="the secret")
        await client.next(ToolCompleted)
        await acknowledged(connection)
        await erase(log, store.redis, LOCAL, by="Ada", now=SystemClock().now_us())
        await client.call("echo", "c2", text="afterwards")
        await client.next(ToolCompleted, "c2")
        await acknowledged(connection)
    left = [one async for one in log.read_all(LOCAL)]
    assert [one.event.arguments for one in left if isinstance(one.event, ToolRequested)] == [{"text": "afterwards"}]
    assert not any(b"the secret" in events.encode(one.event, event_id="", sid="", ts=0, cause=None) for one in left[1:])


async def test_the_commands_take_an_accounts_log_where_they_take_a_session(
    executors: Executors, client: Asking, log: Log, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with executors.running():
        await client.call("echo", text="the secret")
        await client.next(ToolCompleted)
    file, folder = tmp_path / "account.jsonl", tmp_path / "imported"
    file.write_bytes(b"".join([line async for line in archive.export(log, LOCAL)]))
    folder.mkdir()
    monkeypatch.setenv("VOXBRIDGE_DATA_DIR", str(folder))
    for name in ("VOXBRIDGE_NATS_URL", "VOXBRIDGE_REDIS_URL"):
        monkeypatch.delenv(name, raising=False)

    async def run(*arguments: str) -> Result:
        return await asyncio.to_thread(CliRunner().invoke, cli, arguments)

    assert (await run("import", str(file))).exit_code == 0
    replayed = await run("replay", "@local")
    assert (replayed.exit_code, "tools: no difference" in replayed.stdout) == (0, True)
    assert "the secret" in (await run("export", "@local")).stdout
    assert "no calls" in (await run("sessions", "ls")).stdout
    assert "the secret" in (await run("sessions", "show", "@local")).stdout
    (span, *_) = json.loads((await run("export", "--otlp", "@local")).stdout)["resourceSpans"][0]["scopeSpans"][0]["spans"]
    assert re.fullmatch("[0-9a-f]{32}", span["traceId"])
    erased = await run("erase", "@local", "--yes", "--by", "Ada")
    assert (erased.exit_code, erased.stdout.startswith("@local is erased")) == (0, True)
    assert not any(b"the secret" in path.read_bytes() for path in folder.rglob("*") if path.is_file())
    assert (await run("replay", "@nobody")).exit_code == 2


async def test_an_imported_account_is_in_no_list_of_sessions(store: Store, redis_url: str) -> None:
    await list_it(redis_url, LOCAL, 1)
    assert await store.redis.keys("vx:sessions*") == []
    await list_it(redis_url, "a" * 32, 1)
    assert await store.redis.keys("vx:sessions*") != []
