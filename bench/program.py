"""A measurement in a process of its own: a module that is run as a program and prints its result as one line of JSON."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from typing import TypeVar

import msgspec

from bench.stack import ROOT

T = TypeVar("T")


async def result(module: str, *words: str, kind: type[T], within_s: float) -> T:
    """Run a module and return what it printed last. Raises `ValueError` with its last words when it failed, and `TimeoutError`."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", module, *words), cwd=ROOT, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    try:
        async with asyncio.timeout(within_s):
            said, failed = await process.communicate()
    except TimeoutError:
        raise TimeoutError(f"{module} was not done within {within_s:g} s") from None
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    lines = (failed if process.returncode else said).decode(errors="replace").strip().splitlines() or [f"{module} said nothing"]
    try:
        return msgspec.json.decode(lines[-1].encode(), type=kind)
    except msgspec.DecodeError as error:
        raise ValueError(lines[-1][:200]) from error


def put(found: msgspec.Struct) -> None:
    """Print a result, as the program whose result it is."""
    sys.stdout.write(msgspec.json.encode(found).decode() + "\n")
