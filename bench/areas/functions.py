"""Calls of functions: what the executor adds to a call, how many it does, and what a process of it costs before the first.

The function called does nothing, so all of it is the path: the call's event, the consumer, the start, the result and their journal, each
acknowledged by a log that syncs every append. The callers are this process.
"""

from __future__ import annotations

import asyncio
import statistics
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import psutil

from bench import figures
from bench.areas.audio import MEDIANS, Found, Say
from bench.clients.function_calls import PACK, Trip, calling, rate
from bench.report import Figure, beside
from bench.stack import READY_S, Child, Stack, StackError, child_environment, stack
from voxbridge.shared.setting import PREFIX
from voxbridge.supervisor.probes import Probes

SESSIONS: Final = 50
CALLS: Final = 1_000
WINDOW: Final = 16
"""Calls that each session keeps open: 800 in all, where one executor runs 256 at a time and two run 512."""

WARM_S: Final = 2.0
LOAD_S: Final = 10.0
LOOK_S: Final = 0.01
SETTLE_S: Final = 3.0
"""Seconds from ready to the reading of memory: the packs have loaded what they load, and a child stands ready."""

APPENDS_S: Final = 2.0
EVENTS: Final = 5
"""Events of a call: `tool.called`, `tool.started`, `tool.completed`, and the journal ahead of each of the last two."""

LOG_ALONE: Final = f"the log alone, at {EVENTS} appends a call"
PACKS: Final[Mapping[str, str]] = {f"{PREFIX}TOOL_PACKS": PACK}
APPEND: Final = "an event appended and acknowledged"


async def functions(quick: bool, say: Say) -> Found:
    """Measure one call at a time, then as many as one and two executors do, then the start of a process."""
    trips, about, _ = await _trips(100 if quick else CALLS, say)
    loaded, about_load, _ = await _loaded(1 if quick else 3, 4.0 if quick else LOAD_S, say)
    begun, about_start, _ = await _starts(2 if quick else 7, say)
    return [*trips, *loaded, *begun], {**about, **about_load, **about_start}, []


async def _trips(count: int, say: Say) -> Found:
    """Call once at a time, in the sessions in turn; the first call of a session is told apart, since its session is read from the log."""
    say(f"functions: {count} calls, one at a time")
    async with stack(("tools",), extra=PACKS) as product, calling(product.config.nats_url, SESSIONS) as callers:
        first = [await callers.one(sid) for sid in callers.sids]
        later = [await callers.one(callers.sids[number % SESSIONS]) for number in range(count)]
    whole, opening = figures.series([trip.after for trip in later]), figures.series([trip.after for trip in first])
    append = figures.series([trip.append for trip in later])
    with_append = figures.series([trip.append + trip.after for trip in later])
    what = "an empty function: `tool.called` appended → `tool.completed` heard"
    found = [
        beside(_of(f"{what}, p50", "functions.p50", whole.p50, "ms", target=5), APPEND, append.p50),
        beside(_of(f"{what}, p99", "functions.p99", whole.p99, "ms", target=20), APPEND, append.p99),
        _of("the same from before the append of `tool.called`, p50", "", with_append.p50, "ms"),
        _of("the same, the first call of a session, p50", "", opening.p50, "ms"),
    ]
    return found, {"trips": whole, "with_append": with_append, "first": opening, "append": append, "raw_ms": _raw(later)}, []


async def _loaded(rounds: int, seconds: float, say: Say) -> Found:
    """Load one executor and then two, in turn, each pair on servers of its own, so that no log is longer than the other's."""
    one: list[dict[str, Any]] = []
    two: list[dict[str, Any]] = []
    for number in range(rounds):
        for executors, taken in ((1, one), (2, two)):
            say(f"functions: {SESSIONS} sessions on {executors} executors, round {number + 1} of {rounds}")
            taken.append(await _load(executors, seconds))
    single, double = (statistics.median(each["rate"] for each in taken) for taken in (one, two))
    alone, alone_two = (statistics.median(each["appends"] for each in taken) / EVENTS for taken in (one, two))
    what = f"calls of an empty function a second, {SESSIONS} sessions of {WINDOW} open calls"
    note = f"{MEDIANS}; every call begun and completed once"
    cpu = statistics.median(each["cpu_ms"]["tools"] for each in one)
    found = [
        beside(_of(f"{what}, one executor", "functions.rate", single, "/s", target=300, aim="at least", note=note), LOG_ALONE, alone),
        beside(_of("the same, two executors", "functions.rate_two", double, "/s", note=note), LOG_ALONE, alone_two),
        _of("two executors beside one", "functions.scaling", double / single, "×", target=1.6, aim="at least"),
        _of("CPU of the executor per call", "", cpu, "ms", note=f"one executor, {MEDIANS}"),
    ]
    return found, {"one": one, "two": two}, []


async def _load(executors: int, seconds: float) -> dict[str, Any]:
    """Call once in each session, then load all: which executor serves a session shows with its first call."""
    async with stack(("tools",), extra=PACKS) as product:
        processes = {"tools": [product.processes["tools"]], "nats": [product.processes["nats"]]}
        for _ in range(executors - 1):
            processes["tools"].append(await product.start("tools"))
        async with calling(product.config.nats_url, SESSIONS) as callers:
            for sid in callers.sids:
                await callers.one(sid)
            appends = await callers.appends(APPENDS_S)
            before = _spent(processes)
            load = await callers.load(WARM_S + seconds, window=WINDOW)
            spent = {name: after - before[name] for name, after in _spent(processes).items()}
            await callers.check(load.calls)
    each = {name: 1_000 * one / len(load.calls) for name, one in {**spent, "callers": load.spent}.items()}
    taken = rate(load.ended_at, WARM_S, WARM_S + seconds)
    return {"rate": taken, "appends": appends, "calls": len(load.calls), "seconds": seconds, "cpu_ms": each}


async def _starts(times: int, say: Say) -> Found:
    """Start an executor with every pack, and read its memory once it is idle."""
    took: list[float] = []
    own: list[float] = []
    child: list[float] = []
    async with stack(()) as product:
        for number in range(times):
            say(f"functions: start {number + 1} of {times} of an executor with all packs")
            ready, alone, children = await _start(product)
            took.append(ready)
            own.append(alone)
            child.append(children)
    started = figures.series(took)
    whole = [alone + children for alone, children in zip(own, child, strict=True)]
    note = f"PSS with the child that stands ready, median of {times}; the executor alone {statistics.median(own):.0f} MiB"
    found = [
        _of(f"executor with all packs, process started → ready, p50 of {times}", "functions.start", started.p50, "ms", target=1_500),
        _of("the same, longest", "", started.longest, "ms"),
        _of("its memory when idle", "functions.memory", statistics.median(whole), "MiB", target=120, note=note),
    ]
    return found, {"start_ms": took, "memory_mib": {"executor": own, "children": child}}, []


async def _start(product: Stack) -> tuple[float, float, float]:
    """Return ms from the start of a process to ready, and PSS of it and of its children in MiB. The process is ended."""
    env = {**child_environment(), **product.config.as_env()}
    probes = Probes(product.config.nats_url)
    asked = probes.bus("tools")
    try:
        if await asked():
            raise StackError("an executor runs already")
        with tempfile.TemporaryDirectory(prefix="voxbridge-bench-") as folder:
            began = time.perf_counter()
            with Child("tools", ["voxbridge.services.tools"], env, Path(folder)) as child:
                while not await asked():
                    child.check()
                    if time.perf_counter() - began > READY_S:
                        raise StackError(f"the executor was not ready within {READY_S:g} s")
                    await asyncio.sleep(LOOK_S)
                ready = (time.perf_counter() - began) * 1_000
                await asyncio.sleep(SETTLE_S)
                process = psutil.Process(child.pid)
                alone = _mib(process)
                return ready, alone, sum(map(_mib, process.children(recursive=True)))
    finally:
        await probes.close()


def _mib(process: psutil.Process) -> float:
    return float(process.memory_full_info().pss) / 2**20


def _spent(processes: Mapping[str, list[psutil.Process]]) -> dict[str, float]:
    """Return user and system time of the processes in s, by name."""
    return {name: sum(sum(one.cpu_times()[:2]) for one in ones) for name, ones in processes.items()}


def _raw(trips: list[Trip]) -> list[tuple[float, float]]:
    return [(round(trip.append, 3), round(trip.after, 3)) for trip in trips]


def _of(what: str, key: str, value: float | None, unit: str, **more: Any) -> Figure:
    return Figure(area="functions", what=what, key=key, unit=unit, value=value, **more)
