"""A pack whose process kills itself when the log has taken the n-th of what it writes in a session: no word of it comes after that.

`VOXBRIDGE_TEST_DIES_AFTER` says how many; without it nothing happens. With `VOXBRIDGE_TEST_DIES_IN` as `vx.`, logs of accounts count, too.
"""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

from nats.js.client import JetStreamContext

from voxbridge.services.tools.core.inputs import Alarm
from voxbridge.services.tools.registry import function

_AFTER = int(os.environ.get("VOXBRIDGE_TEST_DIES_AFTER", "0"))
_IN = os.environ.get("VOXBRIDGE_TEST_DIES_IN", "vx.s.")
_publish = JetStreamContext.publish
_written = 0


async def _dying(self: JetStreamContext, subject: str, *args: Any, **options: Any) -> Any:
    global _written
    acknowledged = await _publish(self, subject, *args, **options)
    if ".ev.tools." in subject and subject.startswith(_IN):
        _written += 1
        if _written == _AFTER:
            os.kill(os.getpid(), signal.SIGKILL)
    return acknowledged


if _AFTER:
    JetStreamContext.publish = _dying  # type: ignore[method-assign]


def _ran(file: Path) -> None:
    with file.open("a") as lines:
        lines.write("ran\n")


@function(effect="write")
async def leave(file: str) -> dict[str, Any]:
    """Leave one line in a file for each run.

    Args:
        file: Where.
    """
    _ran(Path(file))
    return {"spoken": "Left."}


@function(effect="destructive")
async def wipe(file: str) -> dict[str, Any]:
    """Leave one line in a file for each run, if a person approves.

    Args:
        file: Where.
    """
    _ran(Path(file))
    return {"spoken": "Wiped."}


@function(kind="async", idempotent=True, outlives=True)
async def later(ms: int) -> Alarm:
    """Speak up after some milliseconds, also after the session.

    Args:
        ms: How long.
    """
    return Alarm(after_ms=ms, announce="It is time.", spoken="Set.")
