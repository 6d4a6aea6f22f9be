"""Sameness of calls: a repetition gets the first one's end, and a wish of its own runs."""

from __future__ import annotations

from typing import Any

import pytest

from tests.tools.core_driver import Told, accepted, appended, log_input, returned
from voxbridge.services.tools.core.outputs import StartEffect
from voxbridge.shared.events.tools import ToolJoined
from voxbridge.shared.events.voice import ToolCalled


def call(told: Told, call_id: str, *, name: str = "light", ends: bool = True, after_ms: int = 500, **arguments: Any) -> bool:
    """Call a function that changes something. Return whether it ran."""
    seq = len(told.outputs) + 1
    event = ToolCalled(call_id=call_id, name=name, arguments=arguments, kind="server", turn=1, deadline_ms=0, account="me")
    told.take(after_ms=after_ms)
    told.take(log_input(event, seq, told.now))
    outputs = told.take(accepted(call_id, effect="write"))
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
