"""CONTRIBUTING's first change, taken out of the page and made: each step does what the page promises."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parents[2]
SNIPPET = re.compile(r"<!-- (?:new|after `(?P<after>[^`]+)` in): (?P<path>\S+) -->\n\s*```(?:python)?\n(?P<text>.*?)\n\s*```", re.DOTALL)
FIRST_TEST = "tests/tools/test_dice.py"
STEP_4 = (
    "tests/tools/test_dice.py",
    "tests/tools/test_functions.py",
    "tests/tools/test_registry.py",
    "tests/tools/every_function/test_table.py",
)
NOT_AGAIN = "tests/tools/every_function/test_table.py::test_every_function_bears_what_strangers_write"
"""A test of step 4 that this run has anyway, for all functions but the new one: it gives hostile texts to each of them by each door."""

GATES = ("functions", "docstrings", "length", "readme")


class Snippet(NamedTuple):
    path: str
    text: str
    after: str


def snippets() -> Iterator[Snippet]:
    """Yield what CONTRIBUTING has the newcomer write, in its order."""
    page = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    for found in SNIPPET.finditer(page):
        text = re.sub(r"^ {3}", "", found["text"], flags=re.MULTILINE)  # the page has them below the items of a list
        yield Snippet(found["path"], text, found["after"] or "")


class Checkout:
    """A copy of what is in version control, with the newcomer's change so far."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        listed = subprocess.run(["git", "ls-files", "-z", "-co", "--exclude-standard"], cwd=ROOT, capture_output=True, check=True).stdout
        for name in (os.fsdecode(one) for one in listed.split(b"\0") if one):
            if (ROOT / name).is_file():
                (folder / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(ROOT / name, folder / name)
        for name in ("client/dist", "studio/dist", "node_modules"):
            (folder / name).symlink_to(ROOT / name)

    def make(self, change: Snippet) -> None:
        path = self.folder / change.path
        if not change.after:
            path.write_text(f"{change.text}\n", encoding="utf-8")
            return
        text = path.read_text(encoding="utf-8")
        assert text.count(change.after) == 1, f"the page names no single place in {change.path}"
        path.write_text(text.replace(change.after, f"{change.after}\n{change.text}"), encoding="utf-8")

    def run(self, *command: str) -> subprocess.CompletedProcess[str]:
        env = {name: value for name, value in os.environ.items() if "XDIST" not in name} | {"PYTHONPATH": str(self.folder)}
        return subprocess.run([sys.executable, *command], cwd=self.folder, env=env, capture_output=True, text=True, check=False)

    def tests(self, *names: str) -> subprocess.CompletedProcess[str]:
        return self.run("-m", "pytest", "-q", "-p", "no:cacheprovider", f"--basetemp={self.folder.parent / 'tests'}", *names)


@pytest.mark.timeout(600)
def test_the_first_change_of_the_page_fails_and_passes_where_the_page_says_so(tmp_path: Path) -> None:
    checkout = Checkout(tmp_path / "checkout")
    test, function, listed, row = snippets()
    assert (test.path, function.path) == (FIRST_TEST, "voxbridge/services/tools/packs/everyday/dice.py")

    checkout.make(test)
    failed = checkout.tests(FIRST_TEST)
    assert (failed.returncode, "dice" in failed.stdout) == (2, True), failed.stdout

    checkout.make(function)
    passed = checkout.tests(FIRST_TEST)
    assert passed.returncode == 0, passed.stdout

    checkout.make(listed)
    checkout.make(row)
    printed = checkout.run("-m", "voxbridge", "functions", "--markdown")
    assert "`roll_dice`" in printed.stdout, printed.stderr
    (checkout.folder / "docs" / "functions.md").write_text(printed.stdout, encoding="utf-8")
    whole = checkout.tests(*STEP_4, "tests/bench/test_choice_sets.py", f"--deselect={NOT_AGAIN}")
    assert whole.returncode == 0, whole.stdout[-6_000:] + whole.stderr[-3_000:]

    gates = checkout.run("-c", f"from deploy.gates import {', '.join(GATES)}; print({' + '.join(f'{one}.problems()' for one in GATES)})")
    assert gates.stdout.strip() == "[]", gates.stdout + gates.stderr
    styled = checkout.run("-m", "ruff", "check", "--no-cache", *(one.path for one in (test, function, listed, row)))
    assert styled.returncode == 0, styled.stdout
