"""Leftovers of a run of tests: processes, files in its temporary folder, files in the checkout.

A run has one temporary folder, which everything in it inherits as `TMPDIR`, and its first process becomes the parent of every process
that loses its own (Linux: PR_SET_CHILD_SUBREAPER). So whatever a test started is found below that process, a daemon too, and what other
runs and products on this machine started is not. Elsewhere than on Linux, orphans are not found.
"""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Final

import psutil

WAIT_S: Final = 5.0
"""Seconds that processes have to end after the run ended."""

KEPT: Final = ("node-compile-cache", "pulse-", "uv-", f"voxbridge-{os.getuid()}-")
"""Beginnings of names that may stay in the temporary folder: what Node.js, PulseAudio and uv keep there, and the socket of a Valkey whose
supervisor a test killed."""

_SHARE: Final = "50%"
"""Share of the machine's memory that the files of a run may take."""

_SUBREAPER: Final = 36
_NEW_MOUNTS: Final = 0x2_0000
_PRIVATE: Final = 0x4_4000
_DETACH: Final = 2
_libc: Final = ctypes.CDLL(None, use_errno=True)
_LOOK_S: Final = 0.05
_TEST: Final = "PYTEST_CURRENT_TEST"


def adopt_orphans() -> None:
    """Have processes whose parent ends become children of this one."""
    if sys.platform == "linux":
        _libc.prctl(_SUBREAPER, 1, 0, 0, 0)


def wait(process: subprocess.Popen[bytes]) -> int:
    """Wait for a child, and meanwhile take note of the orphans that end, as init does: until then each is a zombie, and tests look at
    whether a process is gone. Return the exit code of the child."""
    while process.returncode is None:
        try:
            pid, status = os.waitpid(-1, 0)
        except ChildProcessError:
            return process.wait()
        if pid == process.pid:
            process.returncode = os.waitstatus_to_exitcode(status)
    return process.returncode


def make_folder() -> Path:
    """Make the temporary folder of a run: in memory where this user may mount it, since the servers of tests sync every event they store.

    The mount is seen by this process and its children alone, and is gone with the last of them. Elsewhere the folder is on disk."""
    folder = Path(tempfile.mkdtemp(prefix="vx-"))
    if sys.platform == "linux" and _own_mounts() and _mount("tmpfs", folder, "tmpfs", 0, f"size={_SHARE}") != 0:
        sys.stderr.write("The tests keep their files on disk: no folder in memory could be mounted.\n")
    return folder


def remove_folder(folder: Path) -> None:
    """Remove the folder of a run with everything in it."""
    if folder.is_mount():
        _libc.umount2(os.fsencode(folder), _DETACH)
    shutil.rmtree(folder, ignore_errors=True)


def processes(wait_s: float = WAIT_S) -> list[psutil.Process]:
    """Return the processes below this one that still run after so many seconds."""
    deadline = time.monotonic() + wait_s
    while True:
        _reap()
        left = [process for process in psutil.Process().children(recursive=True) if _runs(process)]
        if not left or time.monotonic() > deadline:
            return left
        time.sleep(_LOOK_S)


def told(process: psutil.Process) -> str:
    """Describe a process, with the test that started it."""
    words, test = "?", ""
    with suppress(psutil.Error):
        words = " ".join(process.cmdline())[:160] or process.name()
    with suppress(psutil.Error, OSError):
        test = process.environ().get(_TEST, "").removesuffix(" (call)").removesuffix(" (setup)").removesuffix(" (teardown)")
    return f"process {process.pid}, {words}" + (f", which {test} started" if test else "")


def end(left: Iterable[psutil.Process]) -> None:
    """Kill processes, and wait until they are gone."""
    left = list(left)
    for process in left:
        with suppress(psutil.Error):
            process.kill()
    psutil.wait_procs(left, timeout=WAIT_S)
    _reap()


def files(folder: Path, own: frozenset[str]) -> list[Path]:
    """Return what is in the folder of the run beside `own`."""
    return sorted(path for path in folder.iterdir() if path.name not in own and not path.name.startswith(KEPT))


def checkout(root: Path) -> frozenset[str]:
    """Return the files of the checkout that are new or changed, as git tells them; nothing where this is no checkout, or git is not
    installed: what is left in a copy of the files is not looked for."""
    if shutil.which("git") is None:
        return frozenset()
    done = subprocess.run(["git", "status", "--porcelain"], cwd=root, capture_output=True, text=True, check=False)
    return frozenset(done.stdout.splitlines()) if done.returncode == 0 else frozenset()


def _own_mounts() -> bool:
    return _libc.unshare(_NEW_MOUNTS) == 0 and _mount("none", Path("/"), None, _PRIVATE, None) == 0


def _mount(source: str, target: Path, kind: str | None, flags: int, options: str | None) -> int:
    given = [None if one is None else one.encode() for one in (source, str(target), kind)]
    return int(_libc.mount(*given, ctypes.c_ulong(flags), None if options is None else options.encode()))


def _runs(process: psutil.Process) -> bool:
    with suppress(psutil.Error):
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    return False


def _reap() -> None:
    with suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
