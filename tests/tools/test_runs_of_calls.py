"""Runs among the calls of a session: their steps are calls by the common path, on the message of the run."""

from __future__ import annotations

from typing import Any

import pytest

from tests.tools.core_driver import MS, Told, called, log_input, raised, returned, scheduled
from tests.tools.runs.world import document
from voxbridge.services.tools.core.inputs import Accepted, TimerFired
from voxbridge.services.tools.core.outputs import CancelEffect, Done, Resolve, SetTimer, StartEffect, StepEnded
from voxbridge.services.tools.core.state import State
from voxbridge.services.tools.core.tasks import open_tasks
from voxbridge.services.tools.runs.document import Document
from voxbridge.services.tools.runs.inputs import Start
from voxbridge.shared import events
from voxbridge.shared.events.gateway import ApprovalClicked, RunAnswerReceived, TaskCancelRequested
from voxbridge.shared.events.voice import RunAnswered, SessionEnded


def runs(macro: Document, call_id: str = "c1", **fields: Any) -> Accepted:
    start = Start(run_id=call_id, document=macro)
    return Accepted(call_id=call_id, mode="run", timeout_ms=5_000, idempotent=False, effect="write", start=start, **fields)


def accepted(call_id: str, **fields: Any) -> Accepted:
    return Accepted(call_id=call_id, **{"mode": "call", "timeout_ms": 5_000, "idempotent": False, "effect": "write", **fields})


def kinds(told: Told) -> list[str]:
    return [events.kind_of(event).name for event in told.events]


def of(told: Told, kind: type[Any]) -> list[Any]:
    return [output for output in told.outputs if isinstance(output, kind)]


def begun(*steps: Any, **fields: Any) -> Told:
    told = Told()
    told.take(called(), runs(document(*steps, **fields)))
    return told


def test_a_run_answers_at_once_and_ends_as_a_task() -> None:
    told = begun("a", {"call": "b", "arguments": {"n": "${prev.n}"}})
    told.take(accepted("c1.step1.1"), returned("c1.step1.1", n=7), accepted("c1.step2.1"), returned("c1.step2.1", spoken="fine"))
    assert kinds(told) == [
        "tool.completed", "task.started",
        "run.started", "run.step_started", "tool.started", "run.step_completed",
        "run.step_started", "tool.started", "run.step_completed", "run.completed", "task.completed",
    ]  # fmt: skip
    assert [(one.call_id, one.arguments) for one in of(told, StartEffect)] == [("c1.step1.1", {}), ("c1.step2.1", {"n": 7})]
    assert of(told, Done) == [Done(1)]
    assert not of(told, StepEnded)
    assert told.state == State(ended=told.state.ended, recent=told.state.recent, runs=told.state.runs)
    assert not told.state.runs.open


def test_a_run_that_takes_no_time_is_answered_with_its_result() -> None:
    told = begun({"say": "hello"})
    assert kinds(told)[-1] == "tool.completed"
    assert told.events[-1].result == {"spoken": "hello"}  # type: ignore[attr-defined]
    assert of(told, Done) == [Done(1)]


def test_a_run_that_is_refused_fails_its_call() -> None:
    told = begun("a")
    told.take(called("c2", 2), runs(document("a"), "c2"))
    assert kinds(told)[-1] == "tool.failed"
    assert of(told, Done) == [Done(2)]


def test_the_same_macro_again_is_a_second_run_where_its_mode_lets_it() -> None:
    told = begun("a", mode="parallel")
    told.take(called("c2", 2), runs(document("a", mode="parallel"), "c2"))
    assert set(told.state.runs.open) == {"c1", "c2"}


def test_a_macro_started_again_before_its_run_ended_is_not_run_a_second_time_however_late_that_is_taken() -> None:
    for mode, started in (("single", 1), ("parallel", 2)):
        told = begun("a", mode=mode)
        told.take(accepted("c1.step1.1"), called())  # the message again: its process is gone
        assert kinds(told)[-1] == "task.failed"
        told.take(called("c2", 2), runs(document("a", mode=mode), "c2"))
        assert kinds(told).count("run.started") == started
        told.take(called("c3", 3, at=told.now + 1), runs(document("a", mode=mode), "c3"))
        assert kinds(told).count("run.started") == started + 1


def test_a_step_that_needs_approval_is_held_until_a_person_decides() -> None:
    for answer, end in (("approved", "run.step_completed"), ("denied", "run.failed")):
        told = begun("a")
        told.take(accepted("c1.step1.1", approval="always"))
        assert kinds(told)[-2:] == ["approval.requested", "run.waiting"]
        assert [task.state for task in open_tasks(told.state)] == ["running"]
        told.take(log_input(ApprovalClicked(approval_id="approval-c1.step1.1", answer=answer, scope="once"), 2))  # type: ignore[arg-type]
        if answer == "approved":
            told.take(returned("c1.step1.1"))
        assert end in kinds(told)
        assert len(of(told, StartEffect)) == (answer == "approved")
        assert of(told, Done)[-1] in (Done(1), Done(2))
        assert Done(1) in of(told, Done)


@pytest.mark.parametrize("approval", ["always", "first"])
def test_a_macro_that_wants_to_be_confirmed_is_approved_like_a_function(approval: Any) -> None:
    told = Told()
    told.take(called(), runs(document("a"), approval=approval))
    assert not told.state.runs.open
    told.take(log_input(ApprovalClicked(approval_id="approval-c1", answer="approved", scope="function"), 2))
    assert list(told.state.runs.open) == ["c1"]
    assert told.events[-1] != told.events[0]
    scopes = [event.scope for event in told.events if events.kind_of(event).name == "approval.ended"]  # type: ignore[attr-defined]
    assert scopes == ["once" if approval == "always" else "arguments"]


@pytest.mark.parametrize(
    ("answer", "end"),
    [
        (RunAnswerReceived(run_id="c1", text="the red one", step="which"), "the red one"),
        (RunAnswered(run_id="c1", text="the red one", step="which"), "the red one"),
        (RunAnswerReceived(run_id="c1", text="the red one"), "the red one"),
        (RunAnswerReceived(run_id="c1", text="the red one", step="other"), ""),
        (RunAnswerReceived(run_id="c2", text="the red one", step="which"), ""),
        (RunAnswered(run_id="c1", text="cancel", step="which", cancelled=True), None),
    ],
    ids=["by a click", "by voice", "to no step", "to another step", "to another run", "called off"],
)
def test_the_answer_to_a_question_is_the_steps_result(answer: events.Event, end: str | None) -> None:
    told = begun({"id": "which", "ask": "Which?"}, {"say": "${steps.which.result.text}"})
    told.take(log_input(answer, 2))
    if end:
        assert told.events[-1].result["spoken"] == end  # type: ignore[attr-defined]
    else:
        assert kinds(told)[-1] == ("run.waiting" if end == "" else "task.cancelled")
    assert Done(2) in of(told, Done), "the answer is dealt with whatever it was"


@pytest.mark.parametrize(
    ("said", "end"), [("Try it again.", "tool.started"), ("go on", "task.completed"), ("stop", "task.failed"), ("hm", "run.waiting")]
)
def test_the_users_words_decide_how_a_run_goes_on(said: str, end: str) -> None:
    told = begun({"id": "a", "call": "a"}, {"say": "well"}, on_error="ask")
    told.take(accepted("c1.a.1"), raised("c1.a.1"), log_input(RunAnswered(run_id="c1", text=said, step="a"), 2))
    if end == "tool.started":
        told.take(accepted("c1.a.2"))
    assert kinds(told)[-1] == end


def test_a_run_that_asks_is_taken_on_by_a_successor() -> None:
    told = begun({"id": "which", "ask": "Which?"}, {"say": "${prev.text}"})
    last = told.take(called())
    assert [one.call_id for one in last if isinstance(one, SetTimer)] == ["c1"]
    told.take(log_input(RunAnswered(run_id="c1", text="that", step="which"), 2))
    assert told.events[-1].result["spoken"] == "that"  # type: ignore[attr-defined]


def test_a_cancelled_run_stops_its_call_first() -> None:
    told = begun("a")
    told.take(accepted("c1.step1.1"))
    told.take(log_input(TaskCancelRequested(task_id="task-c1"), 2))
    assert of(told, CancelEffect) == [CancelEffect("c1.step1.1")]
    assert "task.cancelled" not in kinds(told)
    told.take(raised("c1.step1.1"))
    assert kinds(told)[-3:] == ["run.step_failed", "run.cancelled", "task.cancelled"]
    assert told.events[-3].known is False  # type: ignore[attr-defined]
    assert not told.state.open


def test_the_end_of_the_session_cancels_a_run_and_runs_no_other_step() -> None:
    told = begun("a", "b", on_error="continue")
    told.take(accepted("c1.step1.1", effect="read"))
    told.take(log_input(SessionEnded(reason="client_ended"), 2))
    told.take(raised("c1.step1.1"))
    assert kinds(told)[-2:] == ["run.cancelled", "task.cancelled"]
    assert not told.state.open


def test_a_successor_goes_on_at_the_step_that_was_reached() -> None:
    for idempotent in (True, False):
        told = begun("a", "b")
        told.take(accepted("c1.step1.1", idempotent=idempotent))
        last = told.take(called())  # the message again: its process is gone
        if idempotent:
            assert [one.attempt for one in last if isinstance(one, StartEffect)] == [2]
            assert any(isinstance(one, SetTimer) and one.call_id == "c1" for one in last)
            told.take(returned("c1.step1.1", attempt=2))
            assert "c1.step2.1" in told.state.open
        else:
            assert kinds(told)[-3:] == ["run.step_failed", "run.failed", "task.failed"]
            assert len(of(told, StartEffect)) == 1


def test_a_step_that_was_not_begun_is_looked_up_again_by_a_successor() -> None:
    told = begun("a")
    last = told.take(called())
    assert [one.call_id for one in last if isinstance(one, Resolve)] == ["c1.step1.1"]


def test_an_alarm_that_a_step_sets_outlives_the_run_on_its_message() -> None:
    told = begun({"call": "set_timer", "arguments": {"seconds": 60}})
    told.take(accepted("c1.step1.1", mode="alarm"), scheduled("c1.step1.1"))
    assert kinds(told)[-4:] == ["run.step_completed", "run.completed", "task.completed", "task.started"]
    assert not of(told, Done)
    last = told.take(called())
    assert [one.call_id for one in last if isinstance(one, SetTimer)] == ["c1.step1.1"]
    told.take(TimerFired(call_id="c1.step1.1"), after_ms=60_001)
    assert of(told, Done) == [Done(1)]
    assert not told.state.open


def test_a_step_repeats_what_was_just_done_since_its_macro_says_so() -> None:
    told = begun("a", "a")
    told.take(accepted("c1.step1.1"), returned("c1.step1.1"), accepted("c1.step2.1"))
    assert len(of(told, StartEffect)) == 2


def test_a_task_as_a_step_is_waited_for() -> None:
    told = begun("a")
    told.take(accepted("c1.step1.1", mode="task"))
    assert kinds(told)[-1] == "tool.started"
    told.take(returned("c1.step1.1", n=1))
    assert kinds(told)[-1] == "task.completed"


def test_the_timer_of_a_run_reaches_it() -> None:
    told = begun({"wait": 2}, {"say": "done"})
    told.take(TimerFired(call_id="c1"), after_ms=2_000)
    assert told.events[-1].result["spoken"] == "done"  # type: ignore[attr-defined]


def test_no_step_starts_a_macro_by_a_call() -> None:
    told = begun("run_macro")
    told.take(runs(document("a"), "c1.step1.1"))
    assert kinds(told)[-2:] == ["run.failed", "task.failed"]


def test_a_run_that_waits_for_another_is_a_task_that_can_be_listed_and_cancelled() -> None:
    told = begun("a", mode="queued")
    told.take(called("c2", 2), runs(document("a", mode="queued"), "c2"), after_ms=MS)
    assert [(task.label, task.message) for task in open_tasks(told.state)] == [
        ("deploy", "step step1"),
        ("deploy", "waits for an earlier run"),
    ]
    told.take(log_input(TaskCancelRequested(task_id="task-c2"), 3))
    assert kinds(told)[-2:] == ["run.cancelled", "task.cancelled"]
    assert Done(2) in of(told, Done)
