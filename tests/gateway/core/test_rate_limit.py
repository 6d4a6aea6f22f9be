"""Limit on how far a microphone may be ahead of real time."""

from __future__ import annotations

from voxbridge.services.gateway.core.rate_limit import AHEAD_S, RateLimit

SECOND = 32_000


def test_real_time_passes_for_ever() -> None:
    pace = RateLimit()
    assert all(pace.takes(SECOND // 50, now / 50) for now in range(100_000))


def test_what_a_client_kept_passes_and_not_a_frame_more() -> None:
    pace = RateLimit()
    assert all(pace.takes(SECOND, 100.0) for _ in range(int(AHEAD_S)))
    assert not pace.takes(2, 100.0)
    assert pace.takes(SECOND, 101.0)
    assert not pace.takes(2, 101.0)


def test_silence_is_no_credit() -> None:
    pace = RateLimit()
    assert pace.takes(SECOND, 0.0)
    assert sum(pace.takes(SECOND, 3_600.0) for _ in range(100)) == AHEAD_S
