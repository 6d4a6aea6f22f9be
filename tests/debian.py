"""Programs of Debian packages, unpacked beside the tests that use them: nothing is installed."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from pathlib import Path


def unpacked(name: str, *packages: str) -> Path:
    """Return a folder with what these packages hold, as below `/`; fetches them once. It needs apt's lists, as any `apt-get install`."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "voxbridge" / "debian"
    found = cache / name
    if not found.exists():
        cache.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=cache) as folder:
            fetched = subprocess.run(["apt-get", "download", *packages], cwd=folder, capture_output=True, text=True, check=False)
            assert fetched.returncode == 0, fetched.stderr
            whole = Path(folder) / "whole"
            for package in sorted(Path(folder).glob("*.deb")):
                subprocess.run(["dpkg-deb", "-x", package, whole], check=True)
            if not found.exists():
                shutil.copytree(whole, found.with_suffix(".new"), symlinks=True)
                found.with_suffix(".new").replace(found)
    return found
