"""Start of the comparison's load as a separate process, away from the systems' core, and its answer."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from typing import Final

import msgspec

from bench.clients.client import EchoResult, Task
from bench.clients.load import LoadError
from bench.peers.systems import System, cores, on_cores
from bench.stack import ROOT

WARM_S: Final = 1.5
MARGIN_S: Final = 60.0
"""Seconds for opening and ending sessions, in addition to the load itself."""


async def echo(system: System, sessions: int, seconds: float) -> EchoResult:
    """Load a system; raises `LoadError` when the client fails or takes too long."""
    task = Task(
        kind="echo",
        url=system.url,
        sessions=sessions,
        mode="gemini",
        seconds=seconds,
        warm_s=WARM_S,
        bare=system.bare,
        stream=True,
        pids=system.pids(),
    )
    return msgspec.json.decode(await run("bench.peers.echo", msgspec.json.encode(task).decode(), seconds + WARM_S), type=EchoResult)


async def run(module: str, argument: str, seconds: float) -> bytes:
    """Run one of our modules with one argument. Return its output; raises `LoadError`."""
    with on_cores(cores()[1]):
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", module, argument, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
    try:
        async with asyncio.timeout(seconds + MARGIN_S):
            said, words = await process.communicate()
    except TimeoutError as error:
        raise LoadError("it did not end in time") from error
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    if process.returncode:
        lines = words.decode(errors="replace").strip().splitlines()
        raise LoadError(lines[-1] if lines else "it said nothing")
    return said
