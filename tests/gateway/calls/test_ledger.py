"""Open requests for approval of an account, as the gateway has them from the account's events."""

from __future__ import annotations

from voxbridge.services.gateway.calls.ledger import ASKED_LIMIT, Ledger
from voxbridge.shared import events
from voxbridge.shared.events import tools
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
