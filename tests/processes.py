"""Processes that should have ended."""

from __future__ import annotations

import psutil


def gone(pid: int) -> bool:
    """Tell whether a process has ended; a zombie has, and only waits for its parent."""
    try:
        return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True
