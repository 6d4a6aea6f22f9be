"""Effect of clients that only occupy resources (`bench.clients.intruders`) on twenty calls, and their cost in gateway memory.

Rounds with and without them are taken in turn. The figure is the median with them less the median without; both stand beside it.
"""

from __future__ import annotations

import asyncio
import statistics
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final
from urllib.parse import urlsplit

from bench.areas.audio import Found, Say
from bench.clients.client import EchoResult, Task
from bench.clients.load import run
from bench.report import Figure
from bench.stack import LIGHT, Stack, stack

CALLS: Final = 20
SETTLED_S: Final = 4.0
"""Seconds after which the intruders have opened all their connections."""

ADDED_MS: Final = 5
MEMORY_MIB: Final = 64
_MIB: Final = 1024 * 1024


async def doors(quick: bool, say: Say) -> Found:
    """Run twenty calls beside a thousand half-open connections, twenty slow sockets and a header of 32 MiB."""
    rounds, seconds = (1, 4.0) if quick else (3, 10.0)
    alone: list[EchoResult] = []
    beside: list[EchoResult] = []
    grown: list[float] = []
    async with stack(LIGHT, greeting=False) as product:
        await _calls(product, 2.0)  # warms the gateway, so that its first-call memory is not counted
        for number in range(rounds):
            say(f"doors: round {number + 1} of {rounds}")
            alone.append(await _calls(product, seconds))
            before = product.memory()["gateway"]
            with _intruders(product):
                await asyncio.sleep(SETTLED_S)
                beside.append(await _calls(product, seconds))
                grown.append((product.memory()["gateway"] - before) / _MIB)
    quiet, loaded = (statistics.median(one.rtt_ms.p99 or 0.0 for one in results) for results in (alone, beside))
    note = f"p99 {loaded:.2f} ms beside them, {quiet:.2f} ms alone; {sum(one.lost for one in beside)} frames lost"
    what = "1,000 idle or half-open sockets, 20 that send byte by byte, a header of 32 MiB"
    found = [
        Figure(
            area="doors",
            what=f"{what}: added round trip of {CALLS} calls, p99",
            key="doors.added",
            unit="ms",
            value=loaded - quiet,
            raw=loaded,
            subtracted="the same calls without them",
            target=ADDED_MS,
            note=note,
        ),
        Figure(area="doors", what=f"{what}: memory of the gateway", key="doors.memory", unit="MiB", value=max(grown), target=MEMORY_MIB),
    ]
    return found, {"alone": alone, "beside": beside, "grown_mib": grown}, []


async def _calls(product: Stack, seconds: float) -> EchoResult:
    return await run(Task(kind="echo", url=product.url, sessions=CALLS, seconds=seconds), EchoResult)


@contextmanager
def _intruders(product: Stack) -> Iterator[None]:
    port = urlsplit(product.url).port
    process = subprocess.Popen([sys.executable, "-m", "bench.clients.intruders", str(port)], stdin=subprocess.PIPE)
    try:
        yield
    finally:
        assert process.stdin is not None
        process.stdin.close()
        process.wait(10)
