"""The events that a fold finds missing behind the last journal entry, also where new code decides otherwise than the process that died."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
import pytest

from voxbridge.shared import events
from voxbridge.shared.events.journal import Taken, VoiceJournal
from voxbridge.shared.events.voice import SessionOwned, TurnCompleted, UserSaid
from voxbridge.shared.step.fold import Append, fold

A, B, C = UserSaid(text="hello", turn=1, source="text"), SessionOwned(worker="w", term=1), TurnCompleted(number=1, reason="completed")
LETTERS = {UserSaid: "A", SessionOwned: "B", TurnCompleted: "C"}


class Asked(msgspec.Struct, frozen=True, tag="asked"):
    pass


def missing(due: Sequence[events.Event], present: Sequence[events.Event]) -> str:
    """Return what is missing of the outputs that are due for one journalled input, by letters."""
    entry = VoiceJournal(first=0, inputs=(Taken(at=1, seq=None, input=msgspec.Raw(msgspec.msgpack.encode(Asked()))),))
    log = [
        events.Recorded(seq=seq, id=f"x{seq}", sid="s", ts=seq, cause=None, writer="voice", visible=False, type=kind, v=1, event=event)
        for seq, (kind, event) in enumerate([("voice.journal", entry), *((events.kind_of(one).name, one) for one in present)], 1)
    ]

    def step(state: int, _input: Any, _now: int) -> tuple[int, Sequence[Any]]:
        return state + 1, [Append(event) for event in due]

    folded = fold(step, 0, Asked, "voice", log)
    assert folded.state == 1
    return "".join(LETTERS[type(one.event)] for one in folded.missing)


@pytest.mark.parametrize(
    ("due", "present", "lacking"),
    [
        ([A, B], [], "AB"),
        ([A, B], [A], "B"),
        ([A, B], [A, B], ""),
        ([A, A, B], [A], "AB"),
        ([A, C, B], [A, B], "C"),
        ([C, A], [A], "C"),
        ([B], [A], "B"),
    ],
)
def test_what_was_written_is_not_written_again_whatever_the_code_decides_now(
    due: Sequence[events.Event], present: Sequence[events.Event], lacking: str
) -> None:
    assert missing(due, present) == lacking
