"""A run of five steps whose process is killed after any of its writes: what the next process makes of it."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path

from tests.eventually import BOUND_S
from tests.tools.conftest import Caller, Executors
from voxbridge.services.tools.session.session import refold
from voxbridge.shared.config import Config
from voxbridge.shared.events.gateway import ApprovalClicked
from voxbridge.shared.events.tools import (
    ApprovalRequested,
    RunCompleted,
    RunStepCompleted,
    RunStepFailed,
    TaskCompleted,
    ToolCompleted,
)
from voxbridge.shared.events.voice import ToolCalled
from voxbridge.shared.log.writer import SessionWriter

PACKS = "tests.tools.dying,voxbridge.services.tools.packs.macros.functions"
STEPS = 5
RESUMED_S = 4.0


def called(call_id: str, function: str, **arguments: object) -> ToolCalled:
    return ToolCalled(call_id=call_id, name=function, arguments=arguments, kind="server", turn=1, deadline_ms=60_000)


async def save(executors: Executors, caller: Caller, folder: Path, approved: int | None = None) -> None:
    """Save a macro of five steps, each with an effect that must not happen twice; a person must approve the one of this number."""
    steps = [
        {"id": f"s{number}", "call": "wipe" if number == approved else "leave", "arguments": {"file": str(folder / str(number))}}
        for number in range(STEPS)
    ]
    async with executors.running(PACKS):
        await caller.say(called("make", "create_macro", name="five", steps=steps, policy="continue"))
        await caller.next(ToolCompleted, "make")


async def approve(caller: Caller) -> None:
    """Say yes, once, to what the run asks."""
    asked, _ = await caller.next(ApprovalRequested, "run.s2.1")
    click = ApprovalClicked(approval_id=asked.approval_id, answer="approved")
    await SessionWriter(caller.log, caller.sid, "gateway", stem="click", fenced=False).append(click, ts=caller.now(), cause=None)


async def dies(config: Config, caller: Caller, after: int) -> bool:
    """Run the macro in a process that is killed after so many of its writes. Return whether it came that far before the run was over."""
    env = {
        "VOXBRIDGE_NATS_URL": config.nats_url,
        "VOXBRIDGE_REDIS_URL": config.redis_url,
        "VOXBRIDGE_TOOL_PACKS": PACKS,
        "VOXBRIDGE_TEST_DIES_AFTER": str(after),
        "PATH": os.environ["PATH"],
    }
    running = await asyncio.create_subprocess_exec(sys.executable, "-m", "voxbridge.services.tools", cwd=Path(__file__).parents[2], env=env)
    await caller.say(called("run", "run_macro", name="five"))
    ended = asyncio.create_task(caller.next(TaskCompleted, "run"))
    died = asyncio.create_task(running.wait())
    try:
        async with asyncio.timeout(BOUND_S):
            await asyncio.wait({ended, died}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        ended.cancel()
        died.cancel()
        if running.returncode is None:
            running.kill()
            await running.wait()
    return running.returncode == -9 and not ended.done()


async def goes_on(executors: Executors, caller: Caller, folder: Path) -> float:
    """Have another process take the run on, and check that each effect happened once, or is told as not known. Return the seconds that
    it took from its start."""
    loop = asyncio.get_running_loop()
    began = loop.time()
    async with executors.running(PACKS):
        await caller.next(TaskCompleted, "run")
        took = loop.time() - began
    ended = {event.step for event in caller.told(RunStepCompleted) if isinstance(event, RunStepCompleted)}
    failed = [event for event in caller.told(RunStepFailed) if isinstance(event, RunStepFailed)]
    assert len(failed) <= 1
    assert not any(event.known for event in failed), "only a call that was cut off in the middle is lost, and it is called not known"
    assert ended | {event.step for event in failed} == {f"s{number}" for number in range(STEPS)}
    for number in range(STEPS):
        file = folder / str(number)
        ran = len(file.read_text().splitlines()) if file.exists() else 0
        assert ran == 1 or (ran == 0 and f"s{number}" in {event.step for event in failed}), f"step {number} ran {ran} times"
    assert len(caller.told(RunCompleted)) == 1
    assert refold([event async for event in caller.log.read_all(caller.sid)]).missing == ()
    return took
