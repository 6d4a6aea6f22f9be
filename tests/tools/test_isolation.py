"""Isolated functions from the caller's view: real executors, real kills."""

from __future__ import annotations

import asyncio
import os
import signal
from pathlib import Path

from nats.aio.client import Client

from tests.tools.conftest import Caller, Executors
from tests.tools.test_children import gone
from tests.tools.test_service import acknowledged, lines, process
from voxbridge.shared.config import Config
from voxbridge.shared.events.tools import ToolCompleted, ToolFailed, ToolInterrupted


async def test_while_one_function_takes_the_processor_others_are_answered_until_its_time_is_over(
    config: Config, caller: Caller, connection: Client, tmp_path: Path
) -> None:
    async with process(config):
        await caller.call("double", "c0", number=1)
        await caller.next(ToolCompleted, "c0")
        await caller.call("overrun", file=str(tmp_path / "ran"))
        (pid,) = await lines(tmp_path / "ran", 1)
        await caller.call("echo", "c2", text="still there")
        await caller.next(ToolCompleted, "c2")
        failed, _ = await caller.next(ToolFailed)
        await gone(int(pid))
        await acknowledged(connection)
    assert (failed.error.code, failed.error.message) == ("TIMED_OUT", "overrun did not end within 1000 ms.")


async def test_a_cancelled_function_ends_with_its_process(config: Config, caller: Caller, connection: Client, tmp_path: Path) -> None:
    async with process(config):
        await caller.call("spin", file=str(tmp_path / "ran"))
        (pid,) = await lines(tmp_path / "ran", 1)
        await caller.cancel()
        failed, _ = await caller.next(ToolFailed)
        await gone(int(pid))
        await acknowledged(connection)
    assert failed.error.code == "CANCELLED"


async def test_a_function_whose_process_is_killed_fails_by_name_and_the_executor_goes_on(
    config: Config, caller: Caller, connection: Client, tmp_path: Path
) -> None:
    async with process(config):
        await caller.call("spin", file=str(tmp_path / "ran"))
        (pid,) = await lines(tmp_path / "ran", 1)
        os.kill(int(pid), signal.SIGKILL)
        failed, _ = await caller.next(ToolFailed)
        await caller.call("double", "c2", number=21)
        done, _ = await caller.next(ToolCompleted, "c2")
        await acknowledged(connection)
    assert (failed.error.code, "SIGKILL" in failed.error.message) == ("INTERRUPTED", True)
    assert done.result["doubled"] == 42


async def test_a_killed_executor_takes_its_functions_along_and_a_successor_says_so(
    executors: Executors, config: Config, caller: Caller, connection: Client, tmp_path: Path
) -> None:
    async with process(config) as killed:
        await caller.call("spin", file=str(tmp_path / "ran"))
        (pid,) = await lines(tmp_path / "ran", 1)
        killed.kill()
        await killed.wait()
        await gone(int(pid))
    async with executors.running():
        await caller.next(ToolInterrupted)
        await acknowledged(connection)
    assert len(await lines(tmp_path / "ran", 1)) == 1


async def test_an_executor_that_stops_ends_what_is_isolated(config: Config, caller: Caller, tmp_path: Path) -> None:
    async with process(config) as stopped:
        await caller.call("spin", file=str(tmp_path / "ran"))
        (pid,) = await lines(tmp_path / "ran", 1)
        stopped.send_signal(signal.SIGTERM)
        assert await stopped.wait() == 0
        await gone(int(pid))
    await caller.next(ToolInterrupted)


async def test_a_sum_that_would_take_for_ever_is_refused(executors: Executors, caller: Caller) -> None:
    async with executors.running("voxbridge.services.tools.packs.everyday.calculator"):
        await caller.call("calculate", expression="round(7,-10000000)")
        failed, _ = await caller.next(ToolFailed)
        asked = [caller.call("calculate", f"s{number}", expression=f"{number} * 3") for number in range(6)]
        await asyncio.gather(*asked)
        values = [(await caller.next(ToolCompleted, f"s{number}"))[0].result["value"] for number in range(6)]
    assert failed.error.code == "INVALID_ARGUMENT"
    assert values == [0, 3, 6, 9, 12, 15]
