"""The command line of the benchmark."""

from __future__ import annotations

from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from bench import report
from bench.__main__ import AREAS, _failed, chosen, main
from bench.plot import draw
from tests.bench.test_report import figure, results


def test_without_a_choice_everything_is_measured() -> None:
    assert chosen("") == AREAS


def test_areas_are_named_with_commas_and_either_dash() -> None:
    assert chosen("audio, barge-in") == ("audio", "barge_in")


def test_an_unknown_area_is_refused_with_the_names_of_the_others() -> None:
    with pytest.raises(click.BadParameter, match=r"audoi: there are audio"):
        chosen("audoi")


def test_the_markdown_of_the_last_run_can_be_printed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written = results(figure(1.0))
    report.save(written, tmp_path / "results.json")
    monkeypatch.setattr(report.load, "__defaults__", (tmp_path / "results.json",))
    assert CliRunner().invoke(main, ["--markdown"]).output == report.as_markdown(written)


def test_without_a_last_run_it_says_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(report.load, "__defaults__", (tmp_path / "none.json",))
    ran = CliRunner().invoke(main, ["--markdown"])
    assert (ran.exit_code, ran.output) == (1, "Error: There are no results yet: run `python -m bench`.\n")


def test_a_picture_is_drawn_of_whatever_was_measured(tmp_path: Path) -> None:
    draw(results(figure(1.0)), tmp_path / "results.png")
    assert (tmp_path / "results.png").stat().st_size > 10_000
    assert (tmp_path / "results.svg").exists()


def test_what_failed_is_told_in_one_line_that_names_nothing_of_the_machine() -> None:
    error = OSError("/home/somebody/x/nats-server did not start at ws://127.0.0.1:1\nTraceback")
    assert _failed("log", error).note == "failed: … did not start at ws://127.0.0.1:1"
    assert _failed("log", TimeoutError()).note == "failed: TimeoutError"
