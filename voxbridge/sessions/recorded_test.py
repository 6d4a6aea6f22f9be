"""A recorded call as a test: a recording, and beside it a module that replays it with plain pytest and no servers.

Owns the names and the text of the written files.
"""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from voxbridge.sessions import archive, replay
from voxbridge.shared.errors import Code, VoxbridgeError
from voxbridge.shared.events.voice import TurnCompleted, UserSaid

FOLDER: Final = Path("tests/recorded")
_SHORT: Final = 8
_TEXT: Final = '''"""A recorded call: {about}.

Made by `voxbridge export {sid} --as-test`.
When a change of behaviour is wanted, look at the differences that this test prints, and record such a call anew.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from voxbridge.sessions.replay import differences

RECORDING = Path(__file__).with_name("{recording}")


@pytest.mark.parametrize("service", {services})
def test_the_call_replays_as_it_was_recorded(service: str) -> None:
    found = differences(RECORDING, service)
    assert not found, found
'''


def recording_path(folder: Path, sid: str) -> Path:
    """Return the path for the recording of a session."""
    return folder / f"call_{sid[:_SHORT]}.jsonl"


def write(recording: Path) -> Path:
    """Write the test of a recording beside it; return its path. Raises `NOT_FOUND` when the recording holds nothing to replay."""
    sid, log = archive.read(recording)
    services = replay.took_part(log)
    if not services:
        raise VoxbridgeError(Code.NOT_FOUND, "No service that can be replayed took an input in this session.", field="service")
    day = datetime.fromtimestamp(log[0].ts / 1_000_000, UTC).date()
    turns = sum(isinstance(one.event, TurnCompleted) for one in log)
    said = sum(isinstance(one.event, UserSaid) for one in log)
    names = "[" + ", ".join(f'"{name}"' for name in services) + "]"
    text = _TEXT.format(
        about=f"{turns} turns and {said} utterances, of {day}, {len(log):,} events", sid=sid, recording=recording.name, services=names
    )
    path = recording.with_name(f"test_{recording.stem}.py")
    path.write_text(text, encoding="utf-8")
    return path
