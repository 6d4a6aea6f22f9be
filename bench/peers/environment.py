"""A peer's own virtual environment, as locked, below `.voxbridge/peers/`.

The project's environment and lock are not touched. An installation is kept until the lock changes. A crash during it leaves an environment
without its stamp, which the next run makes anew.
"""

from __future__ import annotations

import hashlib
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Final

from bench.peers.catalogue import Peer
from bench.stack import ROOT
from deploy import bootstrap

HOME: Final = ROOT / ".voxbridge" / "peers"
INSTALL_S: Final = 900.0
_TEXT_LIMIT: Final = 400


class Uninstallable(Exception):
    """The peer cannot be installed here; the message says why."""


def python_of(peer: Peer) -> Path:
    """Return the Python of its environment."""
    return HOME / peer.name / "bin" / "python"


def installed(peer: Peer) -> bool:
    """Return whether its environment is complete and matches its lock."""
    stamp = HOME / peer.name / "peer.stamp"
    return python_of(peer).exists() and stamp.exists() and stamp.read_text() == _digest(peer)


def release_of(peer: Peer) -> str:
    """Return the release of the Python of its environment; raises `ValueError`."""
    lines = (HOME / peer.name / "pyvenv.cfg").read_text(encoding="utf-8").splitlines()
    found = next((line.partition("=")[2].strip() for line in lines if line.startswith("version")), "")
    if not found:
        raise ValueError(f"pyvenv.cfg of {peer.name} does not say its Python")
    return found


def install(peer: Peer, say: Callable[[str], None]) -> None:
    """Create its environment unless it exists; raises `Uninstallable`."""
    if installed(peer):
        return
    HOME.mkdir(parents=True, exist_ok=True)
    folder = HOME / peer.name
    wanted = ".".join(map(str, peer.python))
    try:
        uv = bootstrap.uv()
    except (bootstrap.SetupError, OSError) as error:
        raise Uninstallable(str(error)) from error
    refusals = []
    for python in pythons(peer):
        say(f"{peer.title} {peer.version}: an environment with {python}")
        refusal = _run([uv, "venv", "--quiet", "--no-project", "--clear", "--python", python, str(folder)])
        if not refusal:
            break
        refusals.append(refusal)
    else:
        raise Uninstallable(f"it needs Python {wanted} or later, and none can be had here: {refusals[-1]}")
    say(f"{peer.title} {peer.version}: installing its packages")
    refusal = _run([uv, "pip", "sync", "--quiet", "--require-hashes", "--python", str(python_of(peer)), str(peer.lock)])
    if refusal:
        raise Uninstallable(refusal)
    (folder / "peer.stamp").write_text(_digest(peer))


def pythons(peer: Peer) -> list[str]:
    """Return the Pythons that may run it, the best first: this one, one that pyenv has, then any that uv finds or fetches."""
    if sys.version_info >= peer.python:
        return [sys.executable]
    wanted = ".".join(map(str, peer.python))
    root = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv")
    kept = sorted(root.glob(f"versions/{wanted}.*/bin/python{wanted}"), key=_release, reverse=True)
    return [*map(str, kept), wanted]


def _release(path: Path) -> list[int]:
    return [int(number) for number in re.findall(r"\d+", path.parts[-3])]


def _digest(peer: Peer) -> str:
    return hashlib.sha256(peer.lock.read_bytes()).hexdigest()


def _run(command: list[str]) -> str:
    """Run uv. Return its error output when it fails, else an empty text."""
    env = bootstrap.trusting(os.environ)
    env.pop("VIRTUAL_ENV", None)
    env["UV_PYTHON_INSTALL_DIR"] = str(HOME / "pythons")
    try:
        done = subprocess.run(command, cwd=ROOT, env=env, stdin=subprocess.DEVNULL, capture_output=True, check=False, timeout=INSTALL_S)
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)[:_TEXT_LIMIT]
    if not done.returncode:
        return ""
    said = " ".join(done.stderr.decode(errors="replace").split())
    return said[:_TEXT_LIMIT] or f"{Path(command[0]).name} ended with code {done.returncode}"
