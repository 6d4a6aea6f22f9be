"""A raise is an end: whatever goes wrong while an input is taken, its call ends once, typed, and the next one is taken."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.tools.conftest import Caller, Executors
from tests.tools.test_macros import ECHOES, PACKS
from voxbridge.services.tools.core.inputs import Accepted, Returned, Scheduled, TimerFired
from voxbridge.services.tools.core.step import step
from voxbridge.services.tools.session import decisions, lookup, session
from voxbridge.services.tools.session.session import refold
from voxbridge.shared.errors import Code
from voxbridge.shared.events.tools import (
    RunFailed,
    TaskCompleted,
    TaskFailed,
    TaskInterrupted,
    ToolCompleted,
    ToolFailed,
    ToolInterrupted,
)
from voxbridge.shared.step.journal import LogInput

ENDS = (ToolCompleted, ToolFailed, ToolInterrupted, TaskCompleted, TaskFailed, TaskInterrupted)


def breaks(monkeypatch: pytest.MonkeyPatch, at: Callable[[Any], bool]) -> None:
    """Have the step raise at these inputs, as a fault in it would: each time that it is given them."""

    def broken(state: Any, input: Any, now: int) -> Any:
        if at(input):
            raise ZeroDivisionError("a fault")
        return step(state, input, now)

    monkeypatch.setattr(session, "step", broken)


def heard(call_id: str) -> Callable[[Any], bool]:
    return lambda input: isinstance(input, LogInput) and getattr(input.recorded.event, "call_id", "") == call_id


def about(kind: type[Any], call_id: str) -> Callable[[Any], bool]:
    return lambda input: isinstance(input, kind) and (input.call_id == call_id or input.call_id.startswith(f"{call_id}."))


CASES: list[tuple[Callable[[Any], bool], str, dict[str, Any], type[Any]]] = [
    (heard("c1"), "echo", {"text": "x"}, ToolFailed),
    (about(Accepted, "c1"), "echo", {"text": "x"}, ToolFailed),
    (about(Returned, "c1"), "echo", {"text": "x"}, ToolFailed),
    (about(Returned, "c1"), "change", {}, ToolInterrupted),
    (about(Scheduled, "c1"), "remind", {"ms": 1}, ToolInterrupted),
    (about(TimerFired, "c1"), "remind", {"ms": 1}, TaskFailed),
]


@pytest.mark.parametrize(("at", "name", "arguments", "end"), CASES)
async def test_a_call_at_which_the_step_raises_ends_once_and_the_next_is_taken(
    executors: Executors,
    caller: Caller,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    at: Callable[[Any], bool],
    name: str,
    arguments: dict[str, Any],
    end: type[Any],
) -> None:
    (tmp_path / "out.go").touch()
    breaks(monkeypatch, at)
    async with executors.running("tests.tools.pack") as service:
        await caller.call(name, **({"file": str(tmp_path / "out")} if name == "change" else arguments))
        ended, _ = await caller.next(end)
        if isinstance(ended, ToolFailed | TaskFailed):
            assert (ended.error.code, "ZeroDivisionError" in ended.error.message) == (Code.INTERNAL, True)
        await caller.call("echo", "c2", text="next")
        await caller.next(ToolCompleted, "c2")
        assert [type(event) for event in caller.told(*ENDS) if _is_of(event, "c1") and not _promises(event)] == [end]
        assert not service.session(caller.sid).state.open
        recorded = [one async for one in caller.log.read_all(caller.sid)]
    assert not refold(recorded).missing


async def test_a_step_of_a_run_at_which_it_raises_ends_the_run_and_the_one_that_waits_begins(
    executors: Executors, caller: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    breaks(monkeypatch, about(Returned, "run1"))
    async with executors.running(PACKS):
        await caller.call("create_macro", "made", name="night", steps=ECHOES, policy="queued")
        await caller.next(ToolCompleted, "made")
        await caller.call("run_macro", "run1", name="night")
        await caller.call("run_macro", "run2", name="night")
        failed, _ = await caller.next(TaskFailed, "run1")
        assert failed.error.code == Code.INTERNAL
        assert [event.run_id for event in caller.told() if isinstance(event, RunFailed)] == ["run1"]
        done, _ = await caller.next(TaskCompleted, "run2")
        assert done.result["text"] == "first and last"


@pytest.mark.parametrize("broken", [(lookup, "_target"), (decisions, "kinds_of")], ids=["the decision", "what it depends on"])
async def test_a_call_that_cannot_be_decided_upon_is_refused(
    executors: Executors, caller: Caller, monkeypatch: pytest.MonkeyPatch, broken: tuple[Any, str]
) -> None:
    module, name = broken
    real = getattr(module, name)

    def raises(*given: Any) -> Any:
        if "echo" in (given[0], getattr(given[-1], "name", "")) and "bad" in str(given[-1]):
            raise KeyError("a fault")
        return real(*given)

    monkeypatch.setattr(module, name, raises)
    async with executors.running("tests.tools.pack"):
        await caller.call("echo", text="bad")
        failed, _ = await caller.next(ToolFailed)
        assert (failed.error.code, failed.error.message) == (
            Code.INTERNAL,
            "Voxbridge failed while it took this (KeyError); the log of the tools service says where.",
        )
        await caller.call("echo", "c2", text="next")
        await caller.next(ToolCompleted, "c2")
        assert len([event for event in caller.told(*ENDS) if _is_of(event, "c1")]) == 1


@pytest.mark.parametrize("default", ["007", "9" * 30, "1e999", "{", '"\\ud800"'])
async def test_a_default_of_a_pipe_that_no_value_can_be_read_from_ends_its_run_or_is_refused(
    executors: Executors, caller: Caller, default: str
) -> None:
    steps = [
        {"id": "one", "call": "echo", "arguments": {"text": "x"}},
        {"call": "echo", "arguments": {"text": "${steps.one.result.no|" + default + "}"}},
    ]
    async with executors.running(PACKS):
        await caller.call("create_macro", "made", name="night", steps=steps)
        made, _ = await caller.next((ToolCompleted, ToolFailed), "made")
        if isinstance(made, ToolCompleted):
            await caller.call("run_macro", "run", name="night")
            ended, _ = await caller.next(TaskFailed, "run")
            assert ended.error.code == Code.INVALID_ARGUMENT
        else:
            assert isinstance(made, ToolFailed)
            assert made.error.code == Code.INVALID_ARGUMENT
        await caller.call("echo", "c2", text="next")
        await caller.next(ToolCompleted, "c2")


def _is_of(event: Any, call_id: str) -> bool:
    return call_id in (getattr(event, "call_id", ""), getattr(event, "task_id", "").removeprefix("task-"))


def _promises(event: Any) -> bool:
    return isinstance(event, ToolCompleted) and event.result.get("status") == "started"
