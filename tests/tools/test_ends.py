"""Ends of tasks that outlive their session, in the core: which log has them, and which session is to tell them."""

from __future__ import annotations

from typing import Any

import pytest

from tests.tools.core_driver import T0, Told, accepted, called, log_input, raised, returned, scheduled
from voxbridge.services.tools.core.ends import KEPT, RESULT_BYTES
from voxbridge.services.tools.core.inputs import Passed, Recalled, TaskEnd, TimerFired, Unheard, Wanted
from voxbridge.services.tools.core.outputs import Done, StartEffect, Tell
from voxbridge.services.tools.registry import function
from voxbridge.shared.events.gateway import TaskCancelRequested
from voxbridge.shared.events.tools import TaskCancelled, TaskCompleted, TaskFailed, TaskInterrupted, TaskStarted, TasksUnheard
from voxbridge.shared.events.voice import SessionEnded


def over(*told: str, seq: int = 9) -> Any:
    return log_input(SessionEnded(reason="client", told=told), seq)


def tells(outputs: list[Any]) -> list[str]:
    return [output.end.task_id for output in outputs if isinstance(output, Tell)]


def begun(mode: Any = "task", **rules: Any) -> Told:
    told = Told()
    told.take(called(), accepted(mode=mode, outlives=True, **rules))
    return told


def end(number: int = 1, **data: Any) -> TaskEnd:
    task = f"task-c{number}"
    data = {"task_id": task, "function": "fn", "result": {"n": number}, "outlives": True, **data}
    return TaskEnd(task_id=task, function="fn", account="me", kind="task.completed", data=data, ended_at=T0)


def listed(told: Told) -> list[list[str]]:
    return [[one.task_id for one in event.tasks] for event in told.events if isinstance(event, TasksUnheard)]


def test_a_task_that_outlives_goes_on_and_one_that_does_not_is_cancelled() -> None:
    told = begun()
    told.take(called("c2", 2, a=2), accepted("c2", "task"))
    told.take(over())
    assert list(told.state.open) == ["c1", "c2"], "the function of the other one is being stopped"
    told.take(raised("c2"))
    assert [event.task_id for event in told.events if isinstance(event, TaskCancelled)] == ["task-c2"]
    assert list(told.state.open) == ["c1"]


def test_an_end_after_the_session_goes_to_the_account_before_its_message_is_acknowledged() -> None:
    told = begun()
    assert tells(told.take(over())) == []
    last = told.take(returned(pages=3))
    assert [type(output).__name__ for output in last] == ["Append", "Tell", "CancelTimer", "Done"]
    assert last[1].end.data["result"] == {"pages": 3}
    assert last[1].end.account == "me"


@pytest.mark.parametrize(
    ("last", "event"),
    [
        ([raised()], TaskFailed),
        ([called()], TaskInterrupted),
    ],
)
def test_failures_and_interruptions_are_kept_too(last: list[Any], event: type) -> None:
    told = begun()
    told.take(over())
    assert tells(told.take(*last)) == ["task-c1"]
    assert isinstance(told.events[-1], event)


def test_an_alarm_rings_after_its_session() -> None:
    told = begun("alarm", idempotent=True)
    told.take(scheduled(after_ms=1), over())
    assert tells(told.take(TimerFired(call_id="c1"), after_ms=2)) == ["task-c1"]


def test_what_the_session_told_is_not_told_again() -> None:
    told = begun()
    told.take(returned())
    assert tells(told.take(over("task-c1"))) == []
    assert told.state.unheard == {}


def test_what_the_session_had_no_time_to_tell_is_kept() -> None:
    told = begun()
    told.take(returned())
    last = told.take(over())
    assert tells(last) == ["task-c1"]
    assert isinstance(last[-1], Done)


def test_what_is_left_after_a_crash_is_put_into_the_account_when_a_message_comes_again() -> None:
    told = begun()
    told.take(over(), returned())
    assert tells(told.take(called())) == ["task-c1"]
    assert tells(told.take(over())) == ["task-c1"]
    told.take(Passed(task_id="task-c1"))
    assert tells(told.take(called())) == []
    assert sum(isinstance(output, StartEffect) for output in told.outputs) == 1


def test_a_task_that_the_user_cancelled_need_not_be_told() -> None:
    told = begun("alarm", idempotent=True)
    told.take(scheduled(), over())
    assert tells(told.take(log_input(TaskCancelRequested(task_id="task-c1"), 10))) == []


def test_a_large_result_is_kept_as_what_is_to_be_said() -> None:
    told = begun()
    told.take(over())
    last = told.take(returned(text="x" * RESULT_BYTES, spoken="Ready."))
    assert last[1].end.data["result"] == {"spoken": "Ready.", "cut": True}
    assert told.events[-1].result["text"], "the log of its session has all of it"  # type: ignore[attr-defined]


def test_an_account_gives_an_end_to_one_session() -> None:
    account = Told()
    account.take(Unheard(sid="a", end=end()), Unheard(sid="a", end=end()))
    account.take(Wanted(sid="b", tasks=("task-c1", "task-c7")), Wanted(sid="c", tasks=("task-c1",)))
    assert listed(account) == [["task-c1"], []]
    assert account.state.given["task-c1"].sid == "b"


def test_an_end_that_comes_again_from_its_first_session_is_not_told_twice() -> None:
    account = Told()
    account.take(Unheard(sid="a", end=end()), Wanted(sid="b", tasks=("task-c1",)), Unheard(sid="a", end=end()))
    assert listed(account) == [["task-c1"], []]


def test_an_end_that_its_new_session_did_not_tell_comes_back() -> None:
    account = Told()
    account.take(Unheard(sid="a", end=end()), Wanted(sid="b", tasks=("task-c1",)), Unheard(sid="b", end=end()))
    assert listed(account) == [["task-c1"], [], ["task-c1"]]
    account.take(Wanted(sid="c", tasks=("task-c1",)))
    assert account.state.given["task-c1"].sid == "c"


def test_an_account_keeps_so_many_ends_and_forgets_the_oldest() -> None:
    account = Told()
    for number in range(KEPT + 1):
        account.take(Unheard(sid="a", end=end(number)))
    assert len(account.state.unheard) == KEPT
    assert "task-c0" not in account.state.unheard
    assert len(listed(account)[-1]) == KEPT


def test_a_session_tells_an_end_that_it_was_given_once_and_says_when_it_was() -> None:
    session = Told()
    session.take(Recalled(ends=(end(),)), Recalled(ends=(end(),)))
    assert [type(event) for event in session.events] == [TaskStarted, TaskCompleted]
    told = session.events[-1]
    assert isinstance(told, TaskCompleted)
    assert (told.ended_ts, told.outlives, told.result) == (T0, True, {"n": 1})
    assert tells(session.take(over("task-c1"))) == []


def test_a_session_that_ends_untold_gives_back_what_it_was_given() -> None:
    session = Told()
    session.take(Recalled(ends=(end(),)))
    assert tells(session.take(over())) == ["task-c1"]


def test_a_session_that_was_over_when_it_was_given_something_gives_it_back_at_once() -> None:
    session = Told()
    session.take(over())
    assert tells(session.take(Recalled(ends=(end(),)))) == ["task-c1"]
    assert session.events == []


def test_only_a_task_outlives_its_session() -> None:
    with pytest.raises(ValueError, match="only an async function"):
        function(outlives=True)
