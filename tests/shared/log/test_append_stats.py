"""Conditions of the log, derived from the figures of appends."""

from __future__ import annotations

import pytest
from nats.js.errors import BadRequestError, ServiceUnavailableError

from voxbridge.shared.condition import Condition, read, worst
from voxbridge.shared.log.append_stats import RECENT_S, SLOW_S, STUCK_S, Appends, is_full


class Hand:
    """A clock that the test sets."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Hand:
    return Hand()


@pytest.fixture
def appends(clock: Hand) -> Appends:
    return Appends(clock)


def take(appends: Appends, clock: Hand, seconds: float) -> None:
    number = appends.begin()
    clock.now += seconds
    assert appends.end(number, acknowledged=True) == pytest.approx(seconds)


def test_nothing_appended_is_nothing_wrong(appends: Appends) -> None:
    assert appends.condition() == Condition("ok", "")
    assert (appends.waiting_s(), appends.slow_s()) == (0, 0)


def test_a_quick_log_says_how_quick(appends: Appends, clock: Hand) -> None:
    take(appends, clock, 0.004)
    assert appends.condition() == Condition("ok", "an event takes 4.0 ms")
    clock.now += RECENT_S + 1
    assert appends.condition().detail == "", "old figures are no news"


def test_a_slow_disk_is_degraded_with_its_latency(appends: Appends, clock: Hand) -> None:
    take(appends, clock, SLOW_S * 2)
    condition = appends.condition()
    assert condition.state == "degraded"
    assert "1000 ms" in condition.detail


def test_one_slow_append_among_many_is_no_slow_disk(appends: Appends, clock: Hand) -> None:
    for _ in range(40):
        take(appends, clock, 0.002)
    take(appends, clock, 1.0)
    assert appends.condition().state == "ok"


def test_an_append_that_waits_while_nats_answers_is_a_log_that_takes_nothing(appends: Appends, clock: Hand) -> None:
    number = appends.begin()
    clock.now += STUCK_S + 7.5
    assert appends.condition().state == "down"
    assert "10 s" in appends.condition().detail
    assert appends.condition(connected=False).state == "degraded", "then NATS is what is down"
    appends.end(number, acknowledged=False)
    assert appends.condition().state == "ok"
    assert appends.acknowledged == 0


def test_an_append_that_waited_through_an_outage_is_no_slow_disk(appends: Appends, clock: Hand) -> None:
    take(appends, clock, STUCK_S + 1)
    assert appends.condition() == Condition("ok", "")


def test_a_full_log_is_said_until_an_event_is_taken_again(appends: Appends, clock: Hand) -> None:
    appends.refused(full=False)
    assert appends.condition().state == "ok"
    appends.refused(full=True)
    assert appends.condition().state == "down"
    assert "Free some space" in appends.condition().detail
    take(appends, clock, 0.001)
    assert appends.condition().state == "ok"


def test_only_refusals_for_want_of_room_are_full() -> None:
    assert is_full(ServiceUnavailableError(code=503, err_code=10023, description="insufficient resources"))
    assert not is_full(BadRequestError(code=400, err_code=10071, description="wrong last sequence"))
    assert not is_full(TimeoutError())


def test_the_worst_condition_wins_and_the_first_of_equals() -> None:
    slow, late, down = Condition("degraded", "slow"), Condition("degraded", "late"), Condition("down", "gone")
    assert worst(Condition(), slow, late) is slow
    assert worst(slow, down) is down
    assert worst() == Condition()


@pytest.mark.parametrize(
    ("told", "expected"),
    [
        (True, Condition()),
        (False, Condition("down")),
        ({"state": "degraded", "detail": "slow"}, Condition("degraded", "slow")),
        ({"state": "melted"}, Condition("down")),
        ("yes", Condition("down")),
    ],
)
def test_a_health_answer_of_another_release_is_read(told: object, expected: Condition) -> None:
    assert read(told) == expected
