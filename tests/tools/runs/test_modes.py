from __future__ import annotations

from typing import Any

import pytest

from tests.tools.runs.world import World, document
from voxbridge.services.tools.runs import inputs
from voxbridge.services.tools.runs.document import PARALLEL_LIMIT, QUEUED_LIMIT
from voxbridge.services.tools.runs.modes import ENDED_KEPT, RUNS_LIMIT
from voxbridge.shared.errors import Code
from voxbridge.shared.events import tools as ev

POLICIES: list[tuple[Any, str]] = [
    ("stop", "failed"),
    ("continue", "completed"),
    ({"retry": {"n": 1, "backoff_s": 1}}, "failed"),
    ({"fallback": {"say": "sorry"}}, "completed"),
    ("ask", "failed"),
]


@pytest.mark.parametrize(("policy", "end"), POLICIES, ids=["stop", "continue", "retry", "fallback", "ask"])
@pytest.mark.parametrize("mode", ["single", "restart", "queued", "parallel"])
def test_a_second_start_does_what_the_mode_says_whatever_the_error_policy(mode: Any, policy: Any, end: str) -> None:
    world = World()
    macro = document({"id": "a", "call": "a"}, mode=mode, on_error=policy)
    world.start(macro)
    world.start(macro, "r2")
    for _ in range(700):
        for call_id in list(world.calls):
            world.fails(call_id)
        world.passes(1)
    ends = {run_id: one.state for run_id, one in world.traces.items()}
    assert not world.state.open
    assert not world.state.queue
    match mode:
        case "single":
            assert ends == {"r1": end}
            assert world.refused["r2"].code == Code.CONFLICT
        case "restart":
            assert ends == {"r1": "cancelled", "r2": end}
        case "queued" | "parallel":
            assert ends == {"r1": end, "r2": end}


def test_a_queued_run_begins_when_those_before_it_have_ended() -> None:
    world = World()
    macro = document("a", mode="queued")
    for number in range(1, 4):
        world.start(macro, f"r{number}")
    assert list(world.calls) == ["r1.step1.1"]
    world.returns("r1.step1.1")
    assert list(world.calls) == ["r2.step1.1"]
    world.fails("r2.step1.1")
    assert list(world.calls) == ["r3.step1.1"]


def test_a_queue_has_a_bound() -> None:
    world = World()
    macro = document("a", mode="queued")
    for number in range(QUEUED_LIMIT + 2):
        world.start(macro, f"r{number}")
    assert list(world.refused) == [f"r{QUEUED_LIMIT + 1}"]
    assert world.refused[f"r{QUEUED_LIMIT + 1}"].code == Code.OVERLOADED


def test_a_queued_run_can_be_cancelled_before_it_begins() -> None:
    world = World()
    macro = document("a", mode="queued")
    world.start(macro)
    world.start(macro, "r2")
    world.take(inputs.Cancel(run_id="r2", reason="not needed"))
    assert world.finished == {"r2": None}
    world.returns("r1.step1.1")
    assert not world.calls


def test_parallel_runs_have_a_bound() -> None:
    world = World()
    macro = document("a", mode="parallel", limit=2)
    for number in range(3):
        world.start(macro, f"r{number}")
    assert len(world.calls) == 2
    assert world.refused["r2"].code == Code.OVERLOADED


def test_a_restarted_run_begins_when_the_call_of_the_one_before_has_ended() -> None:
    world = World()
    macro = document("a", mode="restart")
    world.start(macro)
    world.start(macro, "r2")
    assert world.stopped == {"r1.step1.1"}
    assert list(world.calls) == ["r1.step1.1"]
    world.start(macro, "r3")
    assert world.finished == {"r2": None}
    world.returns("r1.step1.1")
    assert list(world.calls) == ["r3.step1.1"]


def test_all_runs_together_have_a_bound() -> None:
    world = World()
    for number in range(RUNS_LIMIT + 1):
        world.start(document("a", name=f"m{number}", mode="parallel", limit=PARALLEL_LIMIT), f"r{number}")
    assert list(world.refused) == [f"r{RUNS_LIMIT}"]


def test_a_macro_and_a_workflow_of_one_name_are_two() -> None:
    world = World()
    world.start(document("a"))
    world.start(document("a"), "r2", kind="workflow")
    assert len(world.calls) == 2


def test_a_start_that_comes_again_starts_nothing() -> None:
    world = World()
    world.start(document("a"))
    world.start(document("a"))
    assert len(world.told(ev.RunStarted)) == 1
    world.returns("r1.step1.1")
    assert world.start(document("a")) == []
    for number in range(ENDED_KEPT - 1):
        world.start(document({"say": "x"}), f"x{number}")
    assert world.start(document("a")) == []
    assert len(world.state.ended) == ENDED_KEPT


@pytest.mark.parametrize(
    ("given", "field"),
    [
        ({}, "n"),
        ({"n": "many"}, "n"),
        ({"n": 1.5}, "n"),
        ({"n": True}, "n"),
        ({"n": 1e300}, "n"),
        ({"n": float("inf")}, "n"),
        ({"n": "1" * 30}, "n"),
        ({"n": 1, "x": float("nan")}, "x"),
        ({"n": 1, "x": "-Infinity"}, "x"),
        ({"n": 1, "m": 2}, "m"),
        ({"n": 1, "s": "x" * 20_000}, "inputs"),
    ],
)
def test_a_start_whose_inputs_do_not_fit_is_refused(given: dict[str, Any], field: str) -> None:
    world = World()
    world.start(document("a", inputs={"n": {"type": "integer"}, "s": {"default": ""}, "x": {"type": "number", "default": 1}}), inputs=given)
    assert world.refused["r1"].code in (Code.INVALID_ARGUMENT, Code.TOO_LARGE)
    assert field in world.refused["r1"].message
    assert not world.events


def test_words_become_values_of_the_inputs_type() -> None:
    world = World()
    kinds = {"n": {"type": "integer"}, "x": {"type": "number"}, "b": {"type": "boolean"}, "s": {}}
    arguments = {name: f"${{input.{name}}}" for name in kinds}
    world.start(document({"call": "a", "arguments": arguments}, inputs=kinds), inputs={"n": "12", "x": " 1.5", "b": "Yes", "s": "12"})
    assert world.calls["r1.step1.1"].arguments == {"n": 12, "x": 1.5, "b": True, "s": "12"}
