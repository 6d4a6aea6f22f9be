"""Gate: rooms point one way, and no service imports another. The contracts are in pyproject.toml, and import-linter checks them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from deploy.gates import ROOT


def problems(root: Path = ROOT) -> list[str]:
    """Return what import-linter says of the broken contracts of a checkout, a line each."""
    command = [str(Path(sys.executable).with_name("lint-imports")), "--no-cache", "--config", str(root / "pyproject.toml")]
    env = {**os.environ, "COLUMNS": "400"}  # a line each
    done = subprocess.run(command, cwd=root, env=env, capture_output=True, text=True, check=False)
    if done.returncode == 0:
        return []
    _, _, broken = done.stdout.partition("Broken contracts")
    lines = (broken or done.stdout + done.stderr).splitlines()
    return [line.strip() for line in lines if line.strip(" -=")]
