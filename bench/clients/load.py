"""Start of the load client as a separate process, and its answer."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final, TypeVar

import msgspec

from bench.clients.client import Task
from bench.stack import ROOT

MARGIN_S: Final = 90.0
"""Seconds for setting up and ending sessions, in addition to the load itself."""

_T = TypeVar("_T")


class LoadError(Exception):
    """The client failed; the message is its last output."""


async def run(task: Task, result: type[_T]) -> _T:
    """Run one task in a client process; raises `LoadError` when it fails or takes too long."""
    process = await _start(task)
    try:
        async with asyncio.timeout(task.seconds + task.warm_s + task.gap_s * task.sessions + MARGIN_S):
            said, words = await process.communicate()
    except TimeoutError as error:
        raise LoadError(f"The load of {task.sessions} sessions did not end in time.") from error
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    if process.returncode:
        raise LoadError(f"The load of {task.sessions} sessions failed: {_last(words)}")
    return msgspec.json.decode(said, type=result)


@asynccontextmanager
async def held(task: Task) -> AsyncIterator[None]:
    """Hold sessions open while the block runs; raises `LoadError`."""
    process = await _start(task)
    if process.stdout is None or process.stdin is None:
        raise LoadError("The client has no pipes.")
    try:
        async with asyncio.timeout(MARGIN_S):
            if not await process.stdout.readline():
                _, words = await process.communicate()
                raise LoadError(f"{task.sessions} sessions could not be opened: {_last(words)}")
        yield
        process.stdin.close()
        async with asyncio.timeout(MARGIN_S):
            await process.wait()
    except TimeoutError as error:
        raise LoadError(f"{task.sessions} sessions were not opened or ended in time.") from error
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


async def _start(task: Task) -> asyncio.subprocess.Process:
    return await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "bench.clients.client",
        msgspec.json.encode(task).decode(),
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


def _last(words: bytes) -> str:
    lines = words.decode(errors="replace").strip().splitlines()
    return lines[-1] if lines else "it said nothing"
