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
    "audio round trip, browser socket → gateway → NATS → voice and back, 50 sessions of 20 ms frames, p50 / p99": (
        "audio.p50",
        "audio.p99",
    ),
    "the same to Gemini Live (a stand-in) and back": ("realtime.p50", "realtime.p99"),
    "frames lost of these": ("audio.lost", "realtime.lost"),
    "CPU per frame, all processes and NATS, 100 sessions": ("audio.cpu",),
    "the same, in bare echoes": ("audio.share",),
    "CPU per frame on Gemini Live, all processes and NATS, 50 sessions": ("realtime.cpu",),
    "CPU per frame beside Pipecat, 20 sessions each on one core": ("peers.share",),
    "sessions on one gateway and one voice process with p99 ≤ 100 ms; on Gemini Live with p99 ≤ 200 ms": ("sessions", "realtime.sessions"),
    "memory per further session, all processes: idle; talking in echo; talking to Gemini Live": (
        "memory.idle",
        "talking.echo",
        "talking.gemini",
    ),
    "start → `setup_complete`: local mode, up to 50 sessions held, p95; the first Gemini call of a fresh worker": (
        "starts.p95",
        "realtime.first",
    ),
    "end of speech → first audio sent, local models, p50": ("speech.p50",),
    "the local model beside four busy loops: first token against quiet; the longest of 20 short answers": (
        "busy.against_quiet",
        "busy.whole_4",
    ),
    "first token against a warm one: the models service killed; started anew; after a handoff between local agents": (
        "warm.killed",
        "warm.started",
        "warm.handoff",
    ),
    "barge-in in the browser, onset → silence, p50 / longest": ("barge_in.p50", "barge_in.longest"),
    "handoff on Gemini Live, tool call → first audio of the next agent, raw": ("peers.handoff",),
    "an event appended and acknowledged, synced to disk, p50": ("appends.p50",),
    "a lost client resumes, 500 missed events, p95": ("resumes.p95",),
    "`kill -9` of the voice worker at random moments → audio or state again, p95: quiet; at load 4": ("kills.quiet", "kills.load"),
    "last words lost over these": ("kills.quiet.lost", "kills.load.lost"),
    "a read behind the leader of three replicas, p95": ("log.barrier.p95",),
    "1,000 idle or half-open sockets and 20 that trickle: added p99 of 20 calls; memory of the gateway": ("doors.added", "doors.memory"),
    "SIGTERM of the voice worker → audio again, longest; with 20 calls on Gemini Live": ("takeovers.stopped", "live_calls.drained"),
    "the provider's `goAway`: longest gap beyond the provider's own; the caller's frames lost": (
        "live_calls.go_away",
        "live_calls.go_away_lost",
    ),
    "`kill -9` of the gateway → the browser is back in its call, p95": ("gateway_back",),
    "replay of a call of ten minutes, the whole command": ("past.replay",),
    "opening a session of half an hour in Studio, p50": ("past.timeline",),
}
"""Rows of README, each with the keys of its figures."""


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
    return (key for quoted in QUOTED.values() for key in quoted if key not in keys and key.partition(".")[0] not in failed)


def _readme(found: Results) -> str:
    by_key = {figure.key: figure for figure in found.figures if figure.key}
    rows = [(what, *_cells([by_key[key] for key in keys if key in by_key])) for what, keys in QUOTED.items()]
    return "\n".join([*report.table(HEADS, rows), "", circumstances(found)]) + "\n"


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
