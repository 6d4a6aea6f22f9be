"""`python -m deploy.testrun TIER [ARGS…]`: run the tests of a tier, or with ARGS what pytest makes of them, and say how it went.

Green (exit code 0) is a run in which every test passed, but for three at most that passed when they ran once more, alone, after the rest,
and those in quarantine; which left nothing behind; and whose quarantine is in order. Ctrl-C and SIGTERM end what the run started, and the
exit code is 130 then.
"""

from __future__ import annotations

import argparse
import datetime
import os
import secrets
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from types import FrameType
from typing import Final, NoReturn

import msgspec
import pytest

from deploy.testrun import ROOT, SEED, ending, leftovers, quarantine, recorder, tiers
from deploy.testrun.recorder import Part, Result
from voxbridge.shared.embedded.child import die_with_parent

FLAKY_LIMIT: Final = 3
"""Tests that may pass the second time; one more is red."""

AGAIN_LIMIT: Final = 8
"""Failures that are looked at twice. With more, something is wrong that a second look does not tell."""

STOP_S: Final = 30.0
"""Seconds that pytest has to end its fixtures after Ctrl-C."""

WORKERS: Final = 3
"""Tests at a time on two cores: they mostly wait."""

PAGES: Final = 2
"""Modules at a time whose tests open pages in a browser: each has a product of its own."""

FIXED_SEED: Final = 20_261_126
_PYTEST: Final = (sys.executable, "-m", "pytest")
_BIN: Final = Path(sys.executable).parent
"""Folder of npm and node; for npm alone, since other tests start the node that a user has."""

NPM: Final = "npm test"
_OF_TESTS: Final = (pytest.ExitCode.TESTS_FAILED, pytest.ExitCode.INTERRUPTED)
"""Exit codes of pytest that failed tests explain: a module that cannot be read interrupts it."""

INTERRUPTED: Final = 130


class Interrupted(BaseException):
    """The run was told to stop. No error of a test: nothing but `main` takes it."""


class Flaky(msgspec.Struct, frozen=True):
    """A test that failed, and passed when it ran again: a line of `tests/out/flaky.json`."""

    test: str
    error: str
    seed: int


class Run:
    """One run of a tier, with the temporary folder that everything in it uses."""

    def __init__(self, tier: str, arguments: Sequence[str], seed: int, root: Path) -> None:
        self.tier = tier
        self.root = root
        self.out = root / "tests" / "out"
        self.arguments = arguments
        self.seed = seed
        self.folder = leftovers.make_folder()
        self.out.mkdir(parents=True, exist_ok=True)
        self.tests: dict[str, Result] = {}
        self.problems: list[str] = []
        """Reasons for which the run is red beside its failures."""
        self._own = set[str]()
        self._phases = 0

    def whole(self) -> None:
        """Run every phase once."""
        if self.arguments:
            self.pytest(self.arguments)
            return
        self.pytest(["-n", str(workers()), "--dist", "worksteal", f"--tier={self.tier}", "--part=side", "tests"])
        if self.tier == "quick":
            return
        if any(tiers.may_hold(self.tier, module) for module in tiers.PAGES):
            self.pytest(["-n", str(PAGES), "--dist", "loadfile", f"--tier={self.tier}", "--part=pages", "tests"])
        self.pytest([f"--tier={self.tier}", "--part=alone", "tests"])
        self.npm()

    def pytest(self, arguments: Sequence[str]) -> dict[str, Result]:
        """Run pytest, and return the tests that it ran. What else went wrong than a test is a problem."""
        self._phases += 1
        record, base = self.out / f"{self.folder.name}-{self._phases}.jsonl", self.folder / str(self._phases)
        self._own.add(base.name)
        command = [*_PYTEST, "-p", "deploy.testrun.recorder", f"--record={record}", f"--basetemp={base}"]
        command += ["--tb=short", f"--hypothesis-seed={self.seed}", *arguments]
        try:
            code = self._run(command)
            found = recorder.read(record)
        finally:
            record.unlink(missing_ok=True)
        if code != pytest.ExitCode.OK and not (code in _OF_TESTS and any(one.failed for one in found.values())):
            self.problems.append(f"pytest ended with exit code {code} and names no test: {' '.join(arguments)[:120]}")
        self._leftovers()
        self.tests |= {name: test for name, test in found.items() if name not in self.tests}
        (self.out / "tests.json").write_bytes(msgspec.json.format(msgspec.json.encode(list(self.tests.values()))))
        return found

    def npm(self) -> Result:
        """Run the tests of the browser's code."""
        begun, output = time.monotonic(), self.folder / "npm"
        self._own.add(output.name)
        with output.open("wb") as file:
            code = self._run(
                ["/usr/bin/env", f"PATH={_BIN}{os.pathsep}{os.environ.get('PATH', '')}", "npm", "test", "--silent"], file.fileno()
            )
        text = output.read_text(encoding="utf-8", errors="replace")
        sys.stdout.write(
            text if code else "".join(line for line in text.splitlines(keepends=True) if line.startswith(("ℹ tests", "# tests")))
        )
        failed = Part(NPM, "call", "failed", 0.0, *_of_node(text)) if code else None
        test = Result(NPM, time.monotonic() - begun, failed)
        self.tests.setdefault(NPM, test)
        self._leftovers()
        return test

    def again(self, test: Result) -> bool:
        """Run a test once more, alone; return whether it passed."""
        say(f"\nonce more, alone: {test.id}")
        if test.id == NPM:
            return self.npm().failed is None
        found = self.pytest([test.id])
        return test.id in found and found[test.id].failed is None if "::" in test.id else not any(one.failed for one in found.values())

    def finish(self) -> None:
        """Remove the folder; what is in it and is not the run's own is a problem."""
        for path in leftovers.files(self.folder, frozenset(self._own)):
            self.problems.append(f"left behind: {path.relative_to(self.folder)} in the folder for temporary files")
        leftovers.remove_folder(self.folder)

    def _run(self, command: Sequence[str], output: int | None = None) -> int:
        env = {**os.environ, "TMPDIR": str(self.folder), SEED: str(self.seed), "PYTHONPATH": str(ROOT)}
        # Hundreds of services are started in a run; without compiled modules each of them compiles what it imports, for a second or two.
        env.pop("PYTHONDONTWRITEBYTECODE", None)
        env.setdefault("OPENBLAS_NUM_THREADS", "1")  # as the product has it: threads of several tests would wait for one another
        process = subprocess.Popen(
            command,
            cwd=self.root,
            env=env,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
            preexec_fn=die_with_parent(),  # noqa: PLW1509 - as the product's own children
        )
        try:
            return leftovers.wait(process)
        except Interrupted:
            process.send_signal(signal.SIGINT)
            try:
                process.wait(STOP_S)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
            raise

    def _leftovers(self) -> None:
        left = leftovers.processes()
        self.problems += [f"left behind: {leftovers.told(one)}" for one in left]
        leftovers.end(left)


def workers() -> int:
    """Return the number of tests that run side by side."""
    return max(WORKERS, (os.cpu_count() or 1) + 1)


def _of_node(text: str) -> tuple[str, tuple[str, ...]]:
    lines = [line for line in text.splitlines() if line.strip()]
    first = next((line.strip() for line in lines if line.lstrip().startswith(("✖", "not ok"))), "npm test failed")
    return first, tuple(lines[-recorder.LINES :])


def say(text: str) -> None:
    """Print a line at once."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def looked_at_twice(run: Run, aside: frozenset[str]) -> tuple[list[Result], list[Flaky]]:
    """Run failed tests once more, and return those that failed again and those that passed."""
    failed = [test for test in run.tests.values() if test.failed is not None and test.id not in aside]
    if len(failed) > AGAIN_LIMIT:
        run.problems.append(f"{len(failed)} tests failed, too many to look at twice ({AGAIN_LIMIT} at most)")
        return failed, []
    flaky: list[Flaky] = []
    for test in list(failed):
        if run.again(test):
            flaky.append(Flaky(test.id, test.failed.error if test.failed else "", run.seed))
            failed.remove(test)
    if len(flaky) > FLAKY_LIMIT:
        run.problems.append(f"{len(flaky)} tests passed only the second time, and {FLAKY_LIMIT} is the most")
    return failed, flaky


def unknown(run: Run, aside: frozenset[str]) -> list[str]:
    """Return the node ids of the quarantine that name no test."""
    missing: list[str] = []
    for test in sorted(aside - run.tests.keys()):
        command = [*_PYTEST, "--collect-only", "-q", "--no-header", test]
        if subprocess.run(command, cwd=run.root, capture_output=True, check=False).returncode:
            missing.append(test)
    return missing


def main(arguments: Sequence[str]) -> int:
    """Run a tier and return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m deploy.testrun", description=__doc__)
    parser.add_argument("tier", choices=tiers.NAMES)
    parser.add_argument("--root", type=Path, default=ROOT, help="folder that holds tests/; another one for tests of this program")
    known, rest = parser.parse_known_args(arguments)
    fresh = secrets.randbelow(2**31)
    seed = int(os.environ.get(SEED) or (fresh if known.tier == "all" else FIXED_SEED))
    leftovers.adopt_orphans()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, _interrupt)
    begun, before = time.monotonic(), leftovers.checkout(known.root)
    run = Run(known.tier, rest, seed, known.root)
    try:
        run.whole()
        aside = quarantine.read(known.root / quarantine.FILE, datetime.datetime.now(datetime.UTC).date())
        failed, flaky = looked_at_twice(run, aside.tests)
        run.problems += [*aside.problems, *(f"quarantine.txt names {test}, which is no test" for test in unknown(run, aside.tests))]
        run.problems += [f"left behind in the checkout: {line.strip()}" for line in sorted(leftovers.checkout(known.root) - before)]
    except Interrupted:
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, signal.SIG_IGN)
        left = leftovers.processes(wait_s=1.0)
        leftovers.end(left)
        say(f"\nInterrupted. {len(left)} {'process was' if len(left) == 1 else 'processes were'} ended.")
        return INTERRUPTED
    finally:
        run.finish()
    return end(run, aside, failed, flaky, time.monotonic() - begun)


def end(run: Run, aside: quarantine.Quarantine, failed: Sequence[Result], flaky: Sequence[Flaky], seconds: float) -> int:
    """Print the end of a run, write what was flaky, and return the exit code."""
    (run.out / "flaky.json").write_bytes(msgspec.json.format(msgspec.json.encode(flaky)))
    say("")
    for line in ending.slowest(run.tests.values(), run.tier):
        say(line)
    for test in sorted(aside.tests & run.tests.keys()):
        say(f"QUARANTINED {'failed' if run.tests[test].failed else 'passed'} {test}")
    for one in flaky:
        say(f"FLAKY {one.test}: {one.error}")
    took = f"{len(run.tests)} tests in {int(seconds // 60)} min {int(seconds % 60)} s"
    if not failed and not run.problems:
        say(f"GREEN: {took}.")
        return 0
    say(took)
    for line in ending.red(failed, run.problems, run.seed):
        say(line)
    return 1


def _interrupt(_number: int, _frame: FrameType | None) -> NoReturn:
    raise Interrupted


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
