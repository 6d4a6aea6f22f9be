"""A recorded call: 12 turns and 12 utterances, of 2026-11-21, 303 events.

Made by `voxbridge export d42457237394ee4215c0d99f43288f2e --as-test`.
When a change of behaviour is wanted, look at the differences that this test prints, and record such a call anew.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from voxbridge.sessions.replay import differences

RECORDING = Path(__file__).with_name("call_d4245723.jsonl")


@pytest.mark.parametrize("service", ["voice", "tools"])
def test_the_call_replays_as_it_was_recorded(service: str) -> None:
    found = differences(RECORDING, service)
    assert not found, found
