"""Child processes that do not outlive the process that started them.

Owns the one system call behind it. Does not own when a child is started or stopped: the supervisor, the embedded servers and
voxbridge/services/models do. A crash here loses nothing, and leaves no orphan.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys
from collections.abc import Callable
from typing import Final

_PR_SET_PDEATHSIG: Final = 1
_prctl = ctypes.CDLL(None, use_errno=True).prctl if sys.platform == "linux" else None


def die_with_parent() -> Callable[[], None] | None:
    """Return a `preexec_fn` for `subprocess` and `asyncio`: the kernel kills the child when the starting *thread* ends.

    Start such a child from a thread that lives as long as the process (the main one), never from a pool's. `None` where the kernel has no
    such call; there a child ends by the signals that its parent sends.
    """
    prctl = _prctl
    if prctl is None:
        return None
    parent = os.getpid()

    def arm() -> None:
        prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:  # the parent died between the fork and the call above
            os._exit(1)

    return arm


def die_with(parent: int) -> None:
    """Have the kernel kill this process when the process `parent`, which started it, ends; exit at once if it already has.

    For a program that can arm itself, in place of `die_with_parent`: no code runs between the fork and the program then.
    """
    if _prctl is not None:
        _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:
            os._exit(1)


def end_group(pid: int, number: signal.Signals) -> bool:
    """Signal every process of the group that `pid` leads; return whether there was any."""
    try:
        os.killpg(pid, number)
    except (ProcessLookupError, PermissionError):
        return False
    return True
