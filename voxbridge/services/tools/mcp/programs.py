"""Programs of servers: the environment that they are given, and what to install where there is none of that name."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from typing import Final

INHERITED: Final = ("HOME", "LOGNAME", "PATH", "SHELL", "TERM", "USER")
"""The variables that the official SDK gives to a server. Nothing of Voxbridge is among them."""

_NODE: Final = ("node", "npx", "npm")
_UV: Final = ("uv", "uvx")


def environment(named: Mapping[str, str]) -> dict[str, str]:
    """Return the environment of a server: the short list, and what the configuration names."""
    kept = {name: os.environ[name] for name in INHERITED if name in os.environ}
    return {**kept, **named}


def missing(command: str) -> str:
    """Return what to do about a program that is not there."""
    if command in _NODE:
        return f"there is no `{command}` on this machine; install Node.js 20 or later (https://nodejs.org)"
    if command in _UV:
        return f"there is no `{command}` on this machine; install uv (https://docs.astral.sh/uv)"
    return f"there is no program {command[:128]!r}, or its folder `cwd` is not there; install it, or correct its path"


def found(command: str, named: Mapping[str, str]) -> bool:
    """Tell whether a program can be started by this name."""
    return shutil.which(command, path=environment(named).get("PATH")) is not None
