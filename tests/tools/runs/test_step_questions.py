"""Runs that go step by step: each step is read out and waits for a yes."""

from __future__ import annotations

import pytest

from tests.tools.runs.world import World, document
from voxbridge.services.tools.runs import inputs
from voxbridge.services.tools.runs.step_questions import HINT, STEP_US
from voxbridge.shared.events import tools as ev


def answers(world: World, *, yes: bool) -> None:
    world.take(inputs.Stepped(run_id="r1", yes=yes))


def asked(world: World) -> list[str]:
    return [event.question.removesuffix(f" Shall I? {HINT}") for event in world.told(ev.RunWaiting) if event.reason == "step"]


def test_each_step_is_read_out_with_what_it_will_take_and_begins_with_a_yes() -> None:
    world = World()
    steps = ({"id": "find", "call": "find_door", "arguments": {"name": "${input.name}"}}, {"say": "It is ${prev.state}."}, {"wait": 3})
    world.start(document(*steps, inputs={"name": {}}), inputs={"name": "Ada"}, stepwise=True)
    assert not world.calls
    assert asked(world) == ["Step 1 of 3: find door with Ada."]
    answers(world, yes=True)
    assert world.calls["r1.find.1"].arguments == {"name": "Ada"}
    answers(world, yes=True)  # said twice
    world.returns("r1.find.1", state="open")
    assert asked(world)[1:] == ['Step 2 of 3: say "It is open.".']
    answers(world, yes=True)
    assert asked(world)[2:] == ["Step 3 of 3: wait 3 seconds."]
    answers(world, yes=True)
    world.passes(3)
    assert world.finished["r1"] == {"spoken": "It is open."}
    assert world.kinds() == ["started"] + ["waiting", "step_started", "step_completed"] * 3 + ["completed"]


def test_a_step_that_is_refused_is_left_out_and_the_next_one_asked_about() -> None:
    world = World()
    world.start(document("a", {"say": "after ${steps.step1.state}"}), stepwise=True)
    answers(world, yes=False)
    assert [event.step for event in world.told(ev.RunStepSkipped)] == ["step1"]
    assert asked(world)[1] == 'Step 2 of 2: say "after skipped".'
    answers(world, yes=True)
    assert world.finished["r1"] == {"spoken": "after skipped"}
    assert not world.started


def test_the_user_stops_a_run_between_two_steps() -> None:
    world = World()
    world.start(document("a", "b"), stepwise=True)
    world.take(inputs.Cancel(run_id="r1", reason="the user said so"))
    assert world.kinds() == ["started", "waiting", "cancelled"]
    assert not world.started


def test_a_step_that_is_skipped_by_its_condition_is_not_asked_about() -> None:
    world = World()
    world.start(document({"call": "a", "when": "1 > 2"}, "b"), stepwise=True)
    assert asked(world) == ["Step 2 of 2: b."]


@pytest.mark.parametrize("policy", [{"retry": {"n": 1, "backoff_s": 0}}, {"fallback": {"call": "other"}}])
def test_what_a_failed_step_leads_to_is_not_asked_about_again(policy: object) -> None:
    world = World()
    world.start(document({"call": "a", "on_error": policy}, "b"), stepwise=True)
    answers(world, yes=True)
    world.fails("r1.step1.1")
    world.returns("r1.step1.2")
    assert asked(world) == ["Step 1 of 2: a.", "Step 2 of 2: b."]


def test_steps_of_a_macro_within_are_asked_about_by_its_name() -> None:
    world = World()
    inner = document("b", name="inner")
    world.start(document({"run": "inner"}, "c"), macros={"inner": inner}, stepwise=True)
    answers(world, yes=True)
    answers(world, yes=True)
    world.returns("r1.step1.1.step1.1")
    answers(world, yes=False)
    assert asked(world) == ["Step 1 of 2: run inner.", "Step 1 of 1 of inner: b.", "Step 2 of 2: c."]
    assert world.kinds()[-1] == "completed"


def test_a_pipe_that_leads_nowhere_fails_its_step_and_not_the_question() -> None:
    world = World()
    world.start(document({"call": "a", "arguments": {"n": "${steps.step2.result.n}"}}, "b"), stepwise=True)
    assert asked(world) == ["Step 1 of 2: a."]
    answers(world, yes=True)
    assert world.kinds()[-2:] == ["step_failed", "failed"]


@pytest.mark.parametrize("late", [0, 1])
def test_a_run_waits_so_long_to_be_told_and_the_time_is_not_its_own(late: int) -> None:
    world = World()
    world.start(document("a", "b", timeout_s=10), stepwise=True)
    world.passes((STEP_US - 1) / 1_000_000 + late)
    answers(world, yes=True)
    assert ("r1.step1.1" in world.calls) is not late
    if late:
        (cancelled,) = world.told(ev.RunCancelled)
        assert cancelled.reason == "nobody said in time whether to go on"
    else:
        world.passes(9)
        assert "r1" in world.state.open, "the time of the answer does not count"


def test_a_process_that_takes_the_run_on_waits_for_the_same_answer() -> None:
    world = World()
    start = inputs.Start(run_id="r1", document=document("a"), stepwise=True)
    world.take(start)
    world.take(start)
    assert len(asked(world)) == 1
    answers(world, yes=True)
    assert list(world.calls) == ["r1.step1.1"]
    assert world.again() == world.state
