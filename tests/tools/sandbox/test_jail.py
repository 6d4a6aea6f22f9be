"""The jail: a process that entered it is killed by any system call that is not left, and cannot get out."""

from __future__ import annotations

import signal
import struct
import subprocess
import sys

import pytest

from voxbridge.services.tools.sandbox import jail

FORBIDDEN = {
    "a file": "os.open('/etc/passwd', os.O_RDONLY)",
    "a file to write": "os.open('/tmp/x', os.O_CREAT | os.O_WRONLY)",
    "the folder": "os.listdir('/')",
    "a path": "os.stat('/')",
    "a socket": "socket.socket()",
    "a socket of the machine": "socket.socket(socket.AF_UNIX)",
    "a pair of sockets": "socket.socketpair()",
    "a fork": "os.fork()",
    "a thread": "threading.Thread(target=print).start()",
    "a program": "os.execv('/bin/true', ['true'])",
    "another process": "os.kill(os.getppid(), 0)",
    "tracing": "libc.ptrace(0, 0, 0, 0)",
    "the kernel's keys": "libc.syscall(250, 0, 0)",
    "a name space": "libc.unshare(0x10000000)",
    "a mount": "libc.mount(b'a', b'/', b'tmpfs', 0, 0)",
    "a filter of its own": "libc.prctl(22, 2, 0)",
    "other limits": "resource.setrlimit(resource.RLIMIT_AS, (1, 1))",
    "memory of another process": "libc.process_vm_readv(1, 0, 0, 0, 0, 0)",
    "a user": "os.setuid(0)",
    "a duplicate": "os.dup(1)",
    "a pipe": "os.pipe()",
    "a link": "os.symlink('/a', '/tmp/b')",
    "control of a device": "fcntl.ioctl(1, 0x5413, b'12345678')",
    "an event": "os.eventfd(0)",
    "input and output of the kernel": "libc.syscall(425, 1, 0)",
    "a file in memory": "os.memfd_create('x')",
    "a program of the kernel": "libc.syscall(321, 0, 0, 0)",
    "memory that can be executed": "libc.mmap(None, 4096, 7, 0x22, -1, 0)",
    "memory made executable": "libc.mprotect(ctypes.c_void_p(ctypes.addressof(page) & ~4095), 4096, 5)",
    "a signal to itself": "os.kill(os.getpid(), 9)",
    "the clock": "time.clock_settime(0, 0.0)",
    "calls of another kind": "libc.syscall(0x40000000)",
}
PROGRAM = """
import ctypes, fcntl, os, resource, socket, sys, threading, time
from voxbridge.services.tools.sandbox import jail
libc, page = ctypes.CDLL(None, use_errno=True), ctypes.create_string_buffer(8192)
for name in ("ptrace", "syscall", "unshare", "mount", "prctl", "process_vm_readv", "mmap", "mprotect"):
    getattr(libc, name)
{before}
jail.enter(os.getppid())
os.write(1, b"in ")
{after}
os.write(1, b"out")
os._exit(0)
"""


def run(after: str, before: str = "") -> tuple[int, bytes]:
    done = subprocess.run([sys.executable, "-c", PROGRAM.format(after=after, before=before)], capture_output=True, check=False, timeout=30)
    return done.returncode, done.stdout


@pytest.mark.parametrize("what", FORBIDDEN)
def test_a_forbidden_call_kills_the_process(what: str) -> None:
    assert run(FORBIDDEN[what]) == (-signal.SIGSYS, b"in ")


def test_what_a_handler_needs_is_left() -> None:
    left = "os.urandom(16); bytes(1 << 22); time.monotonic(); os.getpid()"
    assert run(left) == (0, b"in out")


def test_memory_beyond_the_bound_is_refused() -> None:
    code = f"\ntry:\n    bytes({(jail.MEMORY_MB + 1) << 20})\nexcept MemoryError:\n    os.write(1, b'none ')"
    assert run(code) == (0, b"in none out")


def test_a_process_beyond_its_processor_time_is_killed() -> None:
    returned, told = run("\nwhile True: pass", before="jail.CPU_S = 1")
    assert (returned in (-signal.SIGXCPU, -signal.SIGKILL), told) == (True, b"in ")


@pytest.mark.parametrize("machine", ["x86_64", "aarch64"])
def test_the_filter_kills_what_it_does_not_name(machine: str) -> None:
    program = jail.filter_of(machine)
    mark, left, memory = jail._CALLS[machine]
    assert judge(program, mark, 999_999) == "kill"
    assert judge(program, mark ^ 1, next(iter(left.values()))) == "kill"
    assert {judge(program, mark, number) for number in left.values()} == {"allow"}
    assert {judge(program, mark, number, protection=3) for number in memory.values()} == {"allow"}
    assert {judge(program, mark, number, protection=7) for number in memory.values()} == {"kill"}
    assert judge(program, mark, 0x40000000 | 1) == "kill"


def test_a_machine_without_a_list_has_no_sandbox() -> None:
    with pytest.raises(OSError, match="riscv64"):
        jail.filter_of("riscv64")


def judge(program: bytes, mark: int, number: int, *, protection: int = 0) -> str:
    """Run a filter as the kernel does."""
    shown = {0: number, 4: mark, 32: protection}
    at, held = 0, 0
    while True:
        code, then, otherwise, value = struct.unpack_from("=HBBI", program, at * 8)
        at += 1
        if code == 0x20:
            held = shown[value]
        elif code == 0x06:
            return {0x7FFF0000: "allow", 0x80000000: "kill"}[value]
        else:
            true = {0x15: held == value, 0x35: held >= value, 0x45: bool(held & value)}[code]
            at += then if true else otherwise
