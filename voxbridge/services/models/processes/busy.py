"""The load of this machine: detects that other programs take the processors that the models need.

The kernel reports how long, in the last ten seconds, runnable tasks had to wait (/proc/pressure/cpu); without it, the load average is used.
Owns nothing.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Final

PRESSURE: Final = Path("/proc/pressure/cpu")
WAITED: Final = 40.0
"""Percent of the last ten seconds. The engines alone cause about ten percent on two cores when they work."""

LOAD: Final = 1.5
"""Load average for each core, where the kernel reports no pressure."""

_SOME: Final = re.compile(r"some avg10=([\d.]+)")


def waited(pressure: Path = PRESSURE) -> float | None:
    """Return the percentage of the last ten seconds in which a task waited for a processor; None where the kernel does not report it."""
    try:
        found = _SOME.match(pressure.read_text())
    except OSError:
        return None
    return float(found[1]) if found else None


def is_busy(percent: float | None, load: float, cores: int) -> bool:
    """Tell whether the processors are taken, by the pressure where it is known, else by the load."""
    return percent >= WAITED if percent is not None else load >= LOAD * cores


def why() -> str:
    """Describe the load of a busy machine; empty if it is not busy."""
    cores, load = os.cpu_count() or 1, os.getloadavg()[0]
    return f"the machine is busy (load {load:.1f} on {cores} cores)" if is_busy(waited(), load, cores) else ""
