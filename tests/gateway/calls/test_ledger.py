"""Open requests for approval of an account, as the gateway has them from the account's events."""

from __future__ import annotations

from typing import Any, Literal

import pytest

from voxbridge.services.gateway.calls.ledger import ASKED_LIMIT, Ledger
from voxbridge.shared import events
from voxbridge.shared.events import tools
from voxbridge.shared.events.gateway import ToolRequested
from voxbridge.shared.events.operator import SessionErased


def recorded(seq: int, event: events.Event) -> events.Recorded:
    kind = events.kind_of(event)
    return events.Recorded(
        seq=seq,
        id=f"e{seq}",
        sid="@local",
        ts=seq * 1_000,
        cause=None,
        writer=kind.writer,
        visible=kind.visible,
        type=kind.name,
        v=1,
        event=event,
    )


def requested(number: int) -> tools.ApprovalRequested:
    return tools.ApprovalRequested(
        approval_id=f"approval-{number}",
        call_id=str(number),
        name="destroy",
        arguments={},
        effect="destructive",
        question="Shall I?",
        expires_ts=0,
    )


def asked(count: int) -> Ledger:
    ledger = Ledger()
    for number in range(count):
        ledger.take(recorded(number + 1, requested(number)))
    return ledger


def test_a_request_is_open_until_it_ended() -> None:
    ledger = asked(2)
    ended = tools.ApprovalEnded(approval_id="approval-0", call_id="0", name="destroy", outcome="approved", by="click")
    ledger.take(recorded(3, ended))
    assert [one.approval_id for one in ledger.asked()] == ["approval-1"]


def test_the_newest_requests_are_kept_up_to_a_limit() -> None:
    assert len(asked(ASKED_LIMIT).asked()) == ASKED_LIMIT
    beyond = asked(ASKED_LIMIT + 1).asked()
    assert (len(beyond), beyond[0].approval_id) == (ASKED_LIMIT, "approval-1")


def test_nothing_is_left_of_an_account_that_was_erased() -> None:
    ledger = asked(3)
    ledger.take(recorded(9, SessionErased(by="somebody", began=0, mode="", events=3)))
    assert ledger.asked() == []


@pytest.mark.parametrize(
    "result",
    [
        {"task_id": "task-x", "status": "started"},
        {"status": "needs_approval"},
        {"status": "needs_approval", "task_id": 7},
        {"task_id": "y"},
    ],
)
def test_what_a_result_says_of_tasks_does_not_keep_its_call_open(result: dict[str, Any]) -> None:
    ledger = Ledger()
    for number in range(40):
        call = ToolRequested(call_id=f"c{number}", name="own", arguments={}, key="", request="", deadline_ms=1_000, account="local")
        ledger.take(recorded(2 * number + 1, call))
        ledger.take(recorded(2 * number + 2, tools.ToolCompleted(call_id=f"c{number}", name="own", result=result, ms=1)))
    assert (ledger.open(), ledger.tasks()) == (0, [])


@pytest.mark.parametrize("goes_on", ["task", "approval"])
def test_a_call_that_goes_on_is_open_until_its_task_ended(goes_on: Literal["task", "approval"]) -> None:
    ledger = Ledger()
    ledger.take(recorded(1, ToolRequested(call_id="c", name="own", arguments={}, key="", request="", deadline_ms=1_000, account="local")))
    answer = {"task_id": "task-c", "status": "started"}
    ledger.take(recorded(2, tools.ToolCompleted(call_id="c", name="own", result=answer, ms=1, goes_on=goes_on)))
    assert ledger.open() == 1
    ledger.take(recorded(3, tools.TaskStarted(task_id="task-c", function="own", call_id="c")))
    ledger.take(recorded(4, tools.TaskCompleted(task_id="task-c", function="own", result={})))
    assert ledger.open() == 0
