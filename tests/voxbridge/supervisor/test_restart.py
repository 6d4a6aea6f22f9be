from __future__ import annotations

from voxbridge.supervisor.restart import FIRST_WAIT_S, LAST_WAIT_S, LOOP_AFTER, SERVED_WAIT_S, STEADY_S, History, after_exit


def test_a_process_that_ran_for_long_is_back_after_the_first_wait() -> None:
    restart = after_exit(History(failures=4), ran_s=STEADY_S)
    assert restart.wait_s == FIRST_WAIT_S
    assert restart.history == History(failures=1)
    assert not restart.looping


def test_short_lives_wait_twice_as_long_each_time_up_to_the_bound() -> None:
    history, waits = History(), []
    for _ in range(10):
        history, wait_s, _, _ = after_exit(history, ran_s=0.01)
        waits.append(round(wait_s, 3))
    assert waits == [0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 5.0, 5.0, 5.0, 5.0]
    assert max(waits) == LAST_WAIT_S


def test_a_crash_loop_is_news_once() -> None:
    history, news, looping = History(), [], []
    for _ in range(LOOP_AFTER + 3):
        history, _, loop, new = after_exit(history, ran_s=0.0)
        news.append(new)
        looping.append(loop)
    assert news.count(True) == 1
    assert news.index(True) == LOOP_AFTER - 1
    assert looping == [False] * (LOOP_AFTER - 1) + [True] * 4


def test_ten_thousand_failures_do_not_overflow() -> None:
    assert after_exit(History(failures=10_000), ran_s=0.0).wait_s == LAST_WAIT_S


def test_a_process_that_was_ready_is_never_waited_for_long() -> None:
    history, waits = History(), []
    for _ in range(6):
        history, wait_s, _, _ = after_exit(history, ran_s=1.0, served=True)
        waits.append(round(wait_s, 3))
    assert waits == [0.1, 0.2, 0.4, 0.4, 0.4, 0.4]
    assert max(waits) == SERVED_WAIT_S
    assert after_exit(history, ran_s=1.0).wait_s == 5.0
