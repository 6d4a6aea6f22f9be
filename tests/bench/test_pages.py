"""README and docs quote exactly one run."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from click.testing import CliRunner

from bench import pages, report
from bench.__main__ import main
from bench.pages import BEGIN, END, PageError, differing, newest, publish
from bench.report import Figure, Results
from bench.stack import ROOT
from tests.bench.test_peers_report import PIPECAT, RELAY, comparison, ours
from tests.bench.test_report import results

KEYS = sorted({*pages.WHOLE, *(key for keys in pages.QUOTED.values() for key in keys)})
PAGES = ("README.md", "docs/benchmarks.md", "docs/benchmarks-peers.md")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Make a project with the three pages."""
    (tmp_path / "docs" / "images").mkdir(parents=True)
    for page in PAGES:
        (tmp_path / page).write_text(f"before\n{BEGIN}\nold\n{END}\nafter\n")
    return tmp_path


def a_run(*, day: str = "2026-01-02", value: float = 1.5, without: str = "", quick: bool = False) -> Results:
    figures = [Figure(area="x", what=key, key=key, unit="ms", value=value, target=2.0) for key in KEYS if key != without]
    found = results(*figures, quick=quick)
    compared = msgspec.json.decode(msgspec.json.encode(comparison(ours(), RELAY, PIPECAT)))
    return msgspec.structs.replace(found, taken_at=f"{day}T03:04:05+00:00", detail={"peers": compared})


def test_a_run_is_written_whole_and_every_page_says_what_it_says(root: Path, tmp_path: Path) -> None:
    (tmp_path / "drawn.png").write_bytes(b"picture")
    found = a_run()
    written = publish(found, {"benchmarks.png": tmp_path / "drawn.png"}, root)
    assert report.load(root / "docs/benchmarks/2026-01-02.json") == found
    assert {str(path) for path in written} == {*PAGES, "docs/benchmarks/2026-01-02.json", "docs/images/benchmarks.png"}
    for page in PAGES:
        text = (root / page).read_text()
        assert text.startswith(f"before\n{BEGIN}\n")
        assert text.endswith(f"{END}\nafter\n")
        assert "old" not in text
    assert "| end of speech → first sound of the answer, local models, p50 | 1.50 ms |" in (root / "README.md").read_text()
    assert (root / "docs/images/benchmarks.png").read_bytes() == b"picture"
    assert differing(root) == []


def test_a_miss_is_seen_as_one_in_the_readme(root: Path) -> None:
    publish(a_run(value=2.5), {}, root)
    text = (root / "README.md").read_text()
    assert "| ≤ 2 ms; ≤ 2 ms | **no** |" in text
    assert f"{len(KEYS)} of the {len(KEYS)} figures of this run that have a target missed it." in text


def test_a_page_that_was_edited_by_hand_is_named(root: Path) -> None:
    publish(a_run(), {}, root)
    page = root / "README.md"
    page.write_text(page.read_text().replace("1.50 ms", "0.50 ms"))
    assert differing(root) == ["README.md differs from docs/benchmarks/2026-01-02.json: run `python -m bench --publish`."]


def test_the_newest_run_is_the_one_that_counts(root: Path) -> None:
    publish(a_run(day="2026-01-02"), {}, root)
    publish(a_run(day="2026-01-03", value=1.75), {}, root)
    run = newest(root)
    assert run is not None
    assert run.name == "2026-01-03.json"
    assert "1.75 ms" in (root / "README.md").read_text()
    assert differing(root) == []


def test_before_the_first_run_there_is_nothing_to_quote(root: Path) -> None:
    assert differing(root) == ["There is no run in docs/benchmarks: run `make bench`, then `python -m bench --publish`."]


def test_a_quick_run_is_not_quoted(root: Path) -> None:
    with pytest.raises(PageError, match="quick"):
        publish(a_run(quick=True), {}, root)


def test_a_run_of_some_areas_is_not_quoted(root: Path) -> None:
    with pytest.raises(PageError, match=r"resumes\.p95 are missing"):
        publish(a_run(without="resumes.p95"), {}, root)


def test_an_area_that_failed_is_told_as_not_measured(root: Path) -> None:
    found = a_run(without="gateway_back")
    failed = Figure(area="gateway_back", what="gateway_back", unit="", value=None, target=0, note="failed: no answer")
    publish(msgspec.structs.replace(found, figures=[*found.figures, failed]), {}, root)
    assert "| not measured |  |  | **no** |" in (root / "README.md").read_text()
    assert "failed: no answer" in (root / "docs/benchmarks.md").read_text()


def test_a_page_without_marks_is_named_and_nothing_is_written(root: Path) -> None:
    (root / "docs/benchmarks.md").write_text("nothing")
    with pytest.raises(PageError, match=r"benchmarks\.md needs"):
        publish(a_run(), {}, root)
    assert "old" in (root / "README.md").read_text()
    assert newest(root) is None


def test_the_pages_of_the_project_have_their_marks() -> None:
    for page in PAGES:
        text = (ROOT / page).read_text()
        assert text.index(BEGIN) < text.index(END)


def test_without_a_last_run_publishing_says_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(report.load, "__defaults__", (tmp_path / "none.json",))
    ran = CliRunner().invoke(main, ["--publish"])
    assert (ran.exit_code, ran.output) == (1, "Error: There are no results yet: run `python -m bench`.\n")
