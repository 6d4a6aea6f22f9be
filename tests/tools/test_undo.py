"""The list of an account of what can be taken back, without servers: which call it is, and that each is taken back once."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from tests.tools.core_driver import T0, Told, accepted, appended, called, returned, scheduled
from voxbridge.services.tools.core.inputs import Undoable, UndoEnded, UndoEntry, UndoKept, UndoWanted
from voxbridge.services.tools.core.outputs import Done, Remember
from voxbridge.services.tools.core.undo import KEPT, UNDO_US, claimed
from voxbridge.shared.events.tools import ToolUndoable, ToolUndone

ENTRY = UndoEntry(call_id="c1", function="fn", account="me", ended_at=T0, data={"x": 1})


def listed(call_id: str, sid: str = "s", *, run: str = "", at: int = T0) -> Undoable:
    return Undoable(sid=sid, entry=UndoEntry(call_id=call_id, function="fn", account="me", ended_at=at, data={}, run=run))


def wanted(told: Told, by: str = "s undo", call_id: str = "") -> list[str]:
    """Claim what a call takes back; return the ids of the calls."""
    told.take(UndoWanted(sid=by.partition(" ")[0], by=by, call_id=call_id))
    return [one.call_id for one in claimed(told.state, by)]


def test_a_call_that_can_be_taken_back_is_told_to_its_account_before_its_message_is_acknowledged() -> None:
    told = Told()
    told.take(called(), accepted(effect="write"))
    outputs = told.take(msgspec.structs.replace(returned(a=1), undo={"x": 1}))
    assert outputs.index(Remember(ENTRY)) < outputs.index(Done(1))
    assert told.take(called()) == [Remember(ENTRY), Done(1)], "its process died before the account had it"
    told.take(UndoKept(call_id="c1"))
    assert told.take(called()) == [Done(1)]


def test_a_call_that_left_nothing_for_an_undo_or_failed_cannot_be_taken_back() -> None:
    told = Told()
    told.take(called(), accepted(effect="write"), returned(a=1))
    assert not told.state.unkept
    assert not any(isinstance(output, Remember) for output in told.outputs)


def test_an_alarm_can_be_taken_back_as_soon_as_it_is_set() -> None:
    told = Told()
    told.take(called(), accepted(mode="alarm", effect="write"))
    outputs = told.take(msgspec.structs.replace(scheduled(), undo={"task_id": "task-c1"}))
    assert outputs[0] == Remember(msgspec.structs.replace(ENTRY, data={"task_id": "task-c1"}))


def test_a_call_is_listed_once() -> None:
    account = Told()
    told = Undoable(sid="s", entry=ENTRY)
    assert appended(account.take(told)) == [ToolUndoable(sid="s", call_id="c1", function="fn", data={"x": 1})]
    assert account.take(told) == []


@pytest.mark.parametrize(
    ("by", "call_id", "found"),
    [
        ("s undo", "", ["c2"]),
        ("other undo", "", ["c3"]),
        ("third undo", "", ["c3"]),
        ("s undo", "c1", ["c1"]),
        ("third undo", "c2", ["c2"]),
        ("s undo", "none", []),
    ],
)
def test_the_last_call_of_the_same_session_is_taken_back_else_the_last_of_the_account_or_the_one_that_is_named(
    by: str, call_id: str, found: list[str]
) -> None:
    account = Told()
    account.take(listed("c1"), listed("c2"), listed("c3", "other"))
    assert wanted(account, by, call_id) == found


@pytest.mark.parametrize("named", ["", "r1", "r1.b.1"])
def test_the_steps_of_a_run_are_taken_back_together_the_last_one_first(named: str) -> None:
    account = Told()
    account.take(listed("r1.a.1", run="r1"), listed("r1.b.1", run="r1"))
    assert wanted(account, call_id=named) == ["r1.b.1", "r1.a.1"]


def test_of_two_that_ask_at_once_one_gets_it_and_one_that_is_begun_again_gets_the_same() -> None:
    account = Told()
    account.take(listed("c1"), listed("c2"))
    assert wanted(account, "s u1") == ["c2"]
    assert wanted(account, "s u2") == ["c1"]
    account.take(listed("c3"))
    assert wanted(account, "s u1") == ["c2"]
    assert wanted(account, "s u3") == ["c3"]
    assert wanted(account, "s u4") == []


def ended(call_id: str = "c1", by: str = "s undo", *, done: bool = True) -> UndoEnded:
    return UndoEnded(sid="s", call_id=call_id, by=by, done=done)


def test_what_was_taken_back_is_told_once_and_not_taken_back_again() -> None:
    account = Told()
    account.take(listed("c1"))
    wanted(account)
    assert appended(account.take(ended())) == [ToolUndone(sid="s", call_id="c1", function="fn", by="s undo")]
    assert account.take(ended()) == []
    assert wanted(account, "s more") == []
    assert wanted(account, "s more", "c1") == []
    assert [one.done for one in claimed(account.state, "s undo")] == [True]


def test_what_could_not_be_taken_back_can_be_later() -> None:
    account = Told()
    account.take(listed("c1"))
    wanted(account)
    assert account.take(ended(by="s other", done=False)) == []
    assert wanted(account, "s more") == [], "another call has no say in it"
    account.take(ended(done=False))
    assert wanted(account, "s more") == ["c1"]


def test_a_call_can_be_taken_back_for_a_day() -> None:
    account = Told()
    account.take(listed("c1", at=T0))
    account.now = T0 + UNDO_US - 1
    assert wanted(account, "s u1", "c1") == ["c1"]
    account.take(ended(by="s u1", done=False))
    account.now = T0 + UNDO_US
    assert wanted(account, "s u2", "c1") == []


def test_an_account_lists_so_many_and_forgets_the_oldest() -> None:
    account = Told()
    account.take(*(listed(f"c{number}") for number in range(KEPT)))
    assert wanted(account, "s u1", "c0") == ["c0"]
    account.take(ended("c0", "s u1", done=False), listed("more"))
    assert len(account.state.undoable) == KEPT
    assert wanted(account, "s u2", "c0") == []


def test_a_state_with_what_can_be_taken_back_is_the_same_when_it_is_read() -> None:
    told = Told()
    told.take(called(), accepted(effect="write"), msgspec.structs.replace(returned(), undo={"x": [1]}))
    told.take(listed("c1"), listed("r.a.1", run="r"))
    wanted(told)
    state: Any = msgspec.msgpack.decode(msgspec.msgpack.encode(told.state), type=type(told.state))
    assert state == told.state
