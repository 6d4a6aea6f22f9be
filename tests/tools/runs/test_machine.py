from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest

from tests.tools.runs.world import BROKEN, World, attempts, document
from voxbridge.services.tools.runs import inputs, machine, outputs
from voxbridge.services.tools.runs.failures import ATTEMPTS_LIMIT
from voxbridge.services.tools.runs.machine import ANSWER_CHARACTERS
from voxbridge.shared.errors import Code
from voxbridge.shared.events import tools as ev
from voxbridge.shared.events.voice import Failure


def test_steps_run_one_after_the_other_with_what_earlier_ones_brought() -> None:
    world = World()
    world.start(
        document(
            {"id": "find", "call": "find", "arguments": {"name": "${input.name}"}},
            {"id": "open", "call": "open", "arguments": {"number": "${steps.find.result.number}"}, "timeout_s": 7},
            {"say": "It is ${prev.state}."},
            inputs={"name": {}},
        ),
        inputs={"name": "Ada"},
    )
    assert world.calls["r1.find.1"] == outputs.StartCall(
        run_id="r1", call_id="r1.find.1", function="find", arguments={"name": "Ada"}, timeout_s=None
    )
    world.returns("r1.find.1", number=12)
    assert (world.calls["r1.open.1"].arguments, world.calls["r1.open.1"].timeout_s) == ({"number": 12}, 7)
    world.returns("r1.open.1", state="open")
    assert world.finished["r1"] == {"spoken": "It is open."}
    assert world.kinds() == ["started"] + ["step_started", "step_completed"] * 3 + ["completed"]
    assert world.told(ev.RunStepCompleted)[-1].spoken == "It is open."


def test_a_run_without_a_word_says_that_it_is_done() -> None:
    world = World()
    world.start(document("a"))
    world.returns("r1.step1.1", count=1)
    assert world.finished["r1"] == {"count": 1, "spoken": "deploy is done."}


def test_a_step_is_skipped_where_its_condition_does_not_hold() -> None:
    world = World()
    world.start(document({"call": "a"}, {"call": "b", "when": "${prev.count} > 3"}, {"say": "ok"}))
    world.returns("r1.step1.1", count=3)
    assert world.finished["r1"] == {"spoken": "ok"}
    assert [event.step for event in world.told(ev.RunStepSkipped)] == ["step2"]


def test_a_run_stops_where_it_is_told_to() -> None:
    world = World()
    world.start(document({"stop": {"reason": "enough", "result": {"n": 1}}, "when": "true"}, "a"))
    assert world.finished["r1"] == {"n": 1, "spoken": "deploy is done."}
    world.start(document({"stop": {"reason": "no ${input.x}", "error": True}}, "a", inputs={"x": {"default": "disk"}}), "r2")
    assert world.finished["r2"].message == "no disk"
    assert not world.calls


def test_a_wait_takes_its_time() -> None:
    world = World()
    world.start(document({"wait": 5}, "a"))
    world.passes(4.9)
    assert not world.calls
    world.passes(0.2)
    assert list(world.calls) == ["r1.step2.1"]


def test_a_question_is_asked_and_its_answer_goes_on() -> None:
    world = World()
    world.start(
        document({"id": "which", "ask": "Which ${input.kind}?"}, {"say": "${steps.which.result.text}"}, inputs={"kind": {"default": "one"}})
    )
    (waiting,) = world.told(ev.RunWaiting)
    assert (waiting.reason, waiting.step, waiting.question) == ("ask", "which", "Which one?")
    world.take(inputs.Answered(run_id="r1", text="the red one"))
    assert world.finished["r1"] == {"spoken": "the red one"}


def test_an_answer_is_a_text_of_the_step_and_cut_at_its_bound() -> None:
    world = World()
    world.start(document({"id": "which", "ask": "Which?"}, {"call": "a", "arguments": {"x": "${steps.which.result.text}"}}))
    world.take(inputs.Answered(run_id="r1", text="x" * (ANSWER_CHARACTERS + 1)))
    assert world.calls["r1.step2.1"].arguments == {"x": "x" * ANSWER_CHARACTERS}


def test_the_time_that_a_person_takes_to_answer_is_not_the_runs() -> None:
    world = World()
    world.start(document({"ask": "Which?"}, "a", timeout_s=10))
    world.passes(120)
    world.take(inputs.Answered(run_id="r1", text="that one"))
    world.passes(9)
    assert not world.finished
    world.passes(1)
    assert world.stopped == {"r1.step2.1"}


def test_a_question_waits_five_minutes_unless_it_says_otherwise() -> None:
    world = World()
    world.start(document({"ask": "Which?"}))
    world.passes(299)
    assert not world.finished
    world.passes(1)
    assert world.finished["r1"].message == 'Nobody answered "Which?" within 300 s. Run deploy again when you can answer.'


def test_a_question_that_nobody_answers_fails_the_step() -> None:
    world = World()
    world.start(document({"ask": "Which?", "timeout_s": 10, "on_error": "continue"}, {"say": "none then"}))
    world.passes(9.9)
    assert not world.finished
    world.passes(0.2)
    assert world.told(ev.RunStepFailed)[0].error.code == Code.TIMED_OUT
    assert world.finished["r1"] == {"spoken": "none then"}


@pytest.mark.parametrize(
    ("confirm", "approved", "unsure", "asked"),
    [
        ("never", False, False, False),
        ("never", True, True, True),
        ("first", False, False, True),
        ("first", True, False, False),
        ("always", True, False, True),
    ],
)
def test_a_run_is_confirmed_as_its_document_says(confirm: str, approved: bool, unsure: bool, asked: bool) -> None:
    world = World()
    world.start(document("a", confirm=confirm), approved=approved, unsure=unsure)
    assert bool(world.calls) is not asked
    if asked:
        world.take(inputs.Confirmed(run_id="r1", yes=True))
        assert list(world.calls) == ["r1.step1.1"]


@pytest.mark.parametrize("refused", [True, False])
def test_a_run_that_is_not_confirmed_never_begins(refused: bool) -> None:
    world = World()
    world.start(document("a", confirm="always"))
    if refused:
        world.take(inputs.Confirmed(run_id="r1", yes=False))
    else:
        world.passes(121)
    assert world.kinds() == ["waiting", "cancelled"]
    assert world.finished == {"r1": None}


def test_a_call_that_waits_for_approval_is_told_once() -> None:
    world = World()
    world.start(document("a"))
    for _ in range(2):
        world.take(inputs.Held(run_id="r1", call_id="r1.step1.1", question="Shall I?"))
    assert [event.reason for event in world.told(ev.RunWaiting)] == ["approval"]
    world.returns("r1.step1.1")
    assert "r1" in world.finished


# Attempts, and the end of a run of [a: fails, b: returns], by policy and by whether it is known how far the call came.
TABLE: list[tuple[Any, bool, list[str], str]] = [
    ("stop", True, ["a.1"], "failed"),
    ("stop", False, ["a.1"], "failed"),
    ("continue", True, ["a.1", "b.1"], "completed"),
    ("continue", False, ["a.1", "b.1"], "completed"),
    ({"retry": {"n": 2, "backoff_s": 0}}, True, ["a.1", "a.2", "a.3"], "failed"),
    ({"retry": {"n": 2, "backoff_s": 3}}, True, ["a.1", "a.2", "a.3"], "failed"),
    ({"retry": {"n": 1, "backoff_s": 0, "then": "continue"}}, True, ["a.1", "a.2", "b.1"], "completed"),
    ({"retry": {"n": 1, "backoff_s": 0, "then": "ask"}}, True, ["a.1", "a.2"], "failed"),
    ({"retry": {"n": 2, "backoff_s": 0}}, False, ["a.1"], "failed"),
    ({"retry": {"n": 2, "backoff_s": 0, "then": "continue"}}, False, ["a.1", "b.1"], "completed"),
    ({"fallback": {"say": "sorry"}}, True, ["a.1", "a.2", "b.1"], "completed"),
    ({"fallback": {"call": "other"}}, True, ["a.1", "a.2"], "failed"),
    ({"fallback": {"say": "sorry"}}, False, ["a.1"], "failed"),
    ("ask", True, ["a.1"], "failed"),
    ("ask", False, ["a.1"], "failed"),
]


@pytest.mark.parametrize("own", [True, False], ids=["of the step", "of the document"])
@pytest.mark.parametrize(("policy", "known", "made", "end"), TABLE)
def test_a_failed_step_does_what_its_policy_says(policy: Any, known: bool, made: list[str], end: str, own: bool) -> None:
    world = World()
    step: dict[str, Any] = {"id": "a", "call": "a"}
    other: dict[str, Any] = {"id": "b", "call": "b", "on_error": "stop"}
    world.start(document({**step, "on_error": policy}, other) if own else document(step, other, on_error=policy))
    for _ in range(400):
        if "r1" in world.finished:
            break
        for call_id in list(world.calls):
            if ".a." in call_id:
                world.fails(call_id, known=known)
            else:
                world.returns(call_id)
        world.passes(1)
    assert [f"{step}.{attempt}" for _, step, attempt in attempts(world)] == made
    assert world.traces["r1"].state == end
    assert next(event.known for event in world.told(ev.RunStepFailed)) is known


def test_pauses_between_attempts_double_up_to_a_minute() -> None:
    world = World()
    world.start(document({"call": "a", "on_error": {"retry": {"n": 5, "backoff_s": 10}}}))
    began = []
    for _ in range(400):
        for call_id in list(world.calls):
            began.append(world.now)
            world.fails(call_id)
        world.passes(1)
    assert [(later - earlier) // 1_000_000 for earlier, later in pairwise(began)] == [10, 20, 40, 60, 60]


@pytest.mark.parametrize("code", [Code.INVALID_ARGUMENT, Code.NOT_FOUND, Code.PERMISSION_DENIED, Code.TOO_LARGE, Code.CANCELLED])
def test_an_error_that_would_come_again_is_not_tried_again(code: Code) -> None:
    world = World()
    world.start(document("a", on_error="retry 3"))
    world.fails("r1.step1.1", Failure(code=code, message="no"))
    assert world.finished["r1"].code == code


@pytest.mark.parametrize(("choice", "end"), [("again", "calls"), ("go_on", "completed"), ("stop", "failed")])
def test_the_user_decides_how_a_run_goes_on(choice: Any, end: str) -> None:
    world = World()
    world.start(document({"id": "a", "call": "a"}, {"say": '${steps.a.error.message default: "fine"}'}, on_error="ask"))
    world.fails("r1.a.1")
    assert "go on without it" in world.told(ev.RunWaiting)[0].question
    world.take(inputs.Decided(run_id="r1", choice=choice))
    if end == "calls":
        assert list(world.calls) == ["r1.a.2"]
        world.returns("r1.a.2")
        assert world.finished["r1"] == {"spoken": "fine"}
    else:
        assert world.traces["r1"].state == end


def test_a_step_has_a_bound_of_attempts_by_the_users_word_too() -> None:
    world = World()
    world.start(document({"id": "a", "call": "a"}, on_error="ask"))
    for number in range(1, ATTEMPTS_LIMIT + 1):
        world.fails(f"r1.a.{number}")
        world.take(inputs.Decided(run_id="r1", choice="again"))
    assert world.traces["r1"].state == "failed"
    assert len(attempts(world)) == ATTEMPTS_LIMIT


def test_a_missing_value_fails_its_step_by_its_policy() -> None:
    world = World()
    world.start(document({"id": "a", "call": "a", "arguments": {"x": "${prev.no}"}, "on_error": "continue"}, {"say": "${steps.a.state}"}))
    assert world.finished["r1"] == {"spoken": "failed"}
    assert not world.started


def test_a_condition_that_cannot_be_judged_runs_nothing_however_often_it_is_tried() -> None:
    world = World()
    world.start(document({"call": "a", "when": "${prev.no} == 1"}, on_error="ask"))
    world.take(inputs.Decided(run_id="r1", choice="again"))
    assert not world.started
    assert [event.error.code for event in world.told(ev.RunStepFailed)] == [Code.INVALID_ARGUMENT] * 2


def test_the_time_of_a_run_is_bounded_and_its_call_stopped_first() -> None:
    world = World()
    world.start(document("a", timeout_s=30))
    world.passes(30)
    assert world.stopped == {"r1.step1.1"}
    assert not world.finished
    world.returns("r1.step1.1")
    assert world.finished["r1"].code == Code.TIMED_OUT
    assert world.kinds() == ["started", "step_started", "step_completed", "failed"]


def test_a_call_that_does_not_stop_leaves_its_outcome_unknown() -> None:
    world = World()
    world.start(document("a"))
    world.take(inputs.Cancel(run_id="r1", reason="the user said so"))
    world.passes(9.9)
    assert not world.finished
    world.passes(0.2)
    assert [event.known for event in world.told(ev.RunStepFailed)] == [False]
    assert world.told(ev.RunCancelled)[0].reason == "the user said so"
    world.returns("r1.step1.1")
    assert world.kinds()[-1] == "cancelled"


def test_a_macro_runs_another_and_takes_its_result() -> None:
    inner = document({"id": "b", "call": "b", "arguments": {"x": "${input.x}"}}, name="inner", inputs={"x": {"type": "integer"}})
    world = World()
    world.start(document({"id": "o", "run": "inner", "inputs": {"x": "5"}}, {"say": "${prev.y}"}), macros={"inner": inner})
    assert world.calls["r1.o.1.b.1"].arguments == {"x": 5}
    world.returns("r1.o.1.b.1", y="done")
    assert world.finished["r1"] == {"spoken": "done"}


def test_a_macro_that_fails_fails_the_step_that_runs_it_by_that_steps_policy() -> None:
    inner = document("b", name="inner")
    world = World()
    world.start(document({"id": "o", "run": "inner", "on_error": {"retry": {"n": 1, "backoff_s": 0}}}), macros={"inner": inner})
    world.fails("r1.o.1.step1.1")
    world.fails("r1.o.2.step1.1")
    assert world.finished["r1"] == BROKEN
    assert world.kinds()[-4:] == ["step_started", "step_failed", "step_failed", "failed"]


def test_what_is_not_known_within_a_macro_is_not_repeated_by_the_one_that_runs_it() -> None:
    inner = document("b", name="inner")
    world = World()
    world.start(document({"id": "o", "run": "inner"}, on_error="retry 3"), macros={"inner": inner})
    world.fails("r1.o.1.step1.1", known=False)
    assert world.traces["r1"].state == "failed"
    assert sum(world.started.values()) == 1


def test_a_macro_that_is_gone_or_too_deep_fails_its_step() -> None:
    world = World()
    world.start(document({"run": "gone"}))
    assert world.finished["r1"].code == Code.NOT_FOUND
    endless = document({"run": "deploy"})
    world.start(endless, "r2", macros={"deploy": endless})
    assert world.finished["r2"].code == Code.TOO_LARGE


def test_a_run_has_a_bound_of_steps() -> None:
    inner = document(*[{"say": "x"}] * 50, name="inner")
    world = World()
    world.start(document(*[{"run": "inner"}] * 50), macros={"inner": inner})
    assert world.finished["r1"].code == Code.TOO_LARGE
    assert len(attempts(world)) == machine.STEPS_OF_RUN


def test_a_run_has_a_bound_of_results() -> None:
    world = World()
    world.start(document(*["a"] * 20))
    for number in range(1, 20):
        if "r1" in world.finished:
            break
        world.returns(f"r1.step{number}.1", text="x" * 64_000)
    assert world.finished["r1"].code == Code.TOO_LARGE
    assert len(attempts(world)) == machine.RESULTS_BYTES // 64_000 + 1


def test_an_answer_that_nobody_waits_for_changes_nothing() -> None:
    world = World()
    world.start(document("a", "b"))
    before = world.state
    strays: list[inputs.Input] = [
        inputs.Returned(run_id="r1", call_id="r1.step1.2", result={}),
        inputs.Returned(run_id="r1", call_id="r1.step2.1", result={}),
        inputs.Failed(run_id="r1", call_id="other", error=BROKEN),
        inputs.Held(run_id="r1", call_id="other", question="?"),
        inputs.Confirmed(run_id="r1", yes=False),
        inputs.Answered(run_id="r1", text="yes"),
        inputs.Decided(run_id="r1", choice="stop"),
        inputs.Stepped(run_id="r1", yes=False),
        inputs.Cancel(run_id="r2", reason="?"),
        inputs.TimerFired(run_id="r2"),
    ]
    for stray in strays:
        assert world.take(stray) == []
    assert world.state == before
    world.take(inputs.TimerFired(run_id="r1"))
    assert world.state == before


def test_a_process_that_takes_a_run_on_asks_for_the_same_call_again() -> None:
    world = World()
    start = inputs.Start(run_id="r1", document=document("a"))
    world.take(start)
    begun = world.calls["r1.step1.1"]
    assert begun in world.take(start)
    world.take(inputs.Cancel(run_id="r1", reason="x"))
    assert outputs.CancelCall("r1", "r1.step1.1") in world.take(start)
