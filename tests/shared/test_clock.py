from __future__ import annotations

import time

import pytest

from voxbridge.shared.clock import SystemClock, wall_ms32


def test_the_clock_stands_still_while_the_wall_clock_goes_back(monkeypatch: pytest.MonkeyPatch) -> None:
    walls = iter([5_000_000, 9_000_999, 2_000_000, 8_999_000, 9_001_000])
    monkeypatch.setattr(time, "time_ns", lambda: next(walls))
    clock = SystemClock()
    assert [clock.now_us() for _ in range(5)] == [5_000, 9_000, 9_000, 9_000, 9_001]


def test_the_clock_is_the_unix_clock_in_microseconds() -> None:
    before = time.time_ns() // 1_000
    assert before <= SystemClock().now_us() <= time.time_ns() // 1_000


@pytest.mark.parametrize(("ms", "shown"), [(0, 0), (2**32 - 1, 2**32 - 1), (2**32, 0), (2**33 + 5, 5)])
def test_frame_time_wraps_at_32_bits(monkeypatch: pytest.MonkeyPatch, ms: int, shown: int) -> None:
    monkeypatch.setattr(time, "time_ns", lambda: ms * 1_000_000 + 999_999)
    assert wall_ms32() == shown
