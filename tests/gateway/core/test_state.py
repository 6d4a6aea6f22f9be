"""Shape of a connection's state: its structs are small, and mypy refuses what cannot be true."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import get_type_hints

import msgspec
import pytest

from tests.phases import refused
from voxbridge.services.gateway.core import state

STRUCTS = [one for _, one in inspect.getmembers(state, inspect.isclass) if issubclass(one, msgspec.Struct)]


@pytest.mark.parametrize("struct", STRUCTS, ids=lambda struct: struct.__name__)
def test_a_struct_of_the_state_is_small(struct: type[msgspec.Struct]) -> None:
    assert len(struct.__struct_fields__) <= 15
    assert sum(hint is bool for hint in get_type_hints(struct).values()) <= 3


def test_mypy_refuses_phases_that_cannot_be(tmp_path: Path) -> None:
    illegal = {
        "a socket that asked for nothing waits for nothing": "Fresh(waiting=())",
        "a session that is opened has no other to fall back on": "Opening(1, otherwise=None)",
        "only a session that runs has lost its worker": "Requested(1, lost_since_ms=5)",
        "an end was requested at some time": "Ending()",
        "a state does not change in place": "connection.last_seq = 3",
    }
    head = [
        "from voxbridge.services.gateway.core.state import Connection, Ending, Fresh, Live, Opening, Requested",
        "def check(connection: Connection) -> None:",
    ]
    assert refused(tmp_path, head, [*illegal.values(), "Live(lost_since_ms=5)"]) == list(illegal.values())
