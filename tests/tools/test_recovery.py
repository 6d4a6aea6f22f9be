"""Calls whose process is drained, stopped, late, or cannot handle them."""

from __future__ import annotations

import asyncio
import signal
from pathlib import Path

import pytest
from nats.aio.client import Client

from tests.eventually import BOUND_S, eventually
from tests.tools.conftest import Caller, Executors
from tests.tools.test_service import MakeCaller, acknowledged, lines, process, release
from voxbridge.services.tools import service as tools_service
from voxbridge.services.tools.session import intake
from voxbridge.services.tools.session.session import refold
from voxbridge.shared.config import Config
from voxbridge.shared.events.tools import TaskInterrupted, ToolCompleted, ToolInterrupted
from voxbridge.shared.log.reader import Log


async def test_a_function_that_outlasts_the_drain_is_said_to_be_interrupted_before_the_process_ends(
    config: Config, caller: Caller, connection: Client, tmp_path: Path
) -> None:
    file, harmless = tmp_path / "runs", tmp_path / "harmless"
    async with process(config) as drained:
        await caller.call("effect", file=str(file))
        await caller.call("work", "c2", file=str(file))
        await caller.call("harmless", "c3", file=str(harmless))
        await lines(file, 2)
        await lines(harmless, 1)
        drained.send_signal(signal.SIGTERM)
        assert await drained.wait() == 0
    await caller.next(ToolInterrupted)
    await caller.next(TaskInterrupted, "c2")
    release(harmless)
    async with Executors(config).running():
        done, _ = await caller.next(ToolCompleted, "c3")
        await acknowledged(connection)
    assert done.result == {"attempt": 2}, "what may be repeated is left to the successor"
    assert len(await lines(file, 2)) == 2
    assert len(caller.told(ToolInterrupted, TaskInterrupted)) == 2


async def test_what_cannot_be_said_to_be_interrupted_in_time_is_said_by_a_successor(
    executors: Executors,
    caller: Caller,
    connection: Client,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def stuck(*_: object) -> None:
        await asyncio.Event().wait()

    with monkeypatch.context() as patched:
        patched.setattr(tools_service, "_SAY_S", 0.1)
        patched.setattr(tools_service.ToolService, "_interrupt", stuck)
        async with asyncio.timeout(BOUND_S):
            async with executors.running():
                await caller.call("effect", file=str(tmp_path / "runs"))
                await lines(tmp_path / "runs", 1)
    assert "a successor says it" in caplog.text
    assert caller.told(ToolInterrupted) == []
    async with executors.running():
        await caller.next(ToolInterrupted)
        await acknowledged(connection)
    assert len(await lines(tmp_path / "runs", 1)) == 1


async def test_a_call_that_comes_again_is_left_to_the_process_that_has_it(
    executors: Executors, caller: Caller, connection: Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A call is redelivered after an outage of the server, or when the process was too busy to renew it."""
    monkeypatch.setattr(intake, "HEARTBEAT_S", 60.0)
    file = tmp_path / "runs"
    async with executors.running(), executors.running():
        await caller.call("effect", file=str(file))
        await lines(file, 1)

        async def holds() -> bool:
            return bool((await connection.jetstream().consumer_info("EV", "tools")).num_redelivered)

        await eventually(holds)
        release(file)
        done, _ = await caller.next(ToolCompleted)
        await acknowledged(connection)
    assert done.result == {"attempt": 1}
    assert len(await lines(file, 1)) == 1
    assert caller.told(ToolInterrupted) == []


async def test_a_stopped_process_that_wakes_up_adds_nothing_to_what_was_said_for_it(
    executors: Executors, config: Config, caller: Caller, connection: Client, log: Log, tmp_path: Path
) -> None:
    file = tmp_path / "runs"
    async with process(config) as stopped:
        await caller.call("effect", file=str(file))
        await lines(file, 1)
        stopped.send_signal(signal.SIGSTOP)
        async with executors.running():
            await caller.next(ToolInterrupted)
            release(file)
            stopped.send_signal(signal.SIGCONT)
            await acknowledged(connection)
            # It serves again, but its old calls belong to another process.
            await caller.call("effect", "c2", file=str(file))
            await caller.next(ToolCompleted, "c2")
        stopped.send_signal(signal.SIGTERM)
        assert await stopped.wait() == 0
    assert len(await lines(file, 2)) == 2
    ends = [event.call_id for event in caller.told(ToolCompleted, ToolInterrupted) if isinstance(event, ToolCompleted | ToolInterrupted)]
    assert ends == ["c1", "c2"]
    assert refold([event async for event in log.read_all(caller.sid)]).missing == ()


async def test_a_call_that_no_process_can_deal_with_is_given_up_after_its_tries(
    executors: Executors, callers: MakeCaller, connection: Client, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(tools_service, "AGAIN_S", 0.01)
    poisoned, healthy = await callers(), await callers()
    await connection.jetstream().publish(f"vx.s.{poisoned.sid}.ev.tools.i.tools.journal", b"\xc1")
    async with executors.running() as service:
        await poisoned.call("echo", text="never")
        await eventually(lambda: service.stats()["refused"])
        await acknowledged(connection)
        await healthy.call("echo", text="hello")
        await healthy.next(ToolCompleted)
    assert any(f"given up after {intake.DELIVERIES_LIMIT} tries" in line for line in caplog.messages)
    assert poisoned.told() == []
