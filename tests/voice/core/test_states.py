"""Shape of the state: its structs are small, and mypy refuses what cannot be true."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from pathlib import Path
from typing import get_args, get_type_hints

import msgspec
import pytest

from tests.phases import refused
from voxbridge.services.voice.core import state

STRUCTS = [one for _, one in inspect.getmembers(state, inspect.isclass) if issubclass(one, msgspec.Struct)]
FIELDS = 15
BOOLEANS = 3


@pytest.mark.parametrize("struct", STRUCTS, ids=lambda struct: struct.__name__)
def test_a_struct_of_the_state_is_small(struct: type[msgspec.Struct]) -> None:
    booleans = [name for name, hint in get_type_hints(struct).items() if hint is bool]
    assert len(struct.__struct_fields__) <= FIELDS
    assert len(booleans) <= BOOLEANS


def parts(hint: object) -> Iterator[type[msgspec.Struct]]:
    """Return the structs of the state in an annotation."""
    if inspect.isclass(hint) and issubclass(hint, msgspec.Struct) and hint.__module__.startswith(state.__name__):
        yield hint
    for one in get_args(hint):
        yield from parts(one)


def test_every_struct_that_a_state_holds_is_checked() -> None:
    seen = set[type[msgspec.Struct]]()
    left: list[type[msgspec.Struct]] = [state.State]
    while left:
        struct = left.pop()
        if struct not in seen:
            seen.add(struct)
            left.extend(part for hint in get_type_hints(struct).values() for part in parts(hint))
    assert len(seen) > 20
    assert seen <= set(STRUCTS)


ILLEGAL = {
    "a connection that is closed has no effect": "Closed().effect",
    "a connection that is being opened is not left": 'Opening(effect=7, resumes="", leaving_at=5)',
    "a connection that is open was opened by an effect": 'Ready(resumes="")',
    "only a connection that is ready is left": "replace(realtime.link, leaving_at=5)",
    "a model that is in no turn has called nothing": 'Response(stage="over", called=True)',
    "a filler is no apology": 'Reply(generation=1, turn=1, kind="filler", apology=True)',
    "a takeover is restored in an outage alone": 'replace(realtime, worker="w")',
    "settings do not change": "settings.turn_timeout_s = 3",
}
LEGAL = 'replace(realtime, link=Ready(effect=7, resumes="handle", leaving_at=5))'


def test_mypy_refuses_phases_that_cannot_be(tmp_path: Path) -> None:
    head = [
        "from msgspec.structs import replace",
        "from voxbridge.services.voice.core.state import Closed, Opening, Ready, RealtimeState, Reply, Response, Settings",
        "def check(realtime: RealtimeState, settings: Settings) -> None:",
    ]
    assert refused(tmp_path, head, [*ILLEGAL.values(), LEGAL]) == list(ILLEGAL.values())
