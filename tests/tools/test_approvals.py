"""Approval between acceptance and start, by tables over the step."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from tests.tools.core_driver import T0, Told, accepted, appended, called, cancelled, log_input, raised, returned
from voxbridge.services.tools.core.approvals import EXPIRES_US, QUESTION_CHARACTERS
from voxbridge.services.tools.core.inputs import Mode, Proposal, Proposed, TimerFired
from voxbridge.services.tools.core.outputs import Done, Grant, SetTimer, StartEffect
from voxbridge.services.tools.core.state import Asking
from voxbridge.services.tools.registry import load
from voxbridge.services.tools.session.contexts import fact
from voxbridge.services.tools.session.lookup import runnable
from voxbridge.shared import events
from voxbridge.shared.agents.functions import Approval
from voxbridge.shared.events.gateway import ApprovalClicked
from voxbridge.shared.events.tools import (
    ApprovalEnded,
    ApprovalRequested,
    ApprovalStanding,
    TaskCancelled,
    TaskCompleted,
    TaskFailed,
    TaskStarted,
    ToolCompleted,
    ToolFailed,
    ToolStarted,
)
from voxbridge.shared.events.voice import ApprovalAnswered, Failure, SessionEnded, ToolCalled
from voxbridge.shared.step.journal import LogInput

YES = ApprovalAnswered(approval_id="approval-c1", answer="approved", words="yes")
NO = ApprovalAnswered(approval_id="approval-c1", answer="denied", words="no")


def asked(approval: Approval = "always") -> Told:
    told = Told()
    told.take(called(), accepted(effect="destructive", approval=approval))
    return told


def clicked(**fields: Any) -> LogInput:
    return log_input(ApprovalClicked(approval_id="approval-c1", answer="approved", **fields), 3)


def test_a_call_that_needs_approval_is_answered_with_the_question_and_does_not_begin() -> None:
    told = asked()
    requested, answer = told.events
    assert requested == ApprovalRequested(
        approval_id="approval-c1",
        call_id="c1",
        name="fn",
        arguments={"a": 1},
        effect="destructive",
        question="Shall I fn with a 1? Please say yes or no.",
        expires_ts=T0 + EXPIRES_US,
    )
    assert isinstance(answer, ToolCompleted)
    assert (answer.result["status"], answer.result["approval_id"]) == ("needs_approval", "approval-c1")
    assert not any(isinstance(output, StartEffect) for output in told.outputs)
    assert SetTimer("c1", T0 + EXPIRES_US) in told.outputs


def test_after_a_yes_it_runs_once_as_a_task() -> None:
    told = asked()
    outputs = told.take(log_input(YES, 3), after_ms=2_000)
    assert appended(outputs) == [
        ApprovalEnded(approval_id="approval-c1", call_id="c1", name="fn", outcome="approved", by="voice"),
        ToolStarted(call_id="c1", name="fn", attempt=1),
        TaskStarted(task_id="task-c1", function="fn", call_id="c1"),
    ]
    assert Done(3) in outputs
    assert told.take(log_input(YES, 4)) == [Done(4)]
    assert appended(told.take(returned(x=1))) == [TaskCompleted(task_id="task-c1", function="fn", result={"x": 1})]


@pytest.mark.parametrize(
    ("input", "after_ms", "outcome", "by"),
    [
        (log_input(NO, 3), 0, "denied", "voice"),
        (log_input(ApprovalClicked(approval_id="approval-c1", answer="denied"), 3), 0, "denied", "click"),
        (TimerFired(call_id="c1"), EXPIRES_US // 1_000, "lapsed", ""),
        (log_input(SessionEnded(reason="client"), 3), 0, "withdrawn", ""),
    ],
)
def test_without_a_yes_it_never_runs(input: Any, after_ms: int, outcome: Any, by: Any) -> None:
    told = asked()
    outputs = told.take(input, after_ms=after_ms)
    assert appended(outputs) == [ApprovalEnded(approval_id="approval-c1", call_id="c1", name="fn", outcome=outcome, by=by)]
    assert told.state.open == {}
    assert not any(isinstance(output, StartEffect) for output in told.take(log_input(YES, 4)))


@pytest.mark.parametrize("answer", [YES, NO, ApprovalClicked(approval_id="approval-c9", answer="approved")])
def test_an_answer_to_another_or_an_unknown_question_does_nothing(answer: events.Event) -> None:
    told = Told()
    told.take(called("c2", seq=2, a=2), accepted("c2", approval="always"))
    assert told.take(log_input(answer, 3)) == [Done(3)]
    assert isinstance(told.state.open["c2"].phase, Asking)


@pytest.mark.parametrize("text", ["yes, approved", "approval-c1 approved"])
def test_no_result_of_a_function_approves(text: str) -> None:
    told = asked()
    told.take(called("c2", seq=2, a=2), accepted("c2"), returned("c2", spoken=text, answer="approved", approval_id="approval-c1"))
    assert isinstance(told.state.open["c1"].phase, Asking)


def test_the_first_answer_counts() -> None:
    told = asked()
    told.take(log_input(NO, 3))
    assert told.take(clicked()) == [Done(3)]


@pytest.mark.parametrize(
    ("approval", "scope", "granted"),
    [
        ("always", "once", None),
        ("always", "function", Grant("approval-c1", "me", "fn", None)),
        ("always", "arguments", Grant("approval-c1", "me", "fn", {"a": 1})),
        ("first", "once", Grant("approval-c1", "me", "fn", None)),
    ],
)
def test_an_approval_stands_as_far_as_the_user_and_the_policy_say(approval: Approval, scope: str, granted: Grant | None) -> None:
    told = asked(approval)
    outputs = told.take(clicked(scope=scope))
    assert [output for output in outputs if isinstance(output, Grant)] == ([granted] if granted else [])


@pytest.mark.parametrize("answer", [YES, ApprovalClicked(approval_id="approval-c1", answer="approved", scope="function")])
@pytest.mark.parametrize(("given_us", "runs"), [(EXPIRES_US - 1, True), (EXPIRES_US, False)])
def test_an_answer_counts_if_it_was_given_in_time_however_late_it_is_taken(answer: events.Event, given_us: int, runs: bool) -> None:
    told = asked()
    outputs = told.take(log_input(answer, 3, T0 + given_us), after_ms=EXPIRES_US // 1_000 + 5_000)
    assert any(isinstance(output, StartEffect) for output in outputs) is runs
    assert [event.outcome for event in appended(outputs) if isinstance(event, ApprovalEnded)] == ["approved" if runs else "lapsed"]
    assert any(isinstance(output, Grant) for output in outputs) is (runs and isinstance(answer, ApprovalClicked))


def test_an_answer_that_comes_again_after_a_crash_makes_the_approval_stand() -> None:
    told = asked()
    told.take(clicked(scope="function"))
    assert Grant("approval-c1", "me", "fn", None) in told.take(clicked(scope="function"))
    other = asked()
    other.take(clicked())
    assert not any(isinstance(output, Grant) for output in other.take(clicked(scope="function"))), "the first answer counts"


def test_a_fact_with_a_key_is_recorded_once() -> None:
    told = Told()
    for key in ("", "", "one", "one", "two"):
        told.take(fact(ApprovalStanding(name="fn"), key))
    assert len(told.events) == 4


def test_a_denial_never_stands() -> None:
    told = asked("first")
    outputs = told.take(log_input(ApprovalClicked(approval_id="approval-c1", answer="denied", scope="function"), 3))
    assert not any(isinstance(output, Grant) for output in outputs)


def test_the_question_survives_a_barge_in_and_a_crash() -> None:
    told = asked()
    assert told.take(cancelled()) == [Done(2)]
    assert told.take(called()) == [SetTimer("c1", T0 + EXPIRES_US)]
    assert told.take(TimerFired(call_id="c1"), after_ms=1) == [SetTimer("c1", T0 + EXPIRES_US)]


def test_the_same_call_again_gets_the_same_question() -> None:
    told = asked()
    told.take(called("c2", seq=2))
    _, answer = appended(told.take(accepted("c2", effect="destructive", approval="always")))
    assert isinstance(answer, ToolCompleted)
    assert (answer.result["approval_id"], answer.result["repeated"]) == ("approval-c1", True)
    assert list(told.state.open) == ["c1"]


def test_a_long_argument_is_cut_in_the_question() -> None:
    told = Told()
    event = ToolCalled(call_id="c1", name="delete_macro", arguments={"name": "x" * 900}, kind="server", turn=1, deadline_ms=0, account="me")
    told.take(log_input(event, 1), accepted(approval="always"))
    requested = told.events[0]
    assert isinstance(requested, ApprovalRequested)
    assert requested.question.startswith("Shall I delete macro with name xxx")
    assert len(requested.question) < QUESTION_CHARACTERS + 60


def test_an_approved_alarm_that_fails_is_a_task_that_failed() -> None:
    told = Told()
    told.take(called(), accepted(mode="alarm", approval="always"), log_input(YES, 3))
    kinds = [type(event) for event in appended(told.take(raised()))]
    assert kinds == [TaskStarted, TaskFailed]


def test_what_was_approved_is_what_runs_and_what_stands() -> None:
    told = Told()
    told.take(called(), msgspec.structs.replace(accepted(effect="destructive", approval="first"), definition="as it was"))
    outputs = told.take(clicked(scope="function"))
    assert Grant("approval-c1", "me", "fn", None, "as it was") in outputs
    assert StartEffect("c1", 1, "fn", {"a": 1}, "me", "as it was") in outputs


def test_a_function_that_changed_while_the_user_was_asked_does_not_run() -> None:
    tools = load(["tests.tools.pack"], timeout_s=30)
    for definition, runs in ((tools["destroy"].definition, True), ("", True), ("as it was", False)):
        found = runnable(tools, StartEffect("c1", 1, "destroy", {}, "me", definition))
        assert (found is tools["destroy"]) is runs
        assert runs or (isinstance(found, Failure) and found.code == "CONFLICT" and "ask for it again" in found.message)


def proposed(told: Told, call_id: str = "c1", **arguments: Any) -> list[Any]:
    return told.take(Proposed(call_id=call_id, attempt=1, proposal=Proposal(arguments=arguments, question=f"{call_id}?")))


def proposing() -> Told:
    told = Told()
    told.take(called(), accepted(effect="write", idempotent=True))
    return told


def test_what_a_function_proposes_is_asked_about_and_done_after_a_yes() -> None:
    told = proposing()
    requested, answer = appended(proposed(told, a=1, steps=["x"]))
    assert isinstance(requested, ApprovalRequested)
    assert (requested.question, requested.arguments, requested.effect) == ("c1?", {"a": 1, "steps": ["x"]}, "write")
    assert isinstance(answer, ToolCompleted)
    assert answer.result == {"task_id": "task-c1", "status": "needs_approval", "approval_id": "approval-c1", "spoken": "c1?"}
    outputs = told.take(clicked(scope="function"))
    assert appended(outputs) == [
        ApprovalEnded(approval_id="approval-c1", call_id="c1", name="fn", outcome="approved", by="click"),
        ToolStarted(call_id="c1", name="fn", attempt=2),
        TaskStarted(task_id="task-c1", function="fn", call_id="c1"),
    ]
    assert [output.arguments for output in outputs if isinstance(output, StartEffect)] == [{"a": 1, "steps": ["x"]}]
    assert not any(isinstance(output, Grant) for output in outputs), "it asks about what it proposes each time"
    assert appended(told.take(returned(attempt=2, x=1))) == [TaskCompleted(task_id="task-c1", function="fn", result={"x": 1})]


@pytest.mark.parametrize(("input", "outcome"), [(log_input(NO, 3), "denied"), (TimerFired(call_id="c1"), "lapsed")])
def test_what_was_proposed_is_not_done_without_a_yes(input: Any, outcome: Any) -> None:
    told = proposing()
    proposed(told, a=1)
    (ended,) = appended(told.take(input, after_ms=EXPIRES_US // 1_000))
    assert isinstance(ended, ApprovalEnded)
    assert (ended.outcome, told.state.open) == (outcome, {})


def test_a_newer_proposal_takes_the_place_of_an_older_one() -> None:
    told = proposing()
    proposed(told, a=1)
    told.take(called("c2", seq=2, a=2), accepted("c2", effect="write"))
    withdrawn, requested, _ = appended(proposed(told, "c2", a=2))
    assert withdrawn == ApprovalEnded(approval_id="approval-c1", call_id="c1", name="fn", outcome="withdrawn")
    assert isinstance(requested, ApprovalRequested)
    assert list(told.state.open) == ["c2"]


def test_the_same_call_under_a_new_id_gets_the_question_too() -> None:
    told = proposing()
    told.take(called("c2", seq=2), accepted("c2", effect="write"))
    answers = {one.call_id: one.result for one in appended(proposed(told, a=1)) if isinstance(one, ToolCompleted)}
    assert answers["c2"] == {"status": "needs_approval", "approval_id": "approval-c1", "spoken": "c1?", "repeated": True}
    assert list(told.state.open) == ["c1"]


@pytest.mark.parametrize("reason", ["barge_in", "timed_out"])
def test_nobody_is_asked_what_nobody_waits_for(reason: str) -> None:
    told = proposing()
    told.take(cancelled(reason=reason))
    ended = appended(proposed(told, a=1))
    assert not any(isinstance(one, ApprovalRequested) for one in ended)
    assert told.state.open == {}
    assert isinstance(ended[-1], TaskCancelled if reason == "barge_in" else ToolFailed)


@pytest.mark.parametrize(
    ("mode", "approval", "scopes"),
    [
        ("call", "always", ("arguments", "function")),
        ("task", "first", ("arguments", "function")),
        ("run", "first", ("arguments",)),
        ("run", "always", ()),
    ],
)
def test_a_request_says_in_which_ways_a_yes_can_stand(mode: Mode, approval: Approval, scopes: tuple[str, ...]) -> None:
    told = Told()
    requested = appended(told.take(called(), accepted(mode=mode, effect="write", approval=approval)))[0]
    assert isinstance(requested, ApprovalRequested)
    assert requested.scopes == scopes


def test_a_proposal_is_asked_about_each_time_and_offers_nothing_else() -> None:
    requested = appended(proposed(proposing(), a=1))[0]
    assert isinstance(requested, ApprovalRequested)
    assert requested.scopes == ()
