"""The step, by tables and by random orders of events."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.tools.core_driver import BROKEN, MS, T0, Told, accepted, appended, called, cancelled, log_input, raised, returned, scheduled
from voxbridge.services.tools.core.calls import ATTEMPTS_LIMIT, ENDED_KEPT
from voxbridge.services.tools.core.inputs import (
    CallBegun,
    Progressed,
    Rejected,
    Stated,
    TimerFired,
)
from voxbridge.services.tools.core.outputs import CancelEffect, CancelTimer, Count, Done, Resolve, SetTimer, StartEffect
from voxbridge.services.tools.core.step import OPEN_LIMIT, WITHDRAWN_KEPT
from voxbridge.shared import events
from voxbridge.shared.events.gateway import TaskCancelRequested
from voxbridge.shared.events.tools import (
    ApprovalEnded,
    ApprovalRequested,
    NoteRemembered,
    TaskCancelled,
    TaskCompleted,
    TaskFailed,
    TaskInterrupted,
    TaskProgressed,
    TaskStarted,
    ToolCompleted,
    ToolFailed,
    ToolInterrupted,
    ToolStarted,
)
from voxbridge.shared.events.voice import ApprovalAnswered, Failure, SessionEnded
from voxbridge.shared.step.fold import Append


def test_a_call_is_looked_up_before_anything_is_said() -> None:
    told = Told()
    assert told.take(called()) == [Resolve("c1", "fn", {"a": 1}, "me")]


def test_the_start_is_recorded_ahead_of_the_effect_with_its_deadline() -> None:
    told = Told()
    told.take(called())
    assert told.take(accepted(), after_ms=3) == [
        Append(ToolStarted(call_id="c1", name="fn", attempt=1)),
        SetTimer("c1", T0 + 5_003 * MS),
        StartEffect("c1", 1, "fn", {"a": 1}, "me"),
    ]


def test_the_callers_deadline_is_kept_when_it_is_the_nearer_one() -> None:
    told = Told()
    told.take(called(deadline_ms=2_000))
    assert SetTimer("c1", T0 + 2_000 * MS) in told.take(accepted(), after_ms=500)


def test_a_call_whose_deadline_passed_before_it_could_begin_never_runs() -> None:
    told = Told()
    told.take(called(deadline_ms=2_000))
    outputs = told.take(accepted(), after_ms=2_000)
    (event,) = appended(outputs)
    assert isinstance(event, ToolFailed)
    assert event.error.code == "TIMED_OUT"
    assert not any(isinstance(output, StartEffect) for output in outputs)


def test_a_result_ends_the_call_once() -> None:
    told = Told()
    told.take(called(), accepted())
    outputs = told.take(returned(x=1), after_ms=12)
    assert outputs == [Append(ToolCompleted(call_id="c1", name="fn", result={"x": 1}, ms=12)), CancelTimer("c1"), Done(1)]
    assert told.take(returned(x=2)) == [Done(1)]


def test_a_rejected_call_fails_without_a_start() -> None:
    told = Told()
    told.take(called())
    outputs = told.take(Rejected(call_id="c1", error=BROKEN))
    assert appended(outputs) == [ToolFailed(call_id="c1", name="fn", error=BROKEN, ms=0)]
    assert outputs[-1] == Done(1)


def test_a_fault_of_the_function_fails_the_call() -> None:
    told = Told()
    told.take(called(), accepted())
    assert appended(told.take(raised(), after_ms=7)) == [ToolFailed(call_id="c1", name="fn", error=BROKEN, ms=7)]


def test_a_call_that_takes_too_long_is_stopped_and_its_late_result_dropped() -> None:
    told = Told()
    told.take(called(), accepted())
    outputs = told.take(TimerFired(call_id="c1"), after_ms=5_000)
    assert outputs[0] == CancelEffect("c1")
    (event,) = appended(outputs)
    assert isinstance(event, ToolFailed)
    assert (event.error.code, event.error.retryable, event.ms) == ("TIMED_OUT", True, 5_000)
    assert appended(told.take(returned(x=1))) == []


def test_a_timer_that_comes_early_is_set_again() -> None:
    told = Told()
    told.take(called(), accepted())
    assert told.take(TimerFired(call_id="c1"), after_ms=4_999) == [SetTimer("c1", T0 + 5_000 * MS)]


def test_a_call_delivered_again_while_it_ran_was_interrupted() -> None:
    told = Told()
    told.take(called(), accepted())
    outputs = told.take(called())
    assert appended(outputs) == [ToolInterrupted(call_id="c1", name="fn")]
    assert outputs[-1] == Done(1)


def test_a_call_delivered_again_before_its_start_is_looked_up_again() -> None:
    told = Told()
    told.take(called())
    assert told.take(called()) == [Resolve("c1", "fn", {"a": 1}, "me")]


def test_an_idempotent_function_is_begun_again_up_to_the_limit() -> None:
    told = Told()
    told.take(called(), accepted(idempotent=True))
    for attempt in range(2, ATTEMPTS_LIMIT + 1):
        assert told.take(called())[-1] == StartEffect("c1", attempt, "fn", {"a": 1}, "me")
    assert appended(told.take(called())) == [ToolInterrupted(call_id="c1", name="fn")]


def test_only_the_attempt_that_runs_may_end_the_call() -> None:
    told = Told()
    told.take(called(), accepted(idempotent=True), called())
    assert told.take(returned(attempt=1)) == []
    assert appended(told.take(returned(attempt=2, x=1)))[0] == ToolCompleted(call_id="c1", name="fn", result={"x": 1}, ms=0)


def test_another_event_for_the_same_call_runs_nothing() -> None:
    told = Told()
    told.take(called(), accepted())
    assert told.take(called(seq=5)) == [Done(5)]
    told.take(returned())
    assert told.take(called(seq=6)) == [Done(6)]


def test_a_cancelled_call_is_stopped_and_says_so() -> None:
    told = Told()
    told.take(called(), accepted())
    assert told.take(cancelled()) == [CancelEffect("c1"), Done(2)]
    (event,) = appended(told.take(raised()))
    assert isinstance(event, ToolFailed)
    assert event.error == Failure(code="CANCELLED", message="Cancelled: barge_in.")


def test_the_result_of_a_cancelled_call_that_had_run_is_recorded() -> None:
    told = Told()
    told.take(called(), accepted(), cancelled())
    assert appended(told.take(returned(x=1))) == [ToolCompleted(call_id="c1", name="fn", result={"x": 1}, ms=0)]


def test_a_cancellation_that_comes_before_its_call_keeps_it_from_running() -> None:
    told = Told()
    assert told.take(cancelled(seq=1)) == [Done(1)]
    outputs = told.take(called(seq=2))
    (event,) = appended(outputs)
    assert isinstance(event, ToolFailed)
    assert event.error.code == "CANCELLED"
    assert told.state.withdrawn == {}


def test_a_call_that_waits_is_cancelled_at_once() -> None:
    told = Told()
    (event,) = appended(told.take(called(), cancelled()))
    assert isinstance(event, ToolFailed)
    assert told.state.open == {}


def test_a_session_has_a_bounded_number_of_open_calls() -> None:
    told = Told()
    for number in range(OPEN_LIMIT):
        told.take(called(f"c{number}", seq=number + 1), accepted(f"c{number}"))
    (event,) = appended(told.take(called("more", seq=100)))
    assert isinstance(event, ToolFailed)
    assert event.error.code == "OVERLOADED"
    told.take(returned("c0"))
    assert told.take(called("next", seq=101)) == [Resolve("next", "fn", {"a": 1}, "me")]


def test_a_task_begins_calls_with_the_rights_of_its_caller_until_the_session_has_as_many_as_it_may() -> None:
    told = Told()
    told.take(called(), CallBegun(call_id="c1", attempt=1, name="other", arguments={}))
    told.take(accepted(mode="task"))
    for number in range(1, OPEN_LIMIT):
        assert told.take(CallBegun(call_id="c1", attempt=1, name="other", arguments={"n": number})) == [
            Resolve(f"c1.{number}", "other", {"n": number}, "me")
        ]
    assert told.take(CallBegun(call_id="c1", attempt=1, name="other", arguments={})) == []
    outputs = told.take(returned(), TimerFired(call_id="none"))
    assert not any(isinstance(output, Done) for output in outputs), "what it began is not over"
    assert told.take(called()) == [Resolve(f"c1.{number}", "other", {"n": number}, "me") for number in range(1, OPEN_LIMIT)]


def test_what_a_session_remembers_is_bounded() -> None:
    told = Told()
    for number in range(ENDED_KEPT + 10):
        told.take(called(f"c{number}", seq=number + 1), Rejected(call_id=f"c{number}", error=BROKEN))
    for number in range(WITHDRAWN_KEPT + 10):
        told.take(cancelled(f"w{number}", seq=5_000 + number))
    assert len(told.state.ended) == ENDED_KEPT
    assert len(told.state.withdrawn) == WITHDRAWN_KEPT
    assert told.take(called(f"c{ENDED_KEPT + 9}", seq=9_000)) == [Done(9_000)]


def test_an_alarm_answers_its_call_and_speaks_up_when_it_is_due() -> None:
    told = Told()
    told.take(called(), accepted(mode="alarm"))
    outputs = told.take(scheduled(), after_ms=5)
    answer = {"task_id": "task-c1", "status": "started", "n": 1, "spoken": "Set."}
    assert outputs == [
        Append(ToolCompleted(call_id="c1", name="fn", result=answer, ms=5, goes_on="task")),
        Append(TaskStarted(task_id="task-c1", function="fn", call_id="c1", due_ts=T0 + 60_000 * MS, label="pasta")),
        Count("me", "c1", listed=True),
        SetTimer("c1", T0 + 60_000 * MS),
    ]
    outputs = told.take(TimerFired(call_id="c1"), after_ms=60_000)
    assert appended(outputs) == [TaskCompleted(task_id="task-c1", function="fn", result={"n": 1, "spoken": "Ready."}, announce="Ready.")]
    assert outputs[-1] == Done(1)


def test_an_alarm_delivered_again_waits_for_what_is_left_of_its_time() -> None:
    told = Told()
    told.take(called(), accepted(mode="alarm"), scheduled())
    listed = Count("me", "c1", forced=True, listed=True)
    assert told.take(called(), after_ms=30_000) == [listed, SetTimer("c1", T0 + 60_000 * MS)]


def test_a_cancelled_alarm_says_so_and_never_speaks() -> None:
    told = Told()
    told.take(called(), accepted(mode="alarm"), scheduled())
    outputs = told.take(cancelled())
    assert appended(outputs) == [TaskCancelled(task_id="task-c1", function="fn", reason="barge_in")]
    assert told.take(TimerFired(call_id="c1"), after_ms=60_000) == [Done(1)]


def test_an_alarm_that_was_cancelled_while_it_was_set_is_cancelled() -> None:
    told = Told()
    told.take(called(), accepted(mode="alarm"), cancelled())
    kinds = [type(event) for event in appended(told.take(scheduled()))]
    assert kinds == [ToolCompleted, TaskStarted, TaskCancelled]


def test_the_end_of_the_session_ends_its_tasks_and_stops_its_calls() -> None:
    told = Told()
    told.take(called(), accepted(mode="alarm"), scheduled(), called("c2", seq=2), accepted("c2"))
    outputs = told.take(log_input(SessionEnded(reason="client"), 9))
    assert appended(outputs) == [TaskCancelled(task_id="task-c1", function="fn", reason="the session ended")]
    assert CancelEffect("c2") in outputs
    assert outputs[-1] == Done(9)


def test_a_task_is_answered_at_once_and_its_result_comes_later() -> None:
    told = Told()
    told.take(called(deadline_ms=1_000))
    outputs = told.take(accepted(mode="task"))
    assert [type(event) for event in appended(outputs)] == [ToolStarted, ToolCompleted, TaskStarted]
    assert SetTimer("c1", T0 + 5_000 * MS) in outputs, "the caller's deadline is for the answer, not for the task"
    assert appended(told.take(Progressed(call_id="c1", attempt=1, done=1.5, message="far"))) == [
        TaskProgressed(task_id="task-c1", function="fn", done=1.0, message="far")
    ]
    assert appended(told.take(returned(pages=3, announce="Ready."))) == [
        TaskCompleted(task_id="task-c1", function="fn", result={"pages": 3, "announce": "Ready."}, announce="Ready.")
    ]


@pytest.mark.parametrize(
    ("inputs", "event"),
    [
        ([raised()], TaskFailed(task_id="task-c1", function="fn", error=BROKEN)),
        ([called()], TaskInterrupted(task_id="task-c1", function="fn")),
        ([cancelled(), raised()], TaskCancelled(task_id="task-c1", function="fn", reason="barge_in")),
        ([cancelled(), returned()], TaskCompleted(task_id="task-c1", function="fn", result={})),
    ],
)
def test_a_task_ends_in_one_way(inputs: list[Any], event: events.Event) -> None:
    told = Told()
    told.take(called(), accepted(mode="task"))
    assert appended(told.take(*inputs)) == [event]


def test_an_idempotent_task_is_answered_only_once() -> None:
    told = Told()
    told.take(called(), accepted(mode="task", idempotent=True))
    assert appended(told.take(called())) == [ToolStarted(call_id="c1", name="fn", attempt=2)]


def test_a_fact_is_stated_while_the_call_runs_and_not_after() -> None:
    note = NoteRemembered(note_id="n", account="me", text="hello")
    stated = Stated(call_id="c1", attempt=1, kind="note.remembered", data=msgspec.to_builtins(note))
    told = Told()
    told.take(called(), accepted())
    assert told.take(stated) == [Append(note)]
    told.take(returned())
    assert appended(told.take(stated)) == []


CALLS = ("a", "b", "c")
INPUTS = st.one_of(
    st.builds(
        lambda id, again: called(id, seq=CALLS.index(id) + 1 + 10 * again, deadline_ms=9_000), st.sampled_from(CALLS), st.integers(0, 2)
    ),
    st.builds(lambda id: cancelled(id, seq=100 + CALLS.index(id)), st.sampled_from(CALLS)),
    st.builds(
        lambda id, mode, idempotent, effect, approval: accepted(id, mode, idempotent=idempotent, effect=effect, approval=approval),
        st.sampled_from(CALLS),
        st.sampled_from(("call", "task", "alarm")),
        st.booleans(),
        st.sampled_from(("read", "write", "destructive")),
        st.sampled_from(("never", "never", "first", "always")),
    ),
    st.builds(
        lambda id, answer: log_input(ApprovalAnswered(approval_id=f"approval-{id}", answer=answer, words=""), 300 + CALLS.index(id)),
        st.sampled_from(CALLS),
        st.sampled_from(("approved", "denied")),
    ),
    st.builds(lambda id: log_input(TaskCancelRequested(task_id=f"task-{id}"), 400 + CALLS.index(id)), st.sampled_from(CALLS)),
    st.builds(lambda id: Rejected(call_id=id, error=BROKEN), st.sampled_from(CALLS)),
    st.builds(returned, st.sampled_from(CALLS), st.integers(1, 3)),
    st.builds(raised, st.sampled_from(CALLS), st.integers(1, 3)),
    st.builds(scheduled, st.sampled_from(CALLS), st.integers(1, 3)),
    st.builds(lambda id: TimerFired(call_id=id), st.sampled_from(CALLS)),
    st.just(log_input(SessionEnded(reason="client"), 200)),
)
ANSWERS = (ToolCompleted, ToolFailed, ToolInterrupted)
TASK_ENDS = (TaskCompleted, TaskFailed, TaskCancelled, TaskInterrupted)


@settings(max_examples=400, deadline=None)
@given(st.lists(st.tuples(INPUTS, st.integers(0, 4_000)), max_size=60))
def test_in_any_order_each_attempt_starts_once_and_each_call_ends_once(happenings: list[tuple[Any, int]]) -> None:
    told = Told()
    for input, after_ms in happenings:
        before = len(told.outputs)
        told.take(input, after_ms=after_ms)
        new = told.outputs[before:]
        for index, output in enumerate(new):
            if isinstance(output, StartEffect):
                assert not _is_asked(told.outputs[: before + index], output.call_id), "not ahead of its approval"
                start = Append(ToolStarted(call_id=output.call_id, name="fn", attempt=output.attempt))
                assert start in new[:index], "recorded before it runs"
    starts = [(event.call_id, event.attempt) for event in told.events if isinstance(event, ToolStarted)]
    assert len(starts) == len(set(starts))
    for call_id in CALLS:
        answers = [event for event in told.events if isinstance(event, ANSWERS) and event.call_id == call_id]
        tasks = [event for event in told.events if isinstance(event, TaskStarted) and event.call_id == call_id]
        ends = [event for event in told.events if isinstance(event, TASK_ENDS) and event.task_id == f"task-{call_id}"]
        assert len(answers) <= 1
        assert len(ends) <= len(tasks) <= 1
        asked = [event for event in told.events if isinstance(event, ApprovalRequested) and event.call_id == call_id]
        dropped = [event for event in told.events if isinstance(event, ApprovalEnded) and event.call_id == call_id]
        over = len(ends) == 1 if tasks else len(dropped) == 1 and dropped[0].outcome != "approved" if asked else len(answers) == 1
        assert len(dropped) <= len(asked) <= 1
        assert (call_id in told.state.ended) == over or (dropped and call_id in told.state.open)
        assert not (call_id in told.state.ended and call_id in told.state.open)


def _is_asked(outputs: list[Any], call_id: str) -> bool:
    """Tell whether a question about the call is open."""
    said = [output.event for output in outputs if isinstance(output, Append)]
    asked = any(isinstance(event, ApprovalRequested) and event.call_id == call_id for event in said)
    return asked and not any(
        isinstance(event, ApprovalEnded) and event.call_id == call_id and event.outcome == "approved" for event in said
    )
