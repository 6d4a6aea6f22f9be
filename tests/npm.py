"""Programs from npm, at the versions of a lock file beside the tests that use them."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from hashlib import sha256
from pathlib import Path


def environment() -> dict[str, str]:
    """Return an environment whose first node and npm are those of the set-up."""
    return {**os.environ, "PATH": os.pathsep.join((str(Path(sys.executable).parent), os.environ["PATH"]))}


def installed(pinned: Path) -> Path:
    """Return a folder with the packages that `package-lock.json` in a folder names; fetches them once for each lock file."""
    lock = (pinned / "package-lock.json").read_bytes()
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "voxbridge" / pinned.name
    found = cache / sha256(lock).hexdigest()[:16]
    if not found.exists():
        cache.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=cache) as folder:
            for name in ("package.json", "package-lock.json"):
                shutil.copy(pinned / name, folder)
            done = subprocess.run(
                ["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund"],
                cwd=folder, env=environment(), capture_output=True, text=True, check=False,
            )  # fmt: skip
            assert done.returncode == 0, done.stderr
            if not found.exists():
                shutil.copytree(folder, found.with_suffix(".new"), symlinks=True)
                found.with_suffix(".new").replace(found)
    return found
