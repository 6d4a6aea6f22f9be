"""The end of a session whose core failed: it gets a typed error, and other sessions are not affected. An unexpected error is a bug in the
product: a successor would hit it again, and then every other worker in turn.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Final

from voxbridge.shared.errors import Code, VoxbridgeError
from voxbridge.shared.events.voice import Failure, SessionEnded
from voxbridge.shared.log.writer import SessionWriter

FAILURE_LIMIT: Final = 1_000
"""Characters of an error's message that are kept."""


def of(error: Exception) -> Failure:
    """Return an error as events tell of it."""
    if isinstance(error, VoxbridgeError):
        return Failure(code=error.code, message=error.message[:FAILURE_LIMIT], retryable=error.retryable)
    return Failure(code=Code.INTERNAL, message=f"{type(error).__name__}: {error}"[:FAILURE_LIMIT])


def failure(error: Exception) -> Failure:
    """Return the error for the client. The exception's own text may quote what was said, so it stays in this process's log."""
    return Failure(code=Code.INTERNAL, message=f"The session failed in its voice worker: {type(error).__name__}.", retryable=False)


def bury(writer: SessionWriter, error: Failure, now_us: int) -> None:
    """Write the end of a session that its core cannot end."""
    with suppress(VoxbridgeError):  # the writer is stopped: another worker owns the session
        writer.submit(SessionEnded(reason="worker_lost", error=error), ts=now_us, cause=None)
