"""Tests that are set aside in the open: they run, what became of them is printed, and they do not decide whether a run is green.

`tests/quarantine.txt` has a line for each: `2026-11-26 | tests/area/test_name.py::test_name | the reason`. Lines that begin with # are
comments.
"""

from __future__ import annotations

import datetime
from pathlib import Path
from typing import Final, NamedTuple

FILE: Final = Path("tests", "quarantine.txt")

LIMIT: Final = 15
"""Lines that the file may have."""

DAYS: Final = 14
"""Days after which a line is a problem: by then the test or the product is mended."""


class Line(NamedTuple):
    """A test that does not decide, since a day and for a reason."""

    since: datetime.date
    test: str
    reason: str


class Quarantine(NamedTuple):
    """The lines of the file, and what is wrong with it."""

    lines: tuple[Line, ...]
    problems: tuple[str, ...]

    @property
    def tests(self) -> frozenset[str]:
        """Node ids of the tests that do not decide."""
        return frozenset(line.test for line in self.lines)


def read(path: Path, today: datetime.date) -> Quarantine:
    """Return what the file holds. A file that does not exist is an empty one."""
    lines: list[Line] = []
    problems: list[str] = []
    texts = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    for number, text in enumerate(texts, 1):
        if not text.strip() or text.startswith("#"):
            continue
        where = f"{path.name}:{number}"
        parts = [part.strip() for part in text.split(" | ", 2)]
        try:
            since = datetime.date.fromisoformat(parts[0])
        except ValueError:
            since = None
        if since is None or len(parts) != 3 or not all(parts):
            problems.append(f"{where} is not `date | node id | reason`, as in `2026-11-26 | tests/a/test_b.py::test_c | waits for d`.")
            continue
        line = Line(since, parts[1], parts[2])
        lines.append(line)
        if (today - since).days > DAYS:
            problems.append(f"{where} is {(today - since).days} days old, and {DAYS} is the most: mend {line.test} or the product.")
    if len(lines) > LIMIT:
        problems.append(f"{path.name} has {len(lines)} tests, and {LIMIT} is the most: mend some of them.")
    return Quarantine(tuple(lines), tuple(problems))
