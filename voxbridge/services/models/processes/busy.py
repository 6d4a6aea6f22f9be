"""How busy this machine is: whether others take the processors that the models need.

The kernel tells for how long in the last ten seconds something that could run had to wait (/proc/pressure/cpu); where it does not, the
load average has to do. Owns nothing.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Final

PRESSURE: Final = Path("/proc/pressure/cpu")
WAITED: Final = 40.0
"""Percent of the last ten seconds. The engines alone, at work, make about ten of it on two cores."""

LOAD: Final = 1.5
"""Load average for each core, where there is nothing better to go by."""

_SOME: Final = re.compile(r"some avg10=([\d.]+)")


def waited(pressure: Path = PRESSURE) -> float | None:
    """Percent of the last ten seconds in which something had to wait for a processor; nothing where the kernel does not tell."""
    try:
        found = _SOME.match(pressure.read_text())
    except OSError:
        return None
    return float(found[1]) if found else None


def is_busy(percent: float | None, load: float, cores: int) -> bool:
    """Whether others take the processors, by the pressure where it is known, else by the load."""
    return percent >= WAITED if percent is not None else load >= LOAD * cores


def why() -> str:
    """What is to be said of a machine that is busy; empty for one that is not."""
    cores, load = os.cpu_count() or 1, os.getloadavg()[0]
    return f"the machine is busy (load {load:.1f} on {cores} cores)" if is_busy(waited(), load, cores) else ""
