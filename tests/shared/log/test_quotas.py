"""Quotas at their limits, on a clock of the test."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from voxbridge.shared.errors import VoxbridgeError
from voxbridge.shared.log.quotas import ALMOST_FULL, BURST_S, LARGEST_BYTES, RESERVE, Bucket, Quota, Rated, Rates, Starts, filling_up


class Time:
    def __init__(self) -> None:
        self.now = 1_000.0

    def __call__(self) -> float:
        return self.now


def quota(time: Time, *, events: int = 10, bytes: int = 1_000_000, account: Rated | None = None, mb: int = 100) -> Quota:
    session = Rated(Rates("session", events, bytes), time)
    return Quota(session, account or Rated(Rates("account", 10_000, 100_000_000), time), max_bytes=mb * 1_000_000)


def refusal(of: Quota, size: int = 100) -> VoxbridgeError:
    with pytest.raises(VoxbridgeError) as refused:
        of.take(size)
    return refused.value


def test_a_session_may_write_so_many_events_at_once_and_then_so_many_a_second() -> None:
    time = Time()
    one = quota(time, events=10)
    for _ in range(int(10 * BURST_S)):
        one.take(100)
    error = refusal(one)
    assert (error.code, error.field, error.limit, error.retryable, error.retry_after_ms) == (
        "OVERLOADED",
        "session_events_per_s",
        10,
        True,
        100,
    )
    time.now += 0.1
    one.take(100)
    assert refusal(one).field == "session_events_per_s"
    assert one.written == 41 * 100, "what is refused is not counted"


def test_a_session_may_write_so_many_bytes_a_second_and_one_large_event_at_once() -> None:
    time = Time()
    one = quota(time, bytes=64_000)
    one.take(LARGEST_BYTES)
    error = refusal(one, 64_000)
    assert (error.code, error.field, error.limit, error.retry_after_ms) == ("OVERLOADED", "session_kb_per_s", 64, 1_000)
    time.now += 1.0
    one.take(64_000)
    assert refusal(one, 1).field == "session_kb_per_s"


def test_a_client_writes_no_more_than_its_megabytes_and_is_told_to_begin_anew() -> None:
    time = Time()
    one = quota(time, mb=2, bytes=100_000_000, events=1_000)
    one.take(1_000_000)
    one.take(1_000_000)
    error = refusal(one, 1)
    assert (error.code, error.field, error.limit, error.retryable) == ("OVERLOADED", "session_mb", 2, False)


def test_the_sessions_of_an_account_share_its_rate() -> None:
    time = Time()
    account = Rated(Rates("account", 20, 100_000_000), time)
    first, second = quota(time, events=50, account=account), quota(time, events=50, account=account)
    for _ in range(40):
        first.take(10)
        second.take(10)
    error = refusal(second)
    assert (error.code, error.field, error.limit) == ("OVERLOADED", "account_events_per_s", 20)
    quota(time, events=50).take(10)


def test_calls_begin_no_faster_than_they_may() -> None:
    time = Time()
    starts = Starts(5, time)
    for _ in range(int(5 * BURST_S)):
        starts.take()
    with pytest.raises(VoxbridgeError) as refused:
        starts.take()
    assert (refused.value.code, refused.value.field, refused.value.limit, refused.value.retry_after_ms) == (
        "OVERLOADED",
        "starts_per_s",
        5,
        200,
    )
    time.now += 0.2
    starts.take()


@given(st.lists(st.tuples(st.floats(0, 5), st.integers(1, 40)), max_size=60))
def test_no_more_passes_than_the_rate_and_one_burst(steps: list[tuple[float, int]]) -> None:
    time = Time()
    bucket = Bucket(10, 40, time)
    passed = 0
    for wait, amount in steps:
        time.now += wait
        if bucket.has(amount):
            bucket.take(amount)
            passed += amount
        assert passed <= 40 + 10 * (time.now - 1_000.0) + 1e-6


def test_a_log_that_fills_up_is_said_before_it_is_full() -> None:
    room = 1_000_000_000
    assert filling_up(int(room * ALMOST_FULL) - 1, room) == ""
    assert filling_up(int(room * ALMOST_FULL), room).startswith("The event log fills up: 800 of 1,000 MB (VOXBRIDGE_LOG_MB) are used.")
    assert "No call begins" not in filling_up(int(room * RESERVE) - 1, room)
    assert "almost full: 950 of 1,000 MB" in filling_up(int(room * RESERVE), room)
    assert "No call begins" in filling_up(int(room * RESERVE), room)
