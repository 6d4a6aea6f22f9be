"""Check for a Chromium for the browser tests: the system's, or Debian's package where this user may install it.

Standard library only. When there is none, it ends with one line that says what to install.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


def find() -> str | None:
    """Return the path of a Chromium: `VOXBRIDGE_CHROMIUM`, or the first one on the path."""
    named = os.environ.get("VOXBRIDGE_CHROMIUM")
    if named:
        return named if os.access(named, os.X_OK) else None
    return next((path for name in NAMES if (path := shutil.which(name))), None)


def install() -> str | None:
    """Install Debian's chromium. Return the reason when that failed, else None."""
    if shutil.which("apt-get") is None or os.geteuid() != 0:
        return "this user cannot install packages"
    env = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    sys.stderr.write("Installing Debian's chromium for the browser tests.\n")
    for command in (["apt-get", "-q", "update"], ["apt-get", "-q", "-y", "--no-install-recommends", "install", "chromium"]):
        if subprocess.run(command, env=env, stdin=subprocess.DEVNULL, check=False).returncode:
            return f"`{' '.join(command)}` failed; its reason is above"
    return None


def main() -> int:
    """Return 0 when there is a Chromium, else 1."""
    if find():
        return 0
    named = os.environ.get("VOXBRIDGE_CHROMIUM")
    if named:
        sys.stderr.write(f"VOXBRIDGE_CHROMIUM names {named}, which cannot be run.\n")
        return 1
    reason = install()
    if reason is None and find():
        return 0
    reason = reason or "none was found after the installation"
    sys.stderr.write(f"The browser tests need Chromium, and {reason}: run `apt-get install chromium`.\n")
    return 1


if __name__ == "__main__":
    sys.exit(main())
