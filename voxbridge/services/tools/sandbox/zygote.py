"""The zygote: a process that has loaded the engine and its scripts, and forks a sandbox's process whenever it is asked for one.

Usage: `python -m voxbridge.services.tools.sandbox.zygote DESCRIPTOR PARENT`

A fork shares what is loaded, so a process costs a few milliseconds and about a megabyte. It runs no handler, has no connection and no
credential, and one thread. Owns the end of its children's status; a crash here ends all sandboxes, and the tools service starts another.
"""

from __future__ import annotations

import array
import contextlib
import gc
import os
import resource
import select
import signal
import socket
import struct
import sys
import time
from typing import Final

import msgspec

from voxbridge.services.tools.sandbox import child, frames
from voxbridge.services.tools.sandbox.engine import CHECKING, SCRIPTS, QuickJs
from voxbridge.shared.embedded.child import die_with

TOLD: Final = struct.Struct(">cii")
"""A message of the zygote: its kind, a process id, and a number: the error of a fork, or the status of an end."""

READY, FORKED, FAILED, ENDED = b"R", b"F", b"X", b"E"


def main() -> None:
    """Serve until the other side is gone."""
    descriptor, parent = (int(one) for one in sys.argv[1:])
    die_with(parent)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    time.localtime()  # reads the zone now: a sandbox opens no file
    msgspec.json.encode(frames.CheckedFrame(problem=""))
    out = child.Out()
    running, checking = QuickJs(SCRIPTS, out), QuickJs(CHECKING, out)
    running.call("image")
    gc.collect()
    gc.freeze()
    gc.disable()
    woken, wake = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
    with socket.socket(fileno=descriptor) as line:
        line.send(TOLD.pack(READY, 0, 0))
        poll = select.poll()
        poll.register(line, select.POLLIN)
        poll.register(woken, select.POLLIN)
        while True:
            ready = {one for one, _ in poll.poll()}
            if woken in ready:
                with contextlib.suppress(BlockingIOError):
                    os.read(woken, 4_096)
                _reap(line)
            if line.fileno() in ready and not _fork(line, running, checking, out):
                return


def _reap(line: socket.socket) -> None:
    with contextlib.suppress(ChildProcessError):
        while (ended := os.waitpid(-1, os.WNOHANG))[0]:
            line.send(TOLD.pack(ENDED, ended[0], os.waitstatus_to_exitcode(ended[1])))


def _fork(line: socket.socket, running: QuickJs, checking: QuickJs, out: child.Out) -> bool:
    """Fork a process for the socket that came; return whether there may be another."""
    try:
        _, ancillary, _, _ = line.recvmsg(1, socket.CMSG_SPACE(array.array("i").itemsize))
    except ConnectionResetError:
        return False
    if not ancillary:
        return False
    own = array.array("i", ancillary[0][2])[0]
    me = os.getpid()
    try:
        pid = os.fork()
    except OSError as error:
        line.send(TOLD.pack(FAILED, 0, error.errno or 0))
        os.close(own)
        return True
    if pid == 0:
        _become(own, me, running, checking, out)
    os.close(own)
    handle = os.pidfd_open(pid)
    line.sendmsg([TOLD.pack(FORKED, pid, 0)], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [handle]))])
    os.close(handle)
    return True


def _become(own: int, parent: int, running: QuickJs, checking: QuickJs, out: child.Out) -> None:
    """Turn the fork into a sandbox's process; never return."""
    try:
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        nothing = os.open(os.devnull, os.O_RDWR)
        for number in (0, 1, 2):
            os.dup2(nothing, number)
        if own != child.CHANNEL:
            os.dup2(own, child.CHANNEL)
        os.closerange(child.CHANNEL + 1, resource.getrlimit(resource.RLIMIT_NOFILE)[0])
        child.serve(parent, running, checking, out)
    except BaseException as error:  # noqa: BLE001 - whatever it is, the fork must not go on as the zygote
        out(msgspec.json.encode(frames.DoneFrame(kind="start", message=f"{type(error).__name__}: {error}")).decode())
    finally:
        os._exit(1)


if __name__ == "__main__":
    main()
