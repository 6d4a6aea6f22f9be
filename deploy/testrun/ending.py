"""The last lines of a run: what was slow, what passed only the second time, and what to do about each failure."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Sequence
from typing import Final

from deploy.testrun import SEED
from deploy.testrun.recorder import Part, Result

LINES: Final = 40
"""Lines at the end of a red run."""

SLOWEST: Final = 10
SLOW_S: Final = 10.0
"""Seconds above which a test of `make test` belongs in `make test-all`."""

_SHOWN: Final = 6
"""Failures that are shown with their lines; of others the command is shown."""

_WIDTH: Final = 200


def slowest(tests: Iterable[Result], tier: str) -> list[str]:
    """Return a line for each of the slowest tests."""
    lines = [f"{SLOWEST} slowest tests:"]
    for test in sorted(tests, key=lambda one: -one.seconds)[:SLOWEST]:
        note = "  (over 10 s: it belongs in `make test-all`)" if tier == "test" and test.seconds > SLOW_S else ""
        lines.append(f"  {test.seconds:6.1f} s  {test.id}{note}")
    return lines


def command(test: str, seed: int) -> str:
    """Return the shell command that repeats a test alone."""
    if test == "npm test":
        return 'PATH="$PWD/.venv/bin:$PATH" npm test'
    return f"{SEED}={seed} .venv/bin/pytest --hypothesis-seed={seed} {shlex.quote(test)}"


def red(failed: Sequence[Result], reasons: Sequence[str], seed: int) -> list[str]:
    """Return the end of a red run, `LINES` lines at most: its reasons, then each failure with the command that repeats it."""
    heads = [f"RED: {len(failed)} failed{'' if not reasons else ', and what follows'}. Seed {seed}."]
    heads += [f"  {reason[:_WIDTH]}" for reason in list(reasons)[: LINES // 2]]
    shown, others = list(failed[:_SHOWN]), list(failed[_SHOWN:])
    room = LINES - len(heads) - min(len(others), _SHOWN) - (1 if len(others) > _SHOWN else 0)
    each = max(3, room // len(shown)) if shown else 0
    lines = list(heads)
    for test in shown:
        part = test.failed or Part(test.id, "call", "failed", 0.0)
        where = "" if part.when == "call" else f" ({part.when})"
        block = [f"✗ {test.id}{where}", f"  {part.error}", f"  again: {command(test.id, seed)}"]
        fits = max(0, each - len(block))
        block[2:2] = [f"    {line}" for line in part.lines[-fits:]] if fits else []
        lines += [line[:_WIDTH] if not line.startswith("  again") else line for line in block]
    lines += [f"✗ again: {command(test.id, seed)}" for test in others[:_SHOWN]]
    if len(others) > _SHOWN:
        lines.append(f"… and {len(others) - _SHOWN} more.")
    return lines[:LINES]
