"""Processor time of an installation that nobody uses: `voxbridge up` with everything that belongs to it and the local models loaded. Of the
services of what is known, memory too.

The reading begins when the local model has read what it reads ahead, so that the processes together take less than `SETTLED` of a core.
"""

from __future__ import annotations

import asyncio
import time
from collections import defaultdict
from typing import Final

import psutil

from bench.areas.audio import Found, Say
from bench.installed import installed
from bench.report import Figure
from bench.stack import StackError

SETTLED: Final = 0.15
"""Share of a core, over `LOOK_S`, below which nothing is read ahead any more."""

LOOK_S: Final = 10.0
SETTLED_WITHIN_S: Final = 300.0
READING_S: Final = 120.0
"""Seconds of the reading: what is done every two minutes is in it once."""

TARGET: Final = 2.0
MEMORY: Final = ("knowledge", "awareness")
"""Services of what is known; they have targets of their own, together."""

MEMORY_SHARE: Final = 0.5
MEMORY_MIB: Final = 120


async def at_rest(quick: bool, say: Say) -> Found:
    """Measure the processor time of all processes at rest, in percent of a core. Raises `StackError` if they find no rest."""
    seconds = READING_S / 4 if quick else READING_S
    async with installed({}) as product:
        say("at_rest: waiting until the local model has read its prompts")
        end = time.monotonic() + SETTLED_WITHIN_S
        while sum((await _shares(product.up, LOOK_S)).values()) > 100 * SETTLED:
            if time.monotonic() > end:
                raise StackError(f"The installation took more than {SETTLED:.0%} of a core for {SETTLED_WITHIN_S:g} s.")
        say(f"at_rest: reading for {seconds:g} s")
        shares = await _shares(product.up, seconds)
        mib = sum(_mib(one) for one in product.up.children(recursive=True))
        if not all(name in shares for name in MEMORY):
            raise StackError(f"Not all of {', '.join(MEMORY)} run.")
    most = ", ".join(f"{name} {share:.1f}" for name, share in sorted(shares.items(), key=lambda one: -one[1])[:5])
    row = Figure(
        area="at_rest",
        what="processor time at rest, the whole installation with the local models",
        key="at_rest",
        unit="% of a core",
        value=round(sum(shares.values()), 1),
        target=TARGET,
        note=f"over {seconds:g} s; most: {most}",
    )
    both = "the knowledge and the awareness service at rest, together"
    processor = Figure(
        area="at_rest", what=f"{both}: processor time", key="at_rest.memory.share", unit="% of a core",
        value=round(sum(shares.get(name, 0.0) for name in MEMORY), 2), target=MEMORY_SHARE,
    )  # fmt: skip
    memory = Figure(
        area="at_rest", what=f"{both}: memory (PSS)", key="at_rest.memory.mib", unit="MiB", value=round(mib, 1), target=MEMORY_MIB
    )
    return [row, processor, memory], {"shares": dict(shares), "mib": mib}, []


def _mib(process: psutil.Process) -> float:
    """Return the memory of a process in MiB if it is one of `MEMORY`, shared pages by their share."""
    try:
        return float(process.memory_full_info().pss) / 2**20 if _name(process) in MEMORY else 0.0
    except psutil.NoSuchProcess:
        return 0.0


async def _shares(up: psutil.Process, seconds: float) -> dict[str, float]:
    """Return the percentages of a core that the processes took within so many seconds, by name; those of one name together."""
    before, begun = _used(up), time.monotonic()
    await asyncio.sleep(seconds)
    after, took = _used(up), time.monotonic() - begun
    shares: dict[str, float] = defaultdict(float)
    for (pid, name), used in after.items():
        if (pid, name) in before:
            shares[name] += 100 * (used - before[pid, name]) / took
    return shares


def _used(up: psutil.Process) -> dict[tuple[int, str], float]:
    """Return the seconds of processor time of each process, by its id and its name."""
    found: dict[tuple[int, str], float] = {}
    for process in (up, *up.children(recursive=True)):
        try:
            times = process.cpu_times()
            found[process.pid, _name(process)] = times.user + times.system
        except psutil.NoSuchProcess:
            continue
    return found


def _name(process: psutil.Process) -> str:
    words = process.cmdline()
    modules = [word.removeprefix("voxbridge.services.") for word in words if word.startswith("voxbridge.services.")]
    if modules:
        return modules[0]
    return "supervisor" if any(word.endswith("voxbridge") for word in words[:3]) else process.name()
