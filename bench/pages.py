"""The pages that quote figures, generated from one run: its JSON is committed, and README and docs show its values.

Owns which figures README quotes and the markers of the generated parts. `deploy.gates.figures` refuses a page that differs. The tables
themselves are made by `report` and `peers.report`.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

import msgspec

from bench import report
from bench.peers import report as peers_report
from bench.peers.results import Comparison
from bench.report import HEADS, Figure, Results, aimed, circumstances, measured, reached, stood_beside
from bench.stack import ROOT

BEGIN: Final = "<!-- figures: begin -->"
END: Final = "<!-- figures: end -->"
RUNS: Final = Path("docs", "benchmarks")
"""Folder of the committed runs: one file a day; pages quote the newest one."""

IMAGES: Final = Path("docs", "images")
PICTURES: Final = ("benchmarks.png", "benchmarks-peers.png")

QUOTED: Final[Mapping[str, tuple[str, ...]]] = {
    "audio round trip, browser socket → gateway → NATS → voice and back, 50 calls, p50 / p99": ("audio.p50", "audio.p99"),
    "the same to Gemini Live (a stand-in) and back": ("realtime.p50", "realtime.p99"),
    "end of speech → first sound of the answer, local models, p50": ("speech.p50",),
    "barge-in in the browser, onset → silence, p50 / longest": ("barge_in.p50", "barge_in.longest"),
    "`kill -9` of the voice worker → audio again, p95: quiet; at load 4": ("kills.quiet", "kills.load"),
    "`kill -9` of the gateway → the browser is back in its call, p95": ("gateway_back",),
}
"""Rows of README, each with the keys of its figures."""

WHOLE: Final = frozenset(
    (
        "appends.p50",
        "at_rest",
        "audio.p50",
        "barge_in.p50",
        "busy.whole_4",
        "doors.added",
        "gateway_back",
        "kills.quiet",
        "live_calls.go_away",
        "log.barrier.p95",
        "memory.idle",
        "past.replay",
        "peers.share",
        "realtime.p50",
        "resumes.p95",
        "sessions",
        "speech.p50",
        "starts.p95",
        "takeovers.stopped",
        "talking.echo",
        "warm.killed",
    )
)
"""Keys of figures, one of each area that a run must have had to be quoted."""


class PageError(Exception):
    """A run that must not be quoted, or a page without markers for the figures. The message says what to do."""


def newest(root: Path = ROOT) -> Path | None:
    """Return the committed run that pages quote, or None before the first."""
    return max((root / RUNS).glob("*.json"), default=None)


def parts(found: Results) -> dict[Path, str]:
    """Return the generated part of each page, by its path from the root; raises `msgspec.ValidationError` for a broken run."""
    run = RUNS / f"{found.taken_at[:10]}.json"
    compared = msgspec.convert(found.detail["peers"], Comparison) if "peers" in found.detail else None
    pages = {
        Path("README.md"): _readme(found),
        Path("docs", "benchmarks.md"): (
            f"{report.as_markdown(found)}\nEvery value behind them: [{run.name}](benchmarks/{run.name}).\n\n"
            f"![Round trips, sessions, starts, and the waterfall of a spoken turn](images/{PICTURES[0]})\n"
        ),
    }
    if compared is not None:
        picture = f"![CPU, round trips, sessions and handoffs](images/{PICTURES[1]})"
        pages[Path("docs", "benchmarks-peers.md")] = f"{peers_report.as_markdown(compared)}\n{picture}\n"
    return pages


def publish(found: Results, pictures: Mapping[str, Path], root: Path = ROOT) -> list[Path]:
    """Write the run, the parts of the pages and the pictures, and return what was written. Raises `PageError`, `FileNotFoundError`."""
    if found.quick:
        raise PageError("The last run was a quick one, which is not to be quoted: run `make bench` without --quick.")
    if missing := list(_missing(found)):
        raise PageError(f"The last run was of some areas only ({', '.join(missing)} are missing): run `make bench` for all of them.")
    whole = {path: _put(root / path, part) for path, part in parts(found).items()}
    run = RUNS / f"{found.taken_at[:10]}.json"
    report.save(found, root / run)
    for path, text in whole.items():
        (root / path).write_text(text, encoding="utf-8")
    for name, picture in pictures.items():
        shutil.copyfile(picture, root / IMAGES / name)
    return [run, *whole, *(IMAGES / name for name in pictures)]


def differing(root: Path = ROOT) -> list[str]:
    """Return one problem for each page that differs from the newest run."""
    run = newest(root)
    if run is None:
        return [f"There is no run in {RUNS}: run `make bench`, then `python -m bench --publish`."]
    found = report.load(run)
    return [
        f"{path} differs from {run.relative_to(root)}: run `python -m bench --publish`."
        for path, part in parts(found).items()
        if (root / path).read_text(encoding="utf-8") != _put(root / path, part)
    ]


def _missing(found: Results) -> Iterator[str]:
    """Return the figures that the run did not try to take. Those of a failed area are reported as not measured instead."""
    keys = {figure.key for figure in found.figures}
    failed = {figure.area for figure in found.figures if figure.value is None}
    return (key for key in sorted(WHOLE) if key not in keys and key.partition(".")[0] not in failed)


def _readme(found: Results) -> str:
    by_key = {figure.key: figure for figure in found.figures if figure.key}
    rows = [(what, *_cells([by_key[key] for key in keys if key in by_key])) for what, keys in QUOTED.items()]
    judged, missed = [figure for figure in found.figures if figure.met is not None], report.missed(found)
    verdict = f"{len(missed)} of the {len(judged)} figures of this run that have a target missed it."
    return "\n".join([*report.table(HEADS, rows), "", verdict, circumstances(found)]) + "\n"


def _cells(figures: list[Figure]) -> tuple[str, str, str, str]:
    """Return the cells measured, beside it, target and reached: one part for each figure, with its requirements."""
    if not figures:
        return "not measured", "", "", "**no**"
    needs = "; ".join(dict.fromkeys(figure.needs for figure in figures if figure.needs))
    values = "; ".join(map(measured, figures))
    verdicts = dict.fromkeys(reached(figure) for figure in figures if figure.met is not None)
    return (
        f"{values} (needs {needs})" if needs else values,
        "; ".join(filter(None, map(stood_beside, figures))),
        "; ".join(filter(None, map(aimed, figures))),
        " / ".join(verdicts),
    )


def _put(page: Path, part: str) -> str:
    """Return the page with this part between its markers; raises `PageError` without them."""
    text = page.read_text(encoding="utf-8")
    head, begin, rest = text.partition(BEGIN)
    _, end, tail = rest.partition(END)
    if not begin or not end:
        raise PageError(f"{page.name} needs {BEGIN} and {END} where the figures belong.")
    return f"{head}{BEGIN}\n{part}{END}{tail}"
