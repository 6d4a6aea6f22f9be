"""Both deaths of a call's executors at every pair of places, alone and beside a barge-in and a repetition; `tests/faults/test_once.py`
has a few pairs."""

from __future__ import annotations

from pathlib import Path

import pytest
from nats.aio.client import Client

from tests.faults import once, successors
from tests.faults.successors import Deaths
from tests.faults.test_once import connection, here, log
from tests.faults.wire import Stop
from voxbridge.shared.config import Config
from voxbridge.shared.log.reader import Log

__all__ = ["connection", "here", "log"]
APPENDS = 40
"""More appends than a takeover of any of these calls makes."""


@pytest.mark.timeout(3_600)
@pytest.mark.parametrize("beside", successors.BESIDE)
async def test_whatever_a_successor_dies_at_each_effect_is_once(
    beside: str, here: Config, log: Log, connection: Client, tmp_path: Path
) -> None:
    left = await once.places_of(log, here, tmp_path / "free")
    number, died = 0, 0
    while left and number < APPENDS:
        going_on = set[int]()
        for when in ("before", "after"):
            chosen = [Deaths(kind, place, Stop(when, number)) for kind, place in left]
            held = await successors.die(here, connection, tmp_path / f"{when}-{number}", chosen, beside=beside)
            going_on |= {index for index, is_held in enumerate(held) if is_held}
            died += sum(held)
        left = [places for index, places in enumerate(left) if index in going_on]
        number += 1
    assert not left, "a takeover comes to an end"
    assert died > 1_000
