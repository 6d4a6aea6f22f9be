"""A gateway that kills itself beside a write into a child session: run as `python -m tests.agents.dying_gateway`.

`VOXBRIDGE_TEST_DIES` is `before 1` (nothing is written yet), `before 2` (the request is in the log, the text is not) or `after 2` (both
are, and nobody was answered).
"""

from __future__ import annotations

import os
import signal
from typing import Any

from nats.js.client import JetStreamContext

from voxbridge.services.gateway.service import build
from voxbridge.shared.service.process import main

_WHEN, _AT = os.environ["VOXBRIDGE_TEST_DIES"].split()
_publish = JetStreamContext.publish
_written = 0


async def _dying(self: JetStreamContext, subject: str, *args: Any, **options: Any) -> Any:
    global _written
    counts = subject.startswith("vx.s.") and ".ev.gateway." in subject
    _written += counts
    if counts and _WHEN == "before" and _written == int(_AT):
        os.kill(os.getpid(), signal.SIGKILL)
    acknowledged = await _publish(self, subject, *args, **options)
    if counts and _WHEN == "after" and _written == int(_AT):
        os.kill(os.getpid(), signal.SIGKILL)
    return acknowledged


if __name__ == "__main__":
    JetStreamContext.publish = _dying  # type: ignore[method-assign]
    main("gateway", build)
