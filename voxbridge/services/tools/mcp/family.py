"""The processes of a server: how many there are, how much memory they hold, and their end.

Reads `/proc`: the kernel's own limit counts all processes of a user and not those of a server, and a control group needs rights. Where
there is no `/proc`, only the leader is known.
"""

from __future__ import annotations

import contextlib
import os
import signal
from pathlib import Path
from typing import Final

from voxbridge.shared.embedded.child import end_group

MEBIBYTE: Final = 1024 * 1024
LOOKED_AT: Final = 2_048
"""Processes of one server that are looked at; a server with more is over any limit."""


class Family:
    """A process that leads a group, with all its descendants."""

    def __init__(self, leader: int, *, memory_mb: int, processes: int) -> None:
        self._leader = leader
        self._memory = memory_mb * MEBIBYTE
        self._processes = processes

    def excess(self) -> str:
        """Return which limit they exceed; an empty text for none."""
        found = self._members()
        if len(found) > self._processes:
            return f"it started {len(found)} processes, and may have {self._processes}"
        held = sum(_resident(pid) for pid in found)
        if held > self._memory:
            return f"it holds {held // MEBIBYTE} MiB of memory, and may have {self._memory // MEBIBYTE}"
        return ""

    def kill(self) -> None:
        """Kill all of them, those in groups of their own too."""
        found = self._members()
        end_group(self._leader, signal.SIGKILL)
        for pid in found[1:]:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)

    def _members(self) -> list[int]:
        found = [self._leader]
        for pid in found:
            if len(found) > LOOKED_AT:
                break
            with contextlib.suppress(OSError):
                for thread in Path(f"/proc/{pid}/task").iterdir():
                    found += [int(child) for child in (thread / "children").read_text().split()]
        return found


def _resident(pid: int) -> int:
    try:
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, IndexError, ValueError):
        return 0
