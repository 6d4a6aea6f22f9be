"""A pytest plugin that selects the tests of a tier and notes the result of each test in a file.

`-p deploy.testrun.recorder --tier NAME --record FILE`. The file has a JSON object a line, a `Part` of a test each. Under pytest-xdist the
process that hands out the tests writes it, so a worker that dies takes no result of others along.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import msgspec
import pytest

from deploy.testrun import tiers

LINES: Final = 15
"""Last lines of a failure's text that are kept: the failing statement, the values, and the place."""


class Part(msgspec.Struct, frozen=True):
    """One part of a test: its set-up, its call or its end. `when` is `collect` for a module that could not be read."""

    test: str
    when: str
    outcome: str
    seconds: float
    error: str = ""
    """First line of the error; empty where there was none."""
    lines: tuple[str, ...] = ()


class Result(msgspec.Struct):
    """A test as its parts tell it."""

    id: str
    seconds: float = 0.0
    failed: Part | None = None


def pytest_addoption(parser: pytest.Parser) -> None:
    """Take the options of a run."""
    group = parser.getgroup("voxbridge")
    group.addoption("--tier", choices=tiers.NAMES, help="run the tests of this tier alone (deploy/testrun/tiers.py)")
    group.addoption("--part", choices=tiers.PARTS, help="run the tests that go side by side, those of pages, or those that go alone")
    group.addoption("--record", type=Path, help="write the result of each test to this file")


def pytest_configure(config: pytest.Config) -> None:
    """Begin the file, in the process that hands out the tests; in the quick tier, refuse every connection."""
    if config.getoption("--tier") == "quick":
        sys.addaudithook(_refuse_servers)
    path = config.getoption("--record")
    if path is not None and not hasattr(config, "workerinput"):
        config.pluginmanager.register(_Recorder(path), "voxbridge-recorder")


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave out the modules of which no test is in the tier, or none in this part of it, without reading them."""
    tier, part = config.getoption("--tier"), config.getoption("--part")
    if tier is None or collection_path.is_dir():
        return None
    module = collection_path.relative_to(config.rootpath).as_posix()
    return None if tiers.may_hold(tier, module) and (not part or tiers.in_part(part, module)) else True


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out the tests that are not in the tier, or not in this part of it."""
    tier, part = config.getoption("--tier"), config.getoption("--part")
    wanted = [item for item in items if (not tier or tiers.holds(tier, item.nodeid)) and (not part or tiers.in_part(part, item.nodeid))]
    if len(wanted) < len(items):
        kept = set(wanted)
        config.hook.pytest_deselected(items=[item for item in items if item not in kept])
        items[:] = wanted


def _refuse_servers(event: str, args: tuple[object, ...]) -> None:
    if event in ("socket.connect", "socket.bind") and isinstance(args[1], tuple):
        raise RuntimeError(f"A test of the quick tier uses no server, and this one reaches for {args[1]}: see deploy/testrun/tiers.py.")


class _Recorder:
    def __init__(self, path: Path) -> None:
        self._path = path
        path.write_bytes(b"")

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._write(Part(report.nodeid, str(report.when), report.outcome, report.duration, *_error(report)))

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            self._write(Part(report.nodeid, "collect", report.outcome, 0.0, *_error(report)))

    def _write(self, part: Part) -> None:
        with self._path.open("ab") as file:  # at once: what a run was killed in is known as well
            file.write(msgspec.json.encode(part) + b"\n")


def _error(report: pytest.TestReport | pytest.CollectReport) -> tuple[str, tuple[str, ...]]:
    if not report.failed:
        return "", ()
    text = [line for line in report.longreprtext.splitlines() if line.strip()]
    crash = getattr(report.longrepr, "reprcrash", None)
    said = str(crash.message) if crash is not None else next(iter(text[-1:]), "it failed without a word")
    return said.strip().splitlines()[0][:300] if said.strip() else "it failed without a word", tuple(text[-LINES:])


def read(path: Path) -> dict[str, Result]:
    """Return the tests of a file by their node ids, in the order of their first parts. A last line that was cut off is left out."""
    found: dict[str, Result] = {}
    for part in _parts(path):
        test = found.setdefault(part.test, Result(part.test))
        test.seconds += part.seconds
        if part.outcome == "failed" and test.failed is None:
            test.failed = part
    return found


def _parts(path: Path) -> Iterator[Part]:
    if path.exists():
        for line in path.read_bytes().splitlines(keepends=True):
            if line.endswith(b"\n"):
                yield msgspec.json.decode(line, type=Part)
