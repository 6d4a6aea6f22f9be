"""The table of choices in docs/models.md."""

from __future__ import annotations

import pytest

from bench.choice import page
from bench.choice.asking import Answer
from bench.choice.measure import Measured, Routing

ROUTING = Routing(80, [("a", 1), ("a", 7), ("b", 0)], {"call": 2, "words": 1}, {"words": 3}, 0.3, 0.2, 0.4)


def _answer(tool: str, called: str, *, arguments: bool = True, kind: str = "request") -> Answer:
    right = tool == called
    return Answer(kind, "x", tool, called, {}, "", right, right and arguments, 1.0)


FOUND = Measured(
    "2026-11-23T07:00:00+00:00",
    "held_out",
    ROUTING,
    [
        _answer("a", "a"),
        _answer("a", "", arguments=False),
        _answer("b", "b", arguments=False),
        _answer("", "a", kind="talk"),
        _answer("b", "b", kind="follow-up"),
    ],
    0.5,
)


def test_the_table_says_what_was_right_and_names_what_was_missed() -> None:
    table = page.table(FOUND)
    assert "| wanted function among the router's best six | 33.3 % | ≥ 95 % |" in table
    assert "| right function | 66.7 % | ≥ 85 % |" in table
    assert "| right function and arguments | 33.3 % | ≥ 75 % |" in table
    assert "| 1 lines of small talk that call | 100.0 % | ≤ 5 % |" in table
    assert "| `a` | 2 | 1 | 1 | words 1 |" in table
    assert "| `b` | 1 | 1 | 0 |  |" in table


def test_the_table_is_written_into_its_place_alone() -> None:
    text = f"before {page.BEGIN} old {page.END} after"
    assert page.written(text, FOUND) == f"before {page.BEGIN}\n{page.table(FOUND)}{page.END} after"
    with pytest.raises(ValueError, match="has no"):
        page.written("nothing", FOUND)


def test_the_page_shows_the_published_measurement() -> None:
    text = page.PAGE.read_text(encoding="utf-8")
    assert page.written(text, page.load()) == text
