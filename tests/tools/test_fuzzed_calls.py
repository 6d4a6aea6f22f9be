"""Every call ends exactly once, whatever its arguments are, whatever its function returns, and whatever a macro makes of both."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import Any, Final

import pytest

from tests.draws import dice
from tests.eventually import eventually
from tests.tools import fuzzed
from tests.tools.conftest import Caller, Executors
from voxbridge.services.tools.core.step import OPEN_LIMIT
from voxbridge.services.tools.session.session import refold
from voxbridge.shared.errors import Code
from voxbridge.shared.events.gateway import ApprovalClicked
from voxbridge.shared.events.tools import (
    ApprovalEnded,
    ApprovalRequested,
    TaskCancelled,
    TaskCompleted,
    TaskFailed,
    TaskInterrupted,
    ToolCompleted,
    ToolFailed,
    ToolInterrupted,
)
from voxbridge.shared.events.voice import ToolCalled
from voxbridge.shared.log.writer import SessionWriter

SOME, MANY = 400, 2_000
"""Calls of `make test` and of `make test-all`; `tests/long` makes ten thousand."""

PACKS: Final = "tests.tools.pack,tests.tools.fuzzed,voxbridge.services.tools.packs.macros.functions"
ENDS: Final = (ToolCompleted, ToolFailed, ToolInterrupted)
LATER: Final = (TaskCancelled, TaskCompleted, TaskFailed, TaskInterrupted)
AT_ONCE: Final = OPEN_LIMIT // 4


def _drawn(random_: random.Random, number: int) -> tuple[str, dict[str, Any]]:
    kind = random_.randrange(10)
    if kind < 2:
        return random_.choice(("echo", "double", "odd", "large", "create_macro", "run_macro", "there_is_none")), fuzzed.mapping(random_)
    if kind < 4:
        return "echo", {"text": fuzzed.value(random_)}
    if kind < 7:
        return "odd", {"seed": random_.randrange(1_000_000)}
    if kind < 8:
        return "create_macro", fuzzed.macro(random_, f"m{number // 10}")
    inputs = {} if random_.random() < 0.5 else {"given": fuzzed.value(random_, 3)}
    return "run_macro", {"name": f"m{random_.randrange(number // 10 + 1)}", "inputs": inputs}


async def _play(caller: Caller, count: int, random_: random.Random) -> None:
    """Make calls, so many at a time as a session may have open, and wait for the end of each."""

    def open_calls() -> set[str]:
        ended = {event.call_id for event in caller.told(*ENDS) if isinstance(event, ENDS) and not getattr(event, "goes_on", "")}
        later = {event.task_id.removeprefix("task-") for event in caller.told(*LATER) if isinstance(event, LATER)}
        refused = {event.call_id for event in caller.told(ApprovalEnded) if isinstance(event, ApprovalEnded)}
        return made - ended - later - refused

    async def rests() -> bool:
        for event in caller.told(ApprovalRequested):  # of a draft, where a call names a macro and no step
            if isinstance(event, ApprovalRequested) and event.approval_id not in denied:
                denied.add(event.approval_id)
                writer = SessionWriter(caller.log, caller.sid, "gateway", stem=event.approval_id, fenced=False)
                await writer.append(ApprovalClicked(approval_id=event.approval_id, answer="denied"), ts=caller.now(), cause=None)
        return not open_calls()

    made: set[str] = set()
    denied: set[str] = set()
    for number in range(count):
        name, arguments = _drawn(random_, number)
        call_id = f"c{number}"
        event = ToolCalled(call_id=call_id, name=name, arguments=arguments, kind="server", turn=1, deadline_ms=30_000, account="local")
        await caller.say(event)
        made.add(call_id)
        if len(made) % AT_ONCE == 0:
            await eventually(rests)
    await eventually(rests)


async def fuzz(executors: Executors, callers: Callable[[], Awaitable[Caller]], calls: int) -> None:
    """Make so many drawn calls, and check that each ends exactly once."""
    random_ = dice("fuzzed calls")
    async with executors.running(PACKS) as service:
        for start in range(0, calls, SOME):
            caller = await callers()
            await _play(caller, min(SOME, calls - start), random_)
            ends = Counter(event.call_id for event in caller.told(*ENDS) if isinstance(event, ENDS))
            assert set(ends.values()) == {1}, [one for one in ends.items() if one[1] != 1]
            assert max(Counter(event.task_id for event in caller.told(*LATER) if isinstance(event, LATER)).values(), default=1) == 1
            faults = [event for event in caller.told(ToolFailed) if isinstance(event, ToolFailed) and event.error.code == Code.INTERNAL]
            faults = [event for event in faults if event.name not in ("odd", "double")]
            assert not faults
            assert not service.session(caller.sid).state.open
            recorded = [one async for one in caller.log.read_all(caller.sid)]
            assert not (await asyncio.to_thread(refold, recorded)).missing
            await caller.stop()


async def test_fuzzed_calls_end_exactly_once(executors: Executors, callers: Callable[[], Awaitable[Caller]]) -> None:
    await fuzz(executors, callers, SOME)


@pytest.mark.timeout(900)
async def test_many_fuzzed_calls_end_exactly_once(executors: Executors, callers: Callable[[], Awaitable[Caller]]) -> None:
    await fuzz(executors, callers, MANY)
