from __future__ import annotations

import time
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from voxbridge.shared.clock import SystemClock, wall_ms32

S = 1_000_000_000


def clock_of(monkeypatch: pytest.MonkeyPatch, steps: list[tuple[float, float]]) -> list[float]:
    """Return what the clock says, in seconds, when so many seconds have passed and the wall clock says so many."""
    steady, walls = iter([0, *(int(passed * S) for passed, _ in steps)]), iter(int(wall * S) for _, wall in steps)
    monkeypatch.setattr(time, "monotonic_ns", lambda: next(steady))
    monkeypatch.setattr(time, "time_ns", lambda: next(walls))
    clock = SystemClock()
    return [clock.now_us() / 1_000_000 for _ in steps]


def test_the_clock_goes_on_while_the_wall_clock_is_set_back(monkeypatch: pytest.MonkeyPatch) -> None:
    said = clock_of(monkeypatch, [(1, 10_000), (11, 10_010), (11, 6_410), (71, 6_470), (3_671, 10_070)])
    assert said == [10_000, 10_010, 10_010, 10_069.4, 13_633.4], "a timer of a minute rings 0.6 s late, and not an hour"


def test_the_clock_agrees_with_the_wall_clock_again(monkeypatch: pytest.MonkeyPatch) -> None:
    assert clock_of(monkeypatch, [(0, 100), (1, 100), (2, 101), (201, 300)]) == [100, 100.99, 101.98, 300]


def test_the_clock_follows_a_wall_clock_that_is_set_forward(monkeypatch: pytest.MonkeyPatch) -> None:
    assert clock_of(monkeypatch, [(0, 100), (1, 5_000), (2, 5_001)]) == [100, 5_000, 5_001]


@given(st.lists(st.tuples(st.floats(0, 1_000), st.floats(-1_000, 1_000)), max_size=30))
def test_the_clock_never_goes_back_nor_stands_still(steps: list[tuple[float, float]]) -> None:
    with pytest.MonkeyPatch.context() as monkeypatch:
        passed, wall, given_steps = 0.0, 1_000_000.0, []
        for by, stepped in steps:
            passed, wall = passed + by, wall + by + stepped
            given_steps.append((passed, max(wall, 0.0)))
        said = clock_of(monkeypatch, given_steps)
    for (one, before), (two, after) in pairwise(zip((passed for passed, _ in given_steps), said, strict=True)):
        assert after - before >= 0.98 * (two - one) - 0.000_01


def test_the_clock_is_the_unix_clock_in_microseconds() -> None:
    before = time.time_ns() // 1_000
    assert before <= SystemClock().now_us() <= time.time_ns() // 1_000


@pytest.mark.parametrize(("ms", "shown"), [(0, 0), (2**32 - 1, 2**32 - 1), (2**32, 0), (2**33 + 5, 5)])
def test_frame_time_wraps_at_32_bits(monkeypatch: pytest.MonkeyPatch, ms: int, shown: int) -> None:
    monkeypatch.setattr(time, "time_ns", lambda: ms * 1_000_000 + 999_999)
    assert wall_ms32() == shown
