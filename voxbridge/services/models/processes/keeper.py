"""The process between the service and an engine: it keeps the engine running while a service that died is restarted.

Weights take seconds to load, and the service may be killed at any time. So each engine runs under a keeper, in a process group of its own.
The service holds a lock on a file while it lives. When the lock is free for `GRACE_S`, or the process that started the service is gone, the
keeper ends its engine and itself. The kernel ends the engine with its keeper.

Owns one engine's process and the end of its output. Knows nothing about engines; imports only what loads fast.
"""

from __future__ import annotations

import fcntl
import os
import select
import signal
import subprocess
import sys
import threading
import time
from collections import deque
from contextlib import suppress
from pathlib import Path
from typing import IO, Any, Final

from voxbridge.shared.embedded.child import die_with_parent

GRACE_S: Final = 6.0
"""Seconds that an engine waits for the next service."""

LOOK_S: Final = 0.1
STOP_S: Final = 1.5
LAST_WORDS: Final = 20
LINE_LIMIT: Final = 2_000


def lock_file(folder: Path) -> Path:
    """Return the path of the file that the service locks while it lives."""
    return folder / "service.lock"


def said_file(folder: Path, name: str) -> Path:
    """Return the path of the last output of an ended engine."""
    return folder / f"{name}.said"


class Keeper:
    """The supervisor of a command: runs it until it ends or no service needs it."""

    def __init__(self, folder: Path, name: str, starter: int, command: list[str]) -> None:
        self._folder, self._name, self._starter = folder, name, starter
        self._last: deque[str] = deque(maxlen=LAST_WORDS)
        self._stopping = threading.Lock()
        armed = die_with_parent()
        # No thread runs yet, so a `preexec_fn` between fork and exec is safe.
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, preexec_fn=armed)  # noqa: PLW1509

    def run(self) -> int:
        """Wait for the command to end; return its exit status."""
        signal.signal(signal.SIGTERM, lambda *_: self.stop())
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        reader = self._thread(self._read, self._process.stdout)
        self._thread(self._watch_service)
        self._thread(self._watch_starter)
        status = self._process.wait()
        reader.join(1.0)
        with suppress(OSError):  # a full disk
            said_file(self._folder, self._name).write_text(" ".join(list(self._last)[-2:]))
        return status if status >= 0 else 128 - status

    def stop(self) -> None:
        """End the engine, so that `run` returns. An engine that does not end is killed."""
        if self._stopping.acquire(blocking=False):
            self._process.terminate()
            self._thread(self._kill_late)

    def _kill_late(self) -> None:
        try:
            self._process.wait(STOP_S)
        except subprocess.TimeoutExpired:
            self._process.kill()

    def _thread(self, work: Any, *args: Any) -> threading.Thread:
        thread = threading.Thread(target=work, args=args, daemon=True)
        thread.start()
        return thread

    def _read(self, output: IO[bytes]) -> None:
        while line := output.readline(LINE_LIMIT):
            text = line.decode(errors="replace").strip()
            if text:
                self._last.append(text)

    def _watch_service(self) -> None:
        with lock_file(self._folder).open("rb") as lock:
            while True:
                fcntl.flock(lock, fcntl.LOCK_SH)  # blocks until the service is gone
                fcntl.flock(lock, fcntl.LOCK_UN)
                if not self._adopted(lock):
                    self.stop()
                    return

    def _adopted(self, lock: IO[bytes]) -> bool:
        deadline = time.monotonic() + GRACE_S
        while time.monotonic() < deadline:
            time.sleep(LOOK_S)
            try:
                fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except BlockingIOError:
                return True
            fcntl.flock(lock, fcntl.LOCK_UN)
        return False

    def _watch_starter(self) -> None:
        try:
            starter = os.pidfd_open(self._starter)
        except ProcessLookupError:
            pass
        else:
            select.select([starter], [], [])
        self.stop()


def main() -> None:
    """Run `python -m voxbridge.services.models.processes.keeper FOLDER NAME STARTER COMMAND...`. The engine inherits standard input."""
    folder, name, starter, *command = sys.argv[1:]
    sys.exit(Keeper(Path(folder), name, int(starter), command).run())


if __name__ == "__main__":
    main()
