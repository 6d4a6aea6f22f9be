"""Limits of a whole session, over all of its workers: how long it may last and how many events it may have in the log.

Pure: the state, the count and the time are passed in. Does not own how a session ends (`core`). A crash loses nothing here.
"""

from __future__ import annotations

from voxbridge.services.voice.core.inputs import LimitReached
from voxbridge.services.voice.core.state import State
from voxbridge.shared.config import Config
from voxbridge.shared.errors import Code
from voxbridge.shared.events.voice import Failure

_HOUR_US = 3_600_000_000


def reached(state: State, config: Config, *, written: int, now_us: int) -> LimitReached | None:
    """Return the input that ends a session at a limit, or None. `written` is the number of events that its workers wrote."""
    if state.phase != "open":
        return None
    if state.requested_at and now_us - state.requested_at >= config.session_hours * _HOUR_US:
        message = f"A call lasts {config.session_hours} hours at most here."
        return LimitReached("time_limit", Failure(code=Code.OVERLOADED, message=message, retryable=False))
    if written >= config.session_events:
        message = f"A call has {config.session_events} events at most here."
        return LimitReached("log_limit", Failure(code=Code.OVERLOADED, message=message, retryable=False))
    return None
