"""Calls that are streamed in pieces, as the servers there are number and name them."""

from __future__ import annotations

import pytest
from openai.types.chat.chat_completion_chunk import ChoiceDeltaToolCall, ChoiceDeltaToolCallFunction

from voxbridge.shared.errors import VoxbridgeError
from voxbridge.shared.language.base import ARGUMENTS_LIMIT
from voxbridge.shared.language.tool_calls import ToolCalls

ROME, OSLO = '{"place": "Rome"}', '{"place": "Oslo"}'


def piece(arguments: str, *, index: int = 0, id: str | None = None, name: str | None = None) -> ChoiceDeltaToolCall:
    return ChoiceDeltaToolCall(index=index, id=id, function=ChoiceDeltaToolCallFunction(name=name, arguments=arguments))


@pytest.mark.parametrize(
    "pieces",
    [
        [piece(ROME, id="a", name="time"), piece(OSLO, index=1, id="b", name="time")],
        [piece(ROME, id="a", name="time"), piece(OSLO, id="b", name="time")],
        [piece(ROME, name="time"), piece(OSLO, name="time")],
        [piece(part, id="a", name="time") for part in (ROME[:5], ROME[5:])]
        + [piece(part, id="b", name="time") for part in (OSLO[:9], OSLO[9:])],
        [piece("", id="a", name="ti"), piece(ROME[:3], name="me"), piece(ROME[3:]), piece(OSLO, index=1, id="b", name="time")],
        [piece("", index=0, id="a", name="time"), piece("", index=1, id="b", name="time"), piece(OSLO, index=1), piece(ROME, index=0)],
    ],
    ids=["by index", "one index, other ids", "one index, no ids", "the name in each piece", "the name in pieces", "pieces in turn"],
)
def test_two_calls_are_two(pieces: list[ChoiceDeltaToolCall]) -> None:
    calls = ToolCalls()
    for one in pieces:
        calls.take(one)
    assert [(call.name, call.arguments) for call in calls.calls] == [("time", ROME), ("time", OSLO)]


def test_arguments_have_a_bound() -> None:
    calls = ToolCalls()
    calls.take(piece("x" * ARGUMENTS_LIMIT, id="a", name="time"))
    with pytest.raises(VoxbridgeError):
        calls.take(piece("x"))
