"""The arithmetic of the figures."""

from __future__ import annotations

import math

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench import figures

VALUES = st.lists(st.floats(min_value=0, max_value=1e6), min_size=1, max_size=200)


@given(VALUES, st.integers(0, 100))
def test_a_quantile_is_one_of_the_values_and_enough_of_them_do_not_exceed_it(values: list[float], percent: int) -> None:
    found = figures.quantile(sorted(values), percent)
    assert found in values
    assert sum(value <= found for value in values) >= len(values) * percent / 100
    assert sum(value < found for value in values) <= max(0.0, len(values) * percent / 100)


def test_the_99th_percentile_of_a_hundred_values_is_the_99th() -> None:
    assert figures.quantile([float(n) for n in range(1, 101)], 99) == 99


def test_a_quantile_of_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match="no values"):
        figures.quantile([], 50)


def test_a_lost_frame_counts_as_infinitely_late() -> None:
    found = figures.series([1.0] * 98, lost=2)
    assert (found.count, found.lost, found.p50, found.p99, found.longest) == (100, 2, 1.0, None, None)
    assert all(math.isfinite(value) for _, value in found.curve)


def test_one_lost_frame_in_a_thousand_leaves_p99_as_it_is() -> None:
    found = figures.series([1.0] * 999, lost=1)
    assert (found.p99, found.longest) == (1.0, None)


def test_a_series_survives_json() -> None:
    found = figures.series([3.0, 1.0, 2.0], lost=1)
    assert msgspec.json.decode(msgspec.json.encode(found), type=figures.Series) == found


def test_a_ladder_has_its_top() -> None:
    assert figures.ladder(50, 50, 200) == [50, 100, 150, 200]


def test_what_is_sustained_ends_at_the_first_rung_over_the_limit() -> None:
    assert figures.sustained([(50, 2.0), (100, 100.0), (150, 101.0), (200, 3.0)], 100.0) == 100


def test_a_rung_that_lost_its_frames_is_not_sustained() -> None:
    assert figures.sustained([(50, 2.0), (100, None)], 100.0) == 50


def test_nothing_is_sustained_when_the_first_rung_fails() -> None:
    assert figures.sustained([(50, 250.0)], 100.0) == 0


def test_readings_settle_when_the_last_ones_are_close_together() -> None:
    assert figures.settled([9.0, 100.0, 100.2, 100.1], last=3, within=0.003)
    assert not figures.settled([100.0, 100.2, 101.0], last=3, within=0.003)


def test_too_few_readings_have_not_settled() -> None:
    assert not figures.settled([100.0, 100.0], last=3, within=0.003)


def test_a_further_session_costs_its_share_of_the_difference() -> None:
    assert figures.per_further(1_000.0, 51_000.0, 500) == 100.0


def test_the_share_of_no_further_session_is_refused() -> None:
    with pytest.raises(ValueError, match="further"):
        figures.per_further(1.0, 2.0, 0)
