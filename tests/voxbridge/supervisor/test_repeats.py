from __future__ import annotations

from voxbridge.supervisor.repeats import LINES_LIMIT, QUIET_S, Repeats

LINE = "2026-11-21T11:40:{:02}.576Z error gateway-{} uvicorn.error: Exception in ASGI application"


def test_a_line_that_recurs_is_said_once_in_a_while_with_its_count() -> None:
    repeats = Repeats()
    assert repeats.worth_saying(LINE.format(1, "a"), 1.0) == LINE.format(1, "a")
    assert [repeats.worth_saying(LINE.format(2, "b"), 1.0 + n / 10) for n in range(5)] == [None] * 5
    said = repeats.worth_saying(LINE.format(3, "a"), 1.0 + QUIET_S)
    assert said == LINE.format(3, "a") + " (and 5 times more since it was last said)"


def test_different_lines_are_all_said() -> None:
    repeats = Repeats()
    assert all(repeats.worth_saying(f"Traceback {n}", 0.0) for n in range(2 * LINES_LIMIT))


def test_beyond_the_limit_the_oldest_line_is_forgotten() -> None:
    repeats = Repeats()
    for n in range(LINES_LIMIT + 1):
        repeats.worth_saying(f"line {n}", 0.0)
    assert repeats.worth_saying("line 1", 0.1) is None
    assert repeats.worth_saying("line 0", 0.1) == "line 0"


def test_a_long_line_is_cut() -> None:
    assert Repeats().worth_saying("x" * 1_000, 0.0) == "x" * 300
