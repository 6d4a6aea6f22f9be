"""The jail: limits of the kernel that a process puts on itself before it runs a stranger's code.

Owns the limits and the list of system calls that are left: reading and writing what is open, memory that cannot be executed, time, chance
and the end. Any other call kills the process (SIGSYS). It needs no capability and no help of a container, so it holds within those that
have dropped everything. Owns nothing that lasts; there is no way back out.
"""

from __future__ import annotations

import ctypes
import os
import platform
import resource
import signal
import struct
import sys
from pathlib import Path
from typing import Final

MEMORY_MB: Final = 96
"""MiB of address space beyond what the process has when it enters."""

CPU_S: Final = 120
"""Seconds of processor time of a process, for all of its calls together."""

FILES: Final = 8
"""Descriptors that may be open."""

NICE: Final = 10
NOBODY: Final = 65_534
"""User and group of a process whose parent is root."""

_PR_SET_PDEATHSIG, _PR_SET_DUMPABLE, _PR_SET_SECCOMP, _PR_SET_NO_NEW_PRIVS = 1, 4, 22, 38
_FILTER: Final = 2
_ALLOW, _KILL = 0x7FFF0000, 0x80000000
_LOAD, _EQUAL, _SET, _AT_LEAST, _RETURN = 0x20, 0x15, 0x45, 0x35, 0x06
_NUMBER, _ARCHITECTURE, _PROTECTION = 0, 4, 32
"""Offsets in what the kernel shows a filter; the last is the third argument of mmap and mprotect."""
_EXECUTE: Final = 4
_X32: Final = 0x40000000

_CALLS: Final = {
    "x86_64": (
        0xC000003E,
        {
            "read": 0, "write": 1, "close": 3, "poll": 7, "munmap": 11, "brk": 12, "rt_sigprocmask": 14, "rt_sigreturn": 15,
            "sched_yield": 24, "mremap": 25, "madvise": 28, "getpid": 39, "exit": 60,
            "gettimeofday": 96, "getrusage": 98, "sigaltstack": 131, "gettid": 186,
            "time": 201, "futex": 202, "restart_syscall": 219, "clock_gettime": 228, "clock_getres": 229, "exit_group": 231, "ppoll": 271,
            "getrandom": 318,
        },
        {"mmap": 9, "mprotect": 10},
    ),
    "aarch64": (
        0xC00000B7,
        {
            "close": 57, "read": 63, "write": 64, "ppoll": 73, "exit": 93, "exit_group": 94, "futex": 98, "clock_gettime": 113,
            "clock_getres": 114, "sched_yield": 124, "restart_syscall": 128, "sigaltstack": 132, "rt_sigprocmask": 135, "rt_sigreturn": 139,
            "getrusage": 165, "gettimeofday": 169, "getpid": 172, "gettid": 178, "brk": 214, "munmap": 215, "mremap": 216, "madvise": 233,
            "getrandom": 278,
        },
        {"mmap": 222, "mprotect": 226},
    ),
}  # fmt: skip
"""Of each architecture: its mark, the calls that are left, and those that are left for memory that cannot be executed."""


def why_not() -> str:
    """Return why this machine has no jail; empty where it has one."""
    if sys.platform != "linux":
        return "handlers run on Linux alone, whose kernel can confine them"
    machine = platform.machine()
    return "" if machine in _CALLS else f"handlers run on x86_64 and aarch64; this machine is {machine}"


def enter(parent: int) -> None:
    """Put the limits on this process, for good. It dies with `parent`, which started it. Raises OSError where the kernel refuses one."""
    os.nice(NICE)
    space = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize() + MEMORY_MB * 1024 * 1024
    limits = {
        resource.RLIMIT_AS: space,
        resource.RLIMIT_CPU: CPU_S,
        resource.RLIMIT_NOFILE: FILES,
        resource.RLIMIT_FSIZE: 0,
        resource.RLIMIT_CORE: 0,
        resource.RLIMIT_MEMLOCK: 0,
        resource.RLIMIT_MSGQUEUE: 0,
    }
    for limit, most in limits.items():
        hard = resource.getrlimit(limit)[1]
        bound = most if hard == resource.RLIM_INFINITY else min(most, hard)
        resource.setrlimit(limit, (bound, bound))
    if os.getuid() == 0:
        os.setgroups([])
        os.setresgid(NOBODY, NOBODY, NOBODY)
        os.setresuid(NOBODY, NOBODY, NOBODY)
    _prctl(_PR_SET_DUMPABLE, 0)
    _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)
    _prctl(_PR_SET_NO_NEW_PRIVS, 1)
    program = filter_of(platform.machine())
    lines = ctypes.create_string_buffer(program, len(program))
    told = _Program(len(program) // 8, ctypes.addressof(lines))
    _prctl(_PR_SET_SECCOMP, _FILTER, ctypes.addressof(told))


def filter_of(machine: str) -> bytes:
    """Return the filter of system calls for an architecture, as instructions of eight bytes. Raises OSError for one without."""
    if machine not in _CALLS:
        raise OSError(f"There is no list of system calls for {machine}.")
    mark, left, careful = _CALLS[machine]
    calls, memory = list(left.values()), list(careful.values())
    # Jumps count the instructions that they leap over. Behind the comparisons: kill, look at the protection, allow.
    total = len(calls) + len(memory)
    lines = [_line(_LOAD, _ARCHITECTURE), _line(_EQUAL, mark, 1, 0), _line(_RETURN, _KILL), _line(_LOAD, _NUMBER)]
    lines += [_line(_AT_LEAST, _X32, total, 0)]
    for place, number in enumerate(memory):
        lines.append(_line(_EQUAL, number, total - place, 0))
    for place, number in enumerate(calls, len(memory)):
        lines.append(_line(_EQUAL, number, total - place + 2, 0))
    lines += [_line(_RETURN, _KILL), _line(_LOAD, _PROTECTION), _line(_SET, _EXECUTE, 1, 0), _line(_RETURN, _ALLOW), _line(_RETURN, _KILL)]
    return b"".join(lines)


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("lines", ctypes.c_void_p))


_libc = ctypes.CDLL(None, use_errno=True)


def _line(code: int, value: int, then: int = 0, otherwise: int = 0) -> bytes:
    return struct.pack("=HBBI", code, then, otherwise, value)


def _prctl(option: int, value: int, more: int = 0) -> None:
    if _libc.prctl(option, ctypes.c_ulong(value), ctypes.c_ulong(more), 0, 0):
        number = ctypes.get_errno()
        raise OSError(number, f"The kernel refuses prctl {option}: {os.strerror(number)}")
