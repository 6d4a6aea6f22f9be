"""A call ends at a limit of the installation, on any worker."""

from __future__ import annotations

import msgspec
import pytest

from tests.voice.conversation import Conversation
from voxbridge.services.voice.core import inputs
from voxbridge.services.voice.core.step import initial
from voxbridge.services.voice.session import bounds
from voxbridge.shared.config import Config
from voxbridge.shared.events import voice as ev

BEGAN = 1_000_000
HOUR_US = 3_600_000_000
CONFIG = Config(session_hours=2, session_events=1_000)


@pytest.mark.parametrize(
    ("after_us", "written", "reason"),
    [
        (2 * HOUR_US - 1, 999, None),
        (2 * HOUR_US, 0, "time_limit"),
        (0, 1_000, "log_limit"),
    ],
)
def test_a_session_has_so_many_hours_and_events(after_us: int, written: int, reason: str | None) -> None:
    state = initial("a" * 32)
    state.phase, state.requested_at = "open", BEGAN
    met = bounds.reached(state, CONFIG, written=written, now_us=BEGAN + after_us)
    assert (met.reason if met else None) == reason
    if met is not None:
        assert (met.error.code, met.error.retryable) == ("OVERLOADED", False)


@pytest.mark.parametrize("phase", ["new", "ended"])
def test_one_that_is_not_open_meets_none(phase: str) -> None:
    state = initial("a" * 32)
    state.phase, state.requested_at = phase, BEGAN  # type: ignore[assignment]  # a valid phase
    assert bounds.reached(state, CONFIG, written=10**9, now_us=10**18) is None


def test_a_call_that_met_a_bound_ends_and_says_which() -> None:
    call = Conversation()
    met = inputs.LimitReached("time_limit", ev.Failure(code="OVERLOADED", message="A call lasts 2 hours at most here.", retryable=False))
    call.take(met)
    (ended,) = call.events(ev.SessionEnded)
    assert (ended.reason, ended.error) == ("time_limit", met.error)
    call.take(met)
    assert len(call.events(ev.SessionEnded)) == 1, "once is enough"
    assert msgspec.msgpack.decode(msgspec.msgpack.encode(met), type=inputs.Input) == met, "it is journalled"
