"""The keeper of one terminal: the parent of its program, and of everything whose own parent has gone.

A program can leave its session (`setsid`) and its parent (a double fork, `nohup`), and it can empty its environment. It cannot leave its
keeper: orphans are adopted by the nearest ancestor that asked for them (`PR_SET_CHILD_SUBREAPER`), so all that a terminal started is below
its keeper in the tree of processes. Told to end it, or left by the holder, the keeper asks everything to end, kills what does not, names
what still lives, and ends. Standard library only.
"""

from __future__ import annotations

import ctypes
import fcntl
import json
import os
import resource
import select
import signal
import socket
import termios
import time
from contextlib import suppress
from typing import Any, Final, NoReturn

from voxbridge.services.terminals.holder import processes

GENTLE_S: Final = 1.0
"""Time between asking everything in a terminal to end and killing it."""

END_S: Final = 4.0
"""Time after which what still lives is named."""

_LOOK_S: Final = 0.02
_SUBREAPER: Final = 36  # PR_SET_CHILD_SUBREAPER of linux/prctl.h
_CONTROL, _SLAVE, _TELL = 3, 4, 5
_DESCRIPTORS: Final = 65_536


def adopt_orphans() -> None:
    """Make this process the parent of its descendants whose own parent ends."""
    ctypes.CDLL(None, use_errno=True).prctl(_SUBREAPER, 1, 0, 0, 0)


def keep(argv: list[str], env: dict[str, str], directory: str, slave: int, control: socket.socket) -> NoReturn:
    """Start a program in a terminal and keep it, in a fork of the holder; never returns.

    What is told over `control`, each a message of JSON: `{"pid"}` or `{"error"}` once, `{"code"}` as the program ends, `{"left"}` at the
    end.
    """
    try:
        os.setsid()
        signal.set_wakeup_fd(-1)
        adopt_orphans()
        kept = [fcntl.fcntl(one, fcntl.F_DUPFD_CLOEXEC, 64) for one in (control.detach(), slave)]
        os.closerange(3, 64)
        for number, one in zip((_CONTROL, _SLAVE), kept, strict=True):
            os.dup2(one, number, inheritable=False)
        os.closerange(5, _DESCRIPTORS)
        with open(os.devnull, "r+b", buffering=0) as nothing:  # noqa: PTH123 - no object of a path is worth it here
            for number in (0, 1, 2):
                os.dup2(nothing.fileno(), number)
        _Keeper(socket.socket(fileno=_CONTROL)).run(argv, env, directory)
    except BaseException:  # noqa: BLE001 - nobody is above; the holder sees the end
        os._exit(1)
    os._exit(0)


class _Keeper:
    def __init__(self, control: socket.socket) -> None:
        self._control = control
        self._wake, write = os.pipe()
        os.set_blocking(self._wake, False)
        os.set_blocking(write, False)
        self._asked_to_end = False
        signal.set_wakeup_fd(write, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, self._told_to_end)

    def _told_to_end(self, *_: object) -> None:
        self._asked_to_end = True

    def run(self, argv: list[str], env: dict[str, str], directory: str) -> None:
        """Start the program, and keep it until nothing is left."""
        said, tell = os.pipe()
        pid = os.fork()
        if pid == 0:
            _become(argv, env, directory, tell)
        os.close(tell)
        os.close(_SLAVE)
        failure = os.read(said, 400)
        os.close(said)
        if failure:
            os.waitpid(pid, 0)
            self._tell(error=failure.decode(errors="replace"))
            return
        self._tell(pid=pid)
        while self._reaped(pid) and not self._asked_to_end:
            ready, _, _ = select.select([self._control.fileno(), self._wake], [], [])
            if self._wake in ready:
                with suppress(BlockingIOError):
                    os.read(self._wake, 4096)
            if self._control.fileno() in ready:
                with suppress(OSError):
                    self._control.recv(64)
                break  # told to end, or left by the holder
        self._tell(left=[{"pid": one, "command": processes.command(one)} for one in self._end(pid)])

    def _reaped(self, program: int) -> bool:
        """Collect what ended; return whether anything is left."""
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return False
            if not pid:
                return True
            if pid == program:
                self._tell(code=os.waitstatus_to_exitcode(status))

    def _end(self, program: int) -> list[int]:
        """End everything below; return what lives on."""
        begun = time.monotonic()
        asked: set[int] = set()
        while self._reaped(program) and (left := processes.descendants(os.getpid())):
            waited = time.monotonic() - begun
            if waited > END_S:
                return left
            for pid in left:
                # A stopped process takes its signals when it goes on.
                gentle = () if pid in asked else (signal.SIGHUP, signal.SIGTERM, signal.SIGCONT)
                for number in (signal.SIGKILL,) if waited > GENTLE_S else gentle:
                    with suppress(OSError):
                        os.kill(pid, number)
                asked.add(pid)
            time.sleep(_LOOK_S)
        return []

    def _tell(self, **message: Any) -> None:
        with suppress(OSError):  # without a holder there is nobody to tell
            self._control.send(json.dumps(message).encode())


def _become(argv: list[str], env: dict[str, str], directory: str, tell: int) -> NoReturn:
    """Become the program, in its terminal."""
    try:
        os.setsid()
        signal.set_wakeup_fd(-1)
        fcntl.ioctl(_SLAVE, termios.TIOCSCTTY, 0)
        for number in (0, 1, 2):
            os.dup2(_SLAVE, number)
        os.dup2(tell, 3, inheritable=False)
        os.closerange(4, _DESCRIPTORS)
        for one in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}:
            with suppress(OSError, ValueError):
                signal.signal(one, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_SETMASK, ())
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        os.chdir(directory)
        os.execvpe(argv[0], argv, env)  # noqa: S606 - the program is what was asked for; no shell reads its arguments
    except BaseException as error:  # noqa: BLE001 - told to the holder, whatever it is
        said = os.strerror(error.errno) if isinstance(error, OSError) and error.errno else str(error)
        with suppress(OSError):
            os.write(3, f"{argv[0] if argv else 'the program'} cannot be started in {directory}: {said}".encode()[:400])
    os._exit(127)
