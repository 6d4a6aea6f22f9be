"""The processes of a machine, read from /proc: who descends from whom. Standard library only."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final, NamedTuple

_PROC: Final = Path("/proc")


class Process(NamedTuple):
    """A process: its parent and its state."""

    pid: int
    parent: int
    state: str

    @property
    def alive(self) -> bool:
        """Tell whether it does anything; a zombie only waits to be collected."""
        return self.state not in ("Z", "X")


def of(pid: int) -> Process | None:
    """Return a process; None if there is none."""
    try:
        text = (_PROC / str(pid) / "stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    fields = text[text.rindex(")") + 2 :].split()
    return Process(pid, int(fields[1]), fields[0])


def command(pid: int) -> str:
    """Return the command of a process as far as it can be read, at most 200 characters."""
    try:
        line = (_PROC / str(pid) / "cmdline").read_bytes()[:400]
    except OSError:
        return ""
    return line.replace(b"\0", b" ").decode(errors="replace").strip()[:200]


def descendants(*roots: int, without: frozenset[int] = frozenset()) -> list[int]:
    """Return the processes below these, the nearest first; neither those of `without` nor what is below them."""
    children: dict[int, list[int]] = {}
    alive = set()
    for name in os.listdir(_PROC):  # noqa: PTH208 - a scan of some hundred names
        if name.isdigit() and (process := of(int(name))) is not None:
            children.setdefault(process.parent, []).append(process.pid)
            if process.alive:
                alive.add(process.pid)
    found: list[int] = []
    level = list(roots)
    while level:
        level = [child for parent in level for child in children.get(parent, ()) if child not in without]
        found += level
    return [pid for pid in found if pid in alive]
