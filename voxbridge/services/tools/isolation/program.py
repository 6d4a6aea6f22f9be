"""The program of a child process that runs isolated functions. Usage: `python -m voxbridge.services.tools.isolation.program DESCRIPTOR
PARENT PACK...`

Reads calls from the socket with this descriptor and answers each, one at a time. Before a call it sets the kernel's limits of memory and
processor time. Owns nothing that lasts: it may be killed at any moment, and `voxbridge.services.tools.isolation.children` starts another.
It imports little, so that it starts fast, and gets no connections or credentials of the executor.
"""

from __future__ import annotations

import contextlib
import importlib
import math
import os
import resource
import socket
import struct
import sys
import threading
from pathlib import Path
from typing import Any, Final

import msgspec

from voxbridge.services.tools.core.results import as_failure, as_result
from voxbridge.services.tools.registry import Tool, describe
from voxbridge.shared.embedded.child import die_with
from voxbridge.shared.errors import Code, VoxbridgeError
from voxbridge.shared.events.voice import Failure

FRAME: Final = struct.Struct(">I")
"""Header of a message: the length of its payload in bytes."""

MEBIBYTE: Final = 1024 * 1024


class Asked(msgspec.Struct, frozen=True, kw_only=True):
    """A call of a function in a pack, limited to `cpu_s` seconds of processor time and `memory_mb` MiB beyond what the process holds."""

    pack: str
    name: str
    arguments: dict[str, Any]
    cpu_s: int
    memory_mb: int


class Answered(msgspec.Struct, frozen=True, kw_only=True):
    """The outcome of a call. `last`: the process ends now, because the call left something running in it."""

    result: dict[str, Any] | None = None
    error: Failure | None = None
    last: bool = False


def main() -> None:
    """Serve calls until the other side is gone."""
    descriptor, parent, *packs = sys.argv[1:]
    die_with(int(parent))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    with socket.socket(fileno=int(descriptor)) as line, line.makefile("rb") as reader:
        tools: dict[tuple[str, str], Tool] = {}
        for pack in packs:
            try:
                importlib.import_module(pack)
            except (Exception, SystemExit) as error:  # noqa: BLE001 - a call of it fails, and those of other packs do not
                sys.stderr.write(f"{pack} cannot be imported by a child: {error!r}\n"[:2_000])
        resting = threading.active_count()
        send(line, b"")
        while head := reader.read(FRAME.size):
            asked = msgspec.msgpack.decode(reader.read(*FRAME.unpack(head)), type=Asked)
            answer = run(asked, tools)
            left = threading.active_count() > resting or _has_children()
            send(line, msgspec.msgpack.encode(msgspec.structs.replace(answer, last=left)))
            if left:
                os._exit(0)


def send(line: socket.socket, payload: bytes) -> None:
    """Write one message."""
    line.sendall(FRAME.pack(len(payload)) + payload)


def run(asked: Asked, tools: dict[tuple[str, str], Tool]) -> Answered:
    """Run one call within its limits."""
    limits = {
        resource.RLIMIT_CPU: math.ceil(sum(os.times()[:2])) + asked.cpu_s,
        resource.RLIMIT_AS: _address_space() + asked.memory_mb * MEBIBYTE,
    }
    before = {limit: resource.getrlimit(limit) for limit in limits}
    try:
        for limit, most in limits.items():
            hard = before[limit][1]
            resource.setrlimit(limit, (most if hard == resource.RLIM_INFINITY else min(most, hard), hard))
        key = asked.pack, asked.name
        if key not in tools:
            tools[key] = describe(getattr(importlib.import_module(asked.pack), asked.name), timeout_s=0)
        tool = tools[key]
        value = tool.run(**msgspec.structs.asdict(tool.check(asked.arguments)))
        return Answered(result=as_result(asked.name, value))
    except VoxbridgeError as error:
        return Answered(error=as_failure(error))
    except MemoryError:
        message = f"{asked.name} needed more than {asked.memory_mb} MiB of memory."
        return Answered(error=Failure(code=Code.TOO_LARGE, message=message))
    except BaseException as error:  # noqa: BLE001 - even SystemExit is only a failure of its call
        sys.stderr.write(f"{asked.name} failed: {error!r}\n"[:2_000])
        message = f"{asked.name} failed by a fault of its own ({type(error).__name__})."
        return Answered(error=Failure(code=Code.INTERNAL, message=message))
    finally:
        for limit, values in before.items():
            resource.setrlimit(limit, values)


def _address_space() -> int:
    return int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()


def _has_children() -> bool:
    with contextlib.suppress(ChildProcessError):
        os.waitpid(-1, os.WNOHANG)
        return True
    return False


if __name__ == "__main__":
    main()
