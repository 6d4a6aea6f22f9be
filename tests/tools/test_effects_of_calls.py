"""Barge-in, repetition, limits and the end of a call that may have changed something, by tables over the step."""

from __future__ import annotations

from typing import Any

import pytest

from tests.tools.core_driver import BROKEN, T0, Told, accepted, appended, called, cancelled, log_input, raised, returned, scheduled
from voxbridge.services.tools.core.calls import RECENT_KEPT, TASKS_LIMIT
from voxbridge.services.tools.core.duplicates import ANEW, REPEAT_US
from voxbridge.services.tools.core.inputs import Accepted, Mode, Raised, Returned, Target, TaskRefused, TimerFired
from voxbridge.services.tools.core.outputs import CancelEffect, StartEffect
from voxbridge.services.tools.core.state import Joined
from voxbridge.services.tools.core.tasks import open_tasks
from voxbridge.shared.agents.functions import Effect
from voxbridge.shared.errors import Code
from voxbridge.shared.events.gateway import TaskCancelRequested, ToolRequested
from voxbridge.shared.events.tools import (
    TaskCancelled,
    TaskCompleted,
    TaskFailed,
    TaskInterrupted,
    TaskStarted,
    ToolCompleted,
    ToolFailed,
    ToolInterrupted,
    ToolJoined,
)
from voxbridge.shared.events.voice import Failure, SessionEnded
from voxbridge.shared.step.journal import LogInput

STOPPED = Failure(code=Code.CANCELLED, message="fn was stopped.")


@pytest.mark.parametrize("reason", ["barge_in", "client", "text", "handoff", "provider", "failure"])
@pytest.mark.parametrize("effect", ["write", "destructive"])
def test_what_may_change_something_goes_on_as_a_task_when_nobody_waits_for_it(effect: Effect, reason: str) -> None:
    told = Told()
    told.take(called(), accepted(effect=effect))
    outputs = told.take(cancelled(reason=reason))
    assert appended(outputs) == [TaskStarted(task_id="task-c1", function="fn", call_id="c1")]
    assert CancelEffect("c1") not in outputs
    assert appended(told.take(returned(x=1))) == [TaskCompleted(task_id="task-c1", function="fn", result={"x": 1})]


@pytest.mark.parametrize("mode", ["call", "task"])
def test_a_barge_in_that_is_heard_twice_stops_nothing_that_may_change_something(mode: Any) -> None:
    told = Told()
    told.take(called(), accepted(mode=mode, effect="write"))
    for _ in range(2):  # live, and from the stream
        assert CancelEffect("c1") not in told.take(cancelled())
    assert [type(event) for event in appended(told.take(returned(x=1)))] == [TaskCompleted]


def test_what_only_reads_is_stopped_by_a_barge_in() -> None:
    told = Told()
    told.take(called(), accepted())
    assert CancelEffect("c1") in told.take(cancelled())


@pytest.mark.parametrize(("effect", "end"), [("read", ToolFailed), ("write", ToolInterrupted)])
def test_what_was_being_stopped_when_its_process_died_is_cancelled_if_it_only_reads(effect: Effect, end: type) -> None:
    told = Told()
    told.take(called(), accepted(effect=effect), cancelled(reason="timed_out"))
    (event,) = appended(told.take(called()))
    assert type(event) is end
    assert not isinstance(event, ToolFailed) or event.error.code == Code.CANCELLED


def test_a_call_that_did_not_begin_is_cancelled_whatever_its_effect() -> None:
    told = Told()
    (event,) = appended(told.take(called(), cancelled()))
    assert isinstance(event, ToolFailed)
    assert event.error.code == Code.CANCELLED


def test_a_detached_call_says_how_it_ended() -> None:
    for end, event in (
        (raised(), TaskFailed(task_id="task-c1", function="fn", error=BROKEN)),
        (called(), TaskInterrupted(task_id="task-c1", function="fn")),
        (TimerFired(call_id="c1"), TaskInterrupted(task_id="task-c1", function="fn")),
    ):
        told = Told()
        told.take(called(), accepted(effect="write"), cancelled())
        assert appended(told.take(end, after_ms=5_000)) == [event]


def test_a_second_barge_in_leaves_a_detached_call_alone_until_the_user_cancels_it() -> None:
    told = Told()
    told.take(called(), accepted(effect="write"), cancelled())
    assert CancelEffect("c1") in told.take(log_input(TaskCancelRequested(task_id="task-c1"), 9))
    assert appended(told.take(Raised(call_id="c1", attempt=1, error=STOPPED))) == [
        TaskCancelled(task_id="task-c1", function="fn", reason="the user cancelled it")
    ]


@pytest.mark.parametrize(("effect", "end"), [("read", ToolFailed), ("write", ToolInterrupted), ("destructive", ToolInterrupted)])
def test_a_time_out_is_a_failure_only_where_nothing_can_have_happened(effect: Effect, end: type) -> None:
    told = Told()
    told.take(called(), accepted(effect=effect))
    outputs = told.take(TimerFired(call_id="c1"), after_ms=5_000)
    assert outputs[0] == CancelEffect("c1")
    assert [type(event) for event in appended(outputs)] == [end]


def test_a_write_that_was_stopped_half_way_is_not_called_failed() -> None:
    told = Told()
    told.take(called(), accepted(effect="write"), cancelled(reason="timed_out"))
    assert appended(told.take(Raised(call_id="c1", attempt=1, error=STOPPED))) == [ToolInterrupted(call_id="c1", name="fn")]


def test_the_same_write_under_a_new_id_joins_the_open_one_and_ends_with_it() -> None:
    told = Told()
    told.take(called(), accepted(effect="write"), called("c2", seq=2))
    outputs = told.take(accepted("c2", effect="write"))
    assert outputs == [outputs[0]]
    assert appended(outputs) == [ToolJoined(call_id="c2", name="fn", first="c1")]
    assert told.state.open["c2"].phase == Joined("c1")
    events = appended(told.take(returned(x=1), after_ms=4))
    assert events == [
        ToolCompleted(call_id="c1", name="fn", result={"x": 1}, ms=4),
        ToolCompleted(call_id="c2", name="fn", result={"x": 1, "repeated": True}, ms=0),
    ]
    assert told.state.open == {}


@pytest.mark.parametrize(("end", "kind"), [(raised(), ToolFailed), (called(), ToolInterrupted)])
def test_a_joined_call_fails_with_the_first(end: object, kind: type) -> None:
    told = Told()
    told.take(called(), accepted(effect="write"), called("c2", seq=2), accepted("c2", effect="write"))
    assert [type(event) for event in appended(told.take(end))] == [kind, kind]
    assert told.state.open == {}


def test_a_joined_call_ends_even_if_the_first_is_cancelled_as_a_task() -> None:
    told = Told()
    told.take(called(), accepted(effect="write"), called("c2", seq=2), accepted("c2", effect="write"), cancelled())
    told.take(log_input(TaskCancelRequested(task_id="task-c1"), 9))
    kinds = [type(event) for event in appended(told.take(Raised(call_id="c1", attempt=1, error=STOPPED)))]
    assert kinds == [TaskCancelled, ToolFailed]
    assert told.state.open == {}


@pytest.mark.parametrize(("after_us", "runs"), [(REPEAT_US, False), (REPEAT_US + 1, True)])
def test_a_write_repeated_within_ten_seconds_gets_the_first_result(after_us: int, runs: bool) -> None:
    told = Told()
    told.take(called(), accepted(effect="write"), returned(x=1))
    told.now += after_us
    outputs = told.take(called("c2", seq=2, at=told.now), accepted("c2", effect="write"))
    assert any(isinstance(output, StartEffect) for output in outputs) is runs
    if not runs:
        assert appended(outputs) == [
            ToolJoined(call_id="c2", name="fn", first="c1"),
            ToolCompleted(call_id="c2", name="fn", result={"x": 1, "repeated": True}, ms=0),
        ]


@pytest.mark.parametrize(("made_us", "runs"), [(0, False), (1, True)])
@pytest.mark.parametrize("mode", ["call", "task"])
def test_a_write_made_again_before_an_unknown_end_ends_like_it_and_one_made_after_it_runs(mode: Any, made_us: int, runs: bool) -> None:
    told = Told()
    told.take(called(), accepted(mode=mode, effect="write"))
    told.take(called(), after_ms=2_000)  # the message again: its process is gone
    outputs = told.take(called("c2", seq=2, at=told.now + made_us), accepted("c2", mode=mode, effect="write"), after_ms=5)
    assert any(isinstance(output, StartEffect) for output in outputs) is runs
    if not runs:
        assert appended(outputs) == [ToolJoined(call_id="c2", name="fn", first="c1"), ToolInterrupted(call_id="c2", name="fn")]


def test_a_result_is_that_of_a_repetition_made_before_it_however_late_that_is_taken() -> None:
    told = Told()
    told.take(called(), accepted(effect="write"), returned(x=1))
    told.take(called("c2", seq=2), accepted("c2", effect="write"), after_ms=REPEAT_US // 1_000 + 1)
    assert told.events[-1] == ToolCompleted(call_id="c2", name="fn", result={"x": 1, "repeated": True}, ms=0)


@pytest.mark.parametrize("taken_after_ms", [0, 60_000])
def test_a_repetition_counts_by_when_it_was_made_however_late_it_is_taken(taken_after_ms: int) -> None:
    for made_after_us, runs in ((REPEAT_US, False), (REPEAT_US + 1, True)):
        for ends in (returned(x=1), scheduled(after_ms=3_600_000)):
            told = Told()
            mode: Mode = "call" if isinstance(ends, Returned) else "alarm"
            told.take(called(), accepted(mode=mode, effect="write"), ends)
            told.now += made_after_us + taken_after_ms * 1_000
            outputs = told.take(called("c2", seq=2, at=T0 + made_after_us), accepted("c2", mode, effect="write"))
            assert any(isinstance(output, StartEffect) for output in outputs) is runs


@pytest.mark.parametrize("first_ended", [True, False])
def test_a_programs_request_runs_again_under_another_id(first_ended: bool) -> None:
    told = Told()

    def request(call_id: str, seq: int) -> LogInput:
        return log_input(ToolRequested(call_id=call_id, name="fn", arguments={"a": 1}, deadline_ms=0, account="me"), seq)

    told.take(request("c1", 1), accepted(effect="write"))
    if first_ended:
        told.take(returned(x=1))
    outputs = told.take(request("c2", 2), accepted("c2", effect="write"), after_ms=100)
    assert [output.call_id for output in outputs if isinstance(output, StartEffect)] == ["c2"]


@pytest.mark.parametrize("name", sorted(ANEW))
def test_what_takes_something_back_runs_again_when_it_is_asked_for_again(name: str) -> None:
    told = Told()
    for number in (1, 2):
        target = Target(name, {"what": "tea"})
        told.take(called(f"c{number}", seq=number, at=told.now))
        rules = Accepted(call_id=f"c{number}", mode="call", timeout_ms=5_000, idempotent=True, effect="write", target=target)
        assert any(isinstance(output, StartEffect) for output in told.take(rules))
        told.take(returned(f"c{number}"))
        told.now += 1


def test_a_timer_is_set_although_the_user_speaks_before_its_answer_was_heard() -> None:
    for inputs in ((cancelled(), scheduled()), (scheduled(), cancelled())):
        told = Told()
        told.take(called(), accepted(mode="alarm", effect="write"), *inputs)
        kinds = [type(event) for event in told.events]
        assert TaskStarted in kinds
        assert TaskCancelled not in kinds


def test_other_arguments_and_reads_and_failed_writes_run_again() -> None:
    for first, second in (
        ((accepted(effect="write"), returned()), (called("c2", seq=2, a=2), accepted("c2", effect="write"))),
        ((accepted(), returned()), (called("c2", seq=2), accepted("c2"))),
        ((accepted(effect="write"), raised()), (called("c2", seq=2), accepted("c2", effect="write"))),
    ):
        told = Told()
        told.take(called(), *first)
        assert any(isinstance(output, StartEffect) for output in told.take(*second))


def test_a_repeated_task_is_answered_with_the_one_under_way() -> None:
    told = Told()
    told.take(called(), accepted(mode="task", effect="write"), called("c2", seq=2))
    (_, answer) = appended(told.take(accepted("c2", mode="task", effect="write")))
    assert isinstance(answer, ToolCompleted)
    assert (answer.result["task_id"], answer.result["repeated"]) == ("task-c1", True)


def test_a_timer_set_twice_at_once_is_one_and_later_is_two() -> None:
    for after_ms, open_calls in ((9_000, 1), (11_000, 2)):
        told = Told()
        told.take(called(), accepted(mode="alarm", effect="write"), scheduled())
        again = called("c2", seq=2, at=T0 + after_ms * 1_000)
        told.take(again, accepted("c2", mode="alarm", effect="write"), after_ms=after_ms)
        assert len(told.state.open) == open_calls


def test_results_kept_for_repetitions_are_bounded() -> None:
    told = Told()
    for number in range(RECENT_KEPT + 3):
        told.take(called(f"c{number}", seq=number + 1, a=number), accepted(f"c{number}", effect="write"), returned(f"c{number}"))
    assert len(told.state.recent) == RECENT_KEPT


def test_a_session_runs_a_bounded_number_of_tasks() -> None:
    told = Told()
    for number in range(TASKS_LIMIT):
        told.take(called(f"c{number}", seq=number + 1, a=number), accepted(f"c{number}", mode="task"))
    (event,) = appended(told.take(called("more", seq=100), accepted("more", mode="task")))
    assert isinstance(event, ToolFailed)
    assert event.error.code == Code.OVERLOADED
    told.take(called("call", seq=101), accepted("call"))
    assert "call" in told.state.open


def test_run_tool_runs_the_tool_it_names_and_answers_as_itself() -> None:
    told = Told()
    told.take(called())
    target = Target("other", {"b": 2})
    outputs = told.take(Accepted(call_id="c1", mode="call", timeout_ms=5_000, idempotent=False, target=target))
    assert outputs[-1] == StartEffect("c1", 1, "other", {"b": 2}, "me")
    assert appended(told.take(returned(x=1))) == [ToolCompleted(call_id="c1", name="fn", result={"x": 1}, ms=0)]


def test_tasks_are_listed_without_the_callers_own_and_cancelled_by_it() -> None:
    told = Told()
    told.take(called("t", seq=1, a=1), accepted("t", mode="alarm"), scheduled("t"), called("c", seq=2, a=2), accepted("c"))
    (task,) = open_tasks(told.state, but="c")
    assert (task.task_id, task.state, task.label, task.due_at) == ("task-t", "scheduled", "pasta", T0 + 60_000_000)
    refused = TaskRefused(call_id="c", attempt=1, task_id="task-t")
    assert appended(told.take(refused)) == [TaskCancelled(task_id="task-t", function="fn", reason="the user cancelled it")]
    assert told.take(refused) == []


def test_a_function_cannot_cancel_its_own_call() -> None:
    told = Told()
    told.take(called(), accepted(mode="task"))
    assert told.take(TaskRefused(call_id="c1", attempt=1, task_id="task-c1")) == []


def test_the_end_of_the_session_stops_detached_and_joined_calls() -> None:
    told = Told()
    told.take(called(), accepted(effect="write"), called("c2", seq=2), accepted("c2", effect="write"), cancelled())
    outputs = told.take(log_input(SessionEnded(reason="client"), 9))
    assert CancelEffect("c1") in outputs
    told.take(Raised(call_id="c1", attempt=1, error=STOPPED))
    assert told.state.open == {}
