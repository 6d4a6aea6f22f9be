"""Late frames are distinguished from those of a host with a different clock."""

from __future__ import annotations

import pytest

from voxbridge.services.gateway.core.lateness import MAX_AGE_MS, PERIOD_MS, Lateness

NOW = 1_000_000


@pytest.mark.parametrize("skew_ms", [0, 1, -1, 300, -300, 3_600_000, -3_600_000])
@pytest.mark.parametrize("now", [NOW, 2**32 - 500])
def test_frames_are_late_by_how_much_later_they_come_than_others_whatever_the_clocks_say(skew_ms: int, now: int) -> None:
    lateness = Lateness()

    def late(at_ms: int, age_ms: int) -> bool:
        return lateness.late((now + at_ms - age_ms - skew_ms) % 2**32, (now + at_ms) % 2**32)

    assert not late(0, 3)
    assert not late(100, 3 + MAX_AGE_MS)
    assert late(120, 4 + MAX_AGE_MS)
    assert not late(140, 1)
    assert late(160, 2 + MAX_AGE_MS)


def test_a_backlog_is_late_however_long_it_is() -> None:
    lateness = Lateness()
    assert not lateness.late(NOW, NOW)
    for age in range(4_000, 0, -20):  # the whole backlog arrives at once
        assert lateness.late(NOW + 5_000 - age, NOW + 5_000) == (age > MAX_AGE_MS)


def test_a_clock_that_was_set_is_believed_after_two_periods() -> None:
    lateness = Lateness()
    dropped = [at for at in range(0, 60_000, 20) if lateness.late(NOW + at - (1_000 if at >= 20_000 else 0), NOW + at)]
    assert dropped
    assert dropped[0] == 20_000
    assert dropped[-1] - dropped[0] <= 2 * PERIOD_MS


def test_one_frame_of_a_pause_says_nothing_of_the_clocks() -> None:
    lateness = Lateness()
    for at in range(0, 2 * PERIOD_MS + 100, 20):
        assert not lateness.late(NOW + at, NOW + at)
    late = 2 * PERIOD_MS + 3_000
    assert lateness.late(NOW + late - 1_000, NOW + late)
