"""Every mode, error policy and kind of trigger, on a real executor: a macro is started twice by its words, and a step of it fails."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from tests.eventually import eventually
from tests.tools.conftest import Caller, Executors
from tests.tools.test_macros import PACKS, call, click, release, save
from voxbridge.shared import events
from voxbridge.shared.bus import subjects
from voxbridge.shared.events.gateway import RunAnswerReceived
from voxbridge.shared.events.tools import (
    RunStepFailed,
    RunWaiting,
    TaskCancelled,
    TaskCompleted,
    TaskFailed,
    ToolFailed,
)
from voxbridge.shared.log.reader import Log
from voxbridge.shared.macros import known
from voxbridge.shared.macros.triggers import Match, match

POLICIES: dict[str, tuple[Any, type[events.Event], int]] = {
    "stop": ("stop", TaskFailed, 1),
    "continue": ("continue", TaskCompleted, 1),
    "retry": ({"retry": {"n": 1, "backoff_s": 0}}, TaskFailed, 2),
    "fallback": ({"fallback": {"say": "sorry"}}, TaskCompleted, 1),
    "ask": ("ask", TaskCompleted, 1),
}
"""Policy, how a run with it ends (the user says to go on), and how often the broken step is tried."""

TRIGGERS = {"exact": ("hold the {} line", "Hold the {} line!"), "fuzzy": ("hold the {} line", "hold the {} lines")}


async def meant(log: Log, utterance: str) -> Match:
    """Return the macro that words start, by what the account's log says."""
    found = [
        recorded
        for topic in known.TOPICS
        async for recorded in log.read_all(subjects.account_log("local"), writer="tools", visibility="i", topic=topic)
    ]
    matched = match(utterance, known.spoken(sorted(found, key=lambda one: one.seq)))
    assert matched is not None
    return matched


async def run(caller: Caller, matched: Match, call_id: str) -> None:
    await call(caller, "run_macro", call_id, name=matched.name, inputs=dict(matched.inputs))


async def answers(caller: Caller, count: int) -> None:
    """Say to go on to each run that asks."""
    for number in range(count):
        await eventually(lambda number=number: len(waiting(caller, "error")) > number)  # type: ignore[misc]
        await click(caller, RunAnswerReceived(run_id=waiting(caller, "error")[number].run_id, text="go on"))


def waiting(caller: Caller, reason: str) -> list[RunWaiting]:
    return [one for one in caller.told(RunWaiting) if isinstance(one, RunWaiting) and one.reason == reason]


async def started_twice(caller: Caller, log: Log, mode: str, policy: str, how: str, file: Path) -> None:
    rule, end, tries = POLICIES[policy]
    name = f"{mode} {policy}"
    steps = [
        {"id": "hold", "call": "harmless", "arguments": {"file": f"{file.parent}/${{input.file}}"}},
        {"id": "bad", "call": "faulty", "on_error": rule},
    ]
    trigger, said = ("hold {file} " + name, f"Hold {file.name} {name}.") if how == "slots" else (one.format(name) for one in TRIGGERS[how])
    inputs = {"file": {"type": "string"} if how == "slots" else {"default": file.name}}
    await save(caller, name, steps, call_id=f"make {name}", trigger=trigger, policy={"mode": mode}, inputs=inputs)
    matched = await meant(log, said)
    assert (matched.name, matched.how, matched.sure) == (name, how, how != "fuzzy")
    await run(caller, matched, "r1")
    await eventually(file.exists)
    await run(caller, matched, "r2")
    ends: dict[str, type[events.Event]] = {"r1": end, "r2": end}
    match mode:
        case "single":
            del ends["r2"]
            assert "running already" in (await caller.next(ToolFailed, "r2"))[0].error.message
        case "restart":
            del ends["r1"]
            await caller.next(TaskCancelled, "r1")
        case "queued":
            await eventually(lambda: bool(waiting(caller, "queued")))
        case _:
            await eventually(lambda: len(file.read_text().splitlines()) == 2)
    release(file)
    if policy == "ask":
        await answers(caller, len(ends))
    for call_id, kind in ends.items():
        await caller.next(kind, call_id)
    broken = [one for one in caller.told(RunStepFailed) if isinstance(one, RunStepFailed) and one.step == "bad"]
    assert len(broken) == tries * len(ends)


@pytest.mark.parametrize("how", ["exact", "slots", "fuzzy"])
@pytest.mark.parametrize("mode", ["single", "restart", "queued", "parallel"])
async def test_a_macro_that_is_started_twice_does_what_its_mode_and_policy_say(
    executors: Executors, callers: Callable[[], Awaitable[Caller]], log: Log, tmp_path: Path, mode: str, how: str
) -> None:
    async with executors.running(PACKS):
        people = [await callers() for _ in POLICIES]
        async with asyncio.TaskGroup() as together:
            for person, policy in zip(people, POLICIES, strict=True):
                together.create_task(started_twice(person, log, mode, policy, how, tmp_path / policy))
