"""Sameness of calls: a repetition gets the first one's end, and a wish of its own runs."""

from __future__ import annotations

from typing import Any

import pytest

from tests.tools.core_driver import Told, accepted, appended, log_input, returned, scheduled
from voxbridge.services.tools.core.outputs import StartEffect
from voxbridge.shared.events.tools import TaskStarted, ToolCompleted, ToolJoined
from voxbridge.shared.events.voice import ToolCalled

AFTER_MS = 500


def call(
    told: Told, call_id: str, *, name: str = "light", ends: bool = True, turn: int = 1, by_turn: bool = True, **arguments: Any
) -> bool:
    """Call a function that changes something. Return whether it ran."""
    seq = len(told.outputs) + 1
    event = ToolCalled(call_id=call_id, name=name, arguments=arguments, kind="server", turn=turn, deadline_ms=0, account="me")
    told.take(after_ms=AFTER_MS)
    told.take(log_input(event, seq, told.now))
    outputs = told.take(accepted(call_id, effect="write", by_turn=by_turn))
    if ends and any(isinstance(output, StartEffect) for output in outputs):
        told.take(returned(call_id, ok=True))
    joined = any(isinstance(event, ToolJoined) for event in appended(outputs))
    ran = any(isinstance(output, StartEffect) for output in outputs)
    assert ran != joined
    return ran


@pytest.mark.parametrize(
    ("calls", "ran"),
    [
        ([{"on": True}, {"on": True}], [True, False]),
        ([{"on": True}, {"on": False}, {"on": True}], [True, True, True]),
        ([{"on": True}, {"on": False}, {"on": False}], [True, True, False]),
        ([{"on": True}, {"on": False}, {"on": True}, {"on": True}], [True, True, True, False]),
        ([{"on": 1}, {"on": True}], [True, True]),
        ([{"a": 1, "b": 2}, {"b": 2, "a": 1}], [True, False]),
        ([{"on": "1"}, {"on": 1}], [True, True]),
        ([{"on": [True]}, {"on": [1]}], [True, True]),
    ],
)
@pytest.mark.parametrize("ends", [True, False], ids=["ended", "open"])
def test_a_call_is_a_repetition_only_of_the_last_one_of_its_function_and_of_equal_json(
    calls: list[dict[str, Any]], ran: list[bool], ends: bool
) -> None:
    told = Told()
    assert [call(told, f"c{number}", ends=ends, **arguments) for number, arguments in enumerate(calls)] == ran


def test_another_function_between_two_calls_changes_nothing() -> None:
    told = Told()
    assert [call(told, "c1", on=True), call(told, "c2", name="door", on=False), call(told, "c3", on=True)] == [True, True, False]


@pytest.mark.parametrize(
    ("turns", "ran"),
    [
        ([1, 2], [True, True]),
        ([1, 1], [True, False]),
        ([1, 2, 2, 3], [True, True, False, True]),
        ([2, 0], [True, False]),
        ([0, 2], [True, False]),
        ([2, 1], [True, False]),
    ],
    ids=["two turns", "one turn", "each turn once", "then by nobody's turn", "first by nobody's turn", "told late"],
)
def test_what_a_later_turn_asks_for_is_a_call_of_its_own(turns: list[int], ran: list[bool]) -> None:
    told = Told()
    assert [call(told, f"c{number}", name="volume_up", turn=turn) for number, turn in enumerate(turns)] == ran


def test_a_later_turn_joins_what_has_not_ended() -> None:
    told = Told()
    assert [call(told, "c1", ends=False, turn=1), call(told, "c2", turn=2)] == [True, False]
    ended = appended(told.take(returned("c1", ok=True)))
    assert [(event.call_id, event.result) for event in ended if isinstance(event, ToolCompleted)] == [
        ("c1", {"ok": True}),
        ("c2", {"ok": True, "repeated": True}),
    ]


def test_journals_from_before_the_rule_are_decided_as_they_were() -> None:
    told = Told()
    assert [call(told, f"c{turn}", turn=turn, by_turn=False) for turn in (1, 2)] == [True, False]


@pytest.mark.parametrize(("turn", "timers"), [(1, 1), (2, 2)], ids=["one turn", "two turns"])
def test_a_timer_that_a_later_turn_sets_again_is_another_one(turn: int, timers: int) -> None:
    told = Told()
    for number, asked in enumerate((1, turn)):
        event = ToolCalled(call_id=f"t{number}", name="fn", arguments={"a": 1}, kind="server", turn=asked, deadline_ms=0, account="me")
        told.take(log_input(event, number + 1, told.now), accepted(f"t{number}", "alarm", effect="write"), scheduled(f"t{number}"))
        told.take(after_ms=AFTER_MS)
    assert sum(isinstance(event, TaskStarted) for event in told.events) == timers
