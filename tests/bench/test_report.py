"""Verdicts and display of figures."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from bench import report
from bench.report import Figure, Results


def figure(value: float | None, *, target: float | None = 10.0, at_least: bool = False, note: str = "") -> Figure:
    return Figure(
        area="audio",
        what="round trip",
        unit="ms",
        value=value,
        baseline=0.2,
        beside="bare echo",
        target=target,
        aim="at least" if at_least else "at most",
        note=note,
    )


def results(*figures: Figure, noisy: tuple[str, ...] = (), quick: bool = False) -> Results:
    return Results(
        taken_at="2026-01-02T03:04:05+00:00",
        quick=quick,
        machine={"cores": 2, "cpu": "a processor", "memory_gib": 8, "system": "Linux", "python": "3.11", "nats-server": "2.15.1"},
        load_before=0.1,
        load_after=1.2,
        noisy=list(noisy),
        figures=list(figures),
        detail={},
    )


@pytest.mark.parametrize(
    ("value", "at_least", "met"), [(10.0, False, True), (10.1, False, False), (10.0, True, True), (9.9, True, False), (None, False, False)]
)
def test_a_target_is_met_at_its_bound_and_missed_beyond_it(value: float | None, at_least: bool, met: bool) -> None:
    assert figure(value, at_least=at_least).met is met


def test_a_figure_without_a_target_is_neither_met_nor_missed() -> None:
    assert figure(5.0, target=None).met is None
    assert report.missed(results(figure(None, target=None))) == []


def test_only_missed_figures_are_missed() -> None:
    bad = figure(11.0)
    assert report.missed(results(figure(9.0), bad)) == [bad]


def test_results_are_read_back_as_they_were_written(tmp_path: Path) -> None:
    written = results(figure(1.234, note="three rounds"), figure(None))
    report.save(written, tmp_path / "out" / "results.json")
    assert report.load(tmp_path / "out" / "results.json") == written


def test_the_markdown_has_a_row_for_each_figure_and_says_on_what_it_was_taken() -> None:
    text = report.as_markdown(results(figure(1.234), figure(None, note="the client failed")))
    assert "| round trip | 1.23 ms | 0.20 ms (bare echo) | ≤ 10 ms | yes |" in text
    assert "| round trip (the client failed) | not measured | 0.20 ms (bare echo) | ≤ 10 ms | **no** |" in text
    assert "2026-01-02, 2 cores (a processor), 8 GiB" in text


def test_a_noisy_or_quick_run_says_so() -> None:
    text = report.circumstances(results(noisy=("load average 4.00 before the run",), quick=True))
    assert "quick run" in text
    assert "Noisy, not to be quoted: load average 4.00 before the run." in text


def test_the_table_is_printed_whole() -> None:
    console = Console(width=160, record=True)
    report.show(results(figure(1.0), figure(20.0)), console)
    assert console.export_text().count("round trip") == 2


@pytest.mark.parametrize(
    ("value", "said"), [(0, "0 ms"), (1.5, "1.50 ms"), (15.25, "15.2 ms"), (1500.4, "1,500 ms"), (None, "not measured")]
)
def test_values_are_shown_with_as_many_digits_as_matter(value: float | None, said: str) -> None:
    assert report.shown(value, "ms") == said


def test_a_miss_is_not_rounded_to_its_target() -> None:
    assert report.measured(figure(0.5021, target=0.5)) == "0.5021 ms"
    assert report.measured(figure(0.4979, target=0.5)) == "0.50 ms"
    assert report.measured(figure(10_000.4, target=10_000.0)) == "10,000 ms", "five digits are enough"


def test_what_was_subtracted_is_named_beside_the_raw_value() -> None:
    one = Figure(area="x", what="gap", unit="ms", value=9.0, raw=33.0, subtracted="the provider's own gap", needs="a standby")
    assert report.rows(results(one)) == [("gap (needs a standby)", "9 ms; raw 33 ms, less the provider's own gap", "", "", "")]


@pytest.mark.parametrize("fields", [{"baseline": 1.0}, {"beside": "an echo"}, {"raw": 1.0}, {"subtracted": "the stand-in"}])
def test_a_baseline_without_a_name_and_a_subtraction_without_the_raw_value_cannot_be_said(fields: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="belong together"):
        Figure(area="x", what="gap", unit="ms", value=9.0, **fields)


def test_a_baseline_that_could_not_be_taken_leaves_the_figure_as_it_is() -> None:
    one = Figure(area="x", what="gap", unit="ms", value=9.0)
    assert report.beside(one, "an echo", None) == one
    assert report.beside(one, "an echo", 3.0).baseline == 3.0
