"""Runs of planted tests: which are green, which are red, and what each says."""

from __future__ import annotations

import datetime
import json
import os
import re
import shlex
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from deploy.testrun import ROOT, SEED, ending, leftovers, quarantine, tiers
from deploy.testrun.recorder import Part, Result
from tests.eventually import BOUND_S

TODAY = datetime.date(2026, 11, 26)
FAILS_ONCE = """
    from pathlib import Path

    def fails_once(name):
        seen = Path(__file__).with_name(name)
        if not seen.exists():
            seen.touch()
            raise AssertionError(f"{name} was not there yet")
"""


class Planted:
    """A module of planted tests, and runs of it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.module = folder / "test_planted.py"
        self.quarantine = folder / "tests" / "quarantine.txt"
        self.quarantine.parent.mkdir()
        (folder / "pytest.ini").write_text("[pytest]\nasyncio_default_fixture_loop_scope = function\n")

    def write(self, *texts: str) -> None:
        self.module.write_text("".join(textwrap.dedent(text) for text in texts))

    @property
    def command(self) -> list[str]:
        command = [sys.executable, "-m", "deploy.testrun", "test", "--root", str(self.folder)]
        return [*command, self.module.name, "-p", "no:cacheprovider", "-p", "no:schemathesis", "-p", "no:anyio"]

    @property
    def env(self) -> dict[str, str]:
        return {name: value for name, value in os.environ.items() if "XDIST" not in name and name != SEED}

    def run(self) -> subprocess.CompletedProcess[str]:
        return subprocess.run(self.command, cwd=ROOT, env=self.env, capture_output=True, text=True, check=False, timeout=2 * BOUND_S)

    def node(self, test: str) -> str:
        return f"{self.module.name}::{test}"


@pytest.fixture
def planted(tmp_path: Path) -> Planted:
    return Planted(tmp_path)


def test_a_test_that_always_fails_is_red_and_its_last_lines_repeat_it(planted: Planted) -> None:
    planted.write("def test_sum():\n    found = 1 + 1\n    assert found == 3\n\ndef test_fine(): pass\n")
    done = planted.run()
    assert done.returncode == 1
    last = done.stdout.splitlines()[-ending.LINES :]
    assert "RED: 1 failed. Seed 20261126." in last
    assert "  assert 2 == 3" in last
    (again,) = [line.partition("again: ")[2] for line in last if "again: " in line]
    assert planted.node("test_sum") in again
    command = again.replace(".venv/bin/pytest", f"{shlex.quote(sys.executable)} -m pytest")
    repeated = subprocess.run(command, shell=True, cwd=planted.folder, env=planted.env, capture_output=True, text=True, check=False)
    assert "assert 2 == 3" in repeated.stdout, repeated.stdout + repeated.stderr


def test_a_test_that_passes_the_second_time_is_green_and_said(planted: Planted) -> None:
    planted.write(FAILS_ONCE, "def test_late(): fails_once('a')\n")
    done = planted.run()
    assert done.returncode == 0, done.stdout
    assert f"FLAKY {planted.node('test_late')}: AssertionError: a was not there yet" in done.stdout
    (flaky,) = json.loads((planted.quarantine.with_name("out") / "flaky.json").read_text())
    assert (flaky["test"], flaky["seed"]) == (planted.node("test_late"), 20_261_126)


def test_a_fourth_test_that_passes_the_second_time_is_red(planted: Planted) -> None:
    planted.write(FAILS_ONCE, *(f"def test_{name}(): fails_once('{name}')\n" for name in "abcd"))
    done = planted.run()
    assert done.returncode == 1
    assert len(re.findall("^FLAKY ", done.stdout, re.MULTILINE)) == 4
    assert "4 tests passed only the second time, and 3 is the most" in done.stdout


def test_a_test_in_quarantine_runs_and_does_not_decide(planted: Planted) -> None:
    planted.write("def test_broken(): assert False\n")
    today = datetime.datetime.now(datetime.UTC).date()
    planted.quarantine.write_text(f"# a comment\n{today} | {planted.node('test_broken')} | waits for a mending\n")

    done = planted.run()
    assert done.returncode == 0, done.stdout
    assert f"QUARANTINED failed {planted.node('test_broken')}" in done.stdout


def test_an_old_line_and_one_that_names_no_test_are_red(planted: Planted) -> None:
    planted.write("def test_fine(): pass\n")
    planted.quarantine.write_text(f"2020-01-01 | {planted.node('test_fine')} | long ago\n{TODAY} | {planted.node('test_none')} | what\n")
    done = planted.run()
    assert done.returncode == 1
    assert f"QUARANTINED passed {planted.node('test_fine')}" in done.stdout
    assert re.search(r"quarantine.txt:1 is \d+ days old, and 14 is the most", done.stdout)
    assert f"quarantine.txt names {planted.node('test_none')}, which is no test" in done.stdout


def test_a_process_that_is_left_is_red_named_and_ended(planted: Planted) -> None:
    planted.write("""
        import subprocess, sys

        def test_leaves():
            # its parent is gone at once, as that of a daemon
            subprocess.run(["sh", "-c", "sleep 1234 > /dev/null & echo $! > pid"], check=True, cwd=__file__.rpartition("/")[0])
    """)
    done = planted.run()
    assert done.returncode == 1
    pid = int((planted.folder / "pid").read_text())
    assert f"left behind: process {pid}, sleep 1234, which {planted.node('test_leaves')} started" in done.stdout
    assert not psutil.pid_exists(pid)


def test_a_process_that_lost_its_parent_is_gone_when_it_ends(planted: Planted) -> None:
    planted.write("""
        import os, pathlib, subprocess

        def test_orphan():
            script = "sleep 60 > /dev/null 2>&1 & echo $!"
            pid = subprocess.run(["sh", "-c", script], check=True, capture_output=True, text=True).stdout.strip()
            os.kill(int(pid), 9)
            while pathlib.Path("/proc", pid).exists():  # a zombie is there as well, and the time limit of tests ends this
                pass
    """)
    done = planted.run()
    assert done.returncode == 0, done.stdout


def test_a_file_that_is_left_is_red_and_named(planted: Planted) -> None:
    planted.write("import tempfile\n\ndef test_leaves(): tempfile.mkdtemp(prefix='forgotten-')\n")
    done = planted.run()
    assert done.returncode == 1
    assert re.search(r"left behind: forgotten-\w+ in the folder for temporary files", done.stdout)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_run_leaves_nothing(planted: Planted, number: signal.Signals) -> None:
    planted.write("""
        import os, pathlib, subprocess, threading

        def test_waits():
            child = subprocess.Popen(["sleep", "1234"], start_new_session=True)
            here = pathlib.Path(__file__)
            here.with_name("made").write_text(f"{child.pid} {os.environ['TMPDIR']}")
            threading.Event().wait()
    """)
    run = subprocess.Popen(planted.command, cwd=ROOT, env=planted.env, stdout=subprocess.PIPE, text=True)
    made = planted.folder / "made"
    _until(lambda: made.exists() and made.read_text().count(" ") == 1)
    pid, folder = made.read_text().split()
    run.send_signal(number)
    said, _ = run.communicate(timeout=BOUND_S)
    assert run.returncode == 130
    assert "Interrupted. 1 process was ended." in said
    assert not psutil.pid_exists(int(pid))
    assert not Path(folder).exists()


def _until(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + BOUND_S
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.01)


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("26.11.2026 | a::b | c", "quarantine.txt:1 is not `date | node id | reason`"),
        ("2026-11-26 | a::b", "quarantine.txt:1 is not `date | node id | reason`"),
        ("2026-11-11 | a::b | c", "quarantine.txt:1 is 15 days old, and 14 is the most: mend a::b or the product."),
        ("2026-11-12 | a::b | c", ""),
    ],
)
def test_a_line_of_the_quarantine_has_a_date_a_test_and_a_reason(planted: Planted, line: str, problem: str) -> None:
    planted.quarantine.write_text(f"{line}\n")
    assert "".join(quarantine.read(planted.quarantine, TODAY).problems).startswith(problem)
    assert bool(quarantine.read(planted.quarantine, TODAY).problems) == bool(problem)


@pytest.mark.parametrize("count", [quarantine.LIMIT, quarantine.LIMIT + 1])
def test_the_quarantine_is_short(planted: Planted, count: int) -> None:
    planted.quarantine.write_text("".join(f"{TODAY} | a::b{number} | c\n" for number in range(count)))
    assert bool(quarantine.read(planted.quarantine, TODAY).problems) == (count > quarantine.LIMIT)


@pytest.mark.parametrize("count", [1, 6, 7, 40])
def test_the_end_of_a_red_run_has_forty_lines_at_most(count: int) -> None:
    lines = tuple(f"E   line {number}" for number in range(15))
    failed = [Result(f"a::b{number}", failed=Part(f"a::b{number}", "call", "failed", 1.0, "wrong", lines)) for number in range(count)]
    said = ending.red(failed, ["left behind: a"] * 30, 7)
    assert len(said) <= ending.LINES
    assert sum("again: VOXBRIDGE_TEST_SEED=7 .venv/bin/pytest --hypothesis-seed=7 a::b" in line for line in said) >= min(count, 5)


def test_every_entry_of_the_tiers_is_there() -> None:
    for entry in (*tiers.QUICK, *tiers.ONLY_ALL, *tiers.ALONE, *tiers.PAGES, tiers.LONG):
        path, _, test = entry.partition("::")
        assert (ROOT / path).exists(), entry
        assert not test or f"def {test.partition('[')[0]}(" in (ROOT / path).read_text(), entry


def test_a_tier_holds_the_tier_before_it() -> None:
    for entry in tiers.QUICK:
        assert tiers.holds("test", entry), f"{entry} is in the quick tier and not in `make test`"
    for entry in tiers.ONLY_ALL:
        assert not tiers.holds("test", entry)
        assert tiers.holds("all", entry)
    assert not tiers.holds("all", "tests/long/test_orders.py::test_a")


def test_a_module_is_in_one_part() -> None:
    for module in (*tiers.ALONE, *tiers.PAGES, "tests/shared/test_ids.py"):
        assert sum(tiers.in_part(part, module) for part in tiers.PARTS) == 1, module
    for module in tiers.PAGES:
        assert tiers.in_part("pages", f"{module}::test_a"), module


def test_contributing_has_the_table_of_the_tiers() -> None:
    assert tiers.table() in (ROOT / "CONTRIBUTING.md").read_text(), "print it with `python -m deploy.testrun.tiers`"


def test_a_machine_without_git_runs_the_tests(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert leftovers.checkout(ROOT) == frozenset()
