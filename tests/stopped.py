"""Stopping a process without ending it."""

from __future__ import annotations

import os
import signal


def stop(pid: int) -> None:
    """Send SIGSTOP to a child of this process, and return when all its threads stand still. Blocks for some microseconds.

    The signal alone is not enough: a thread that runs on another core goes on until the kernel reaches it, and may answer meanwhile."""
    os.kill(pid, signal.SIGSTOP)
    os.waitid(os.P_PID, pid, os.WSTOPPED | os.WNOWAIT)
