"""Audio through the whole product beside the bare echo: round trip, CPU per frame, sessions that fit, memory per session.

The load is another process (`bench.clients.client`) on the same machine, so the ladder measures product and client together. Repeated
measurements are given as the median of their rounds, taken in turn with those of the baseline.
"""

from __future__ import annotations

import asyncio
import statistics
from collections.abc import Callable, Sequence
from typing import Any, Final

from bench import figures
from bench.clients.client import EchoResult, Task
from bench.clients.load import held, run
from bench.report import Figure, beside
from bench.stack import LIGHT, Stack, bare_echo, stack

BARE: Final = "bare echo"
MEDIANS: Final = "median of the rounds"
ROUND_TRIP_SESSIONS: Final = 50
CPU_SESSIONS: Final = 100
P99_LIMIT_MS: Final = 100.0
FEW: Final = 50
FURTHER: Final = 500
SETTLE_S: Final = 60.0
READINGS: Final = 5
WITHIN: Final = 0.003
"""Consecutive memory readings, one a second, differ by at most this share when settled."""

Found = tuple[list[Figure], dict[str, Any], list[str]]
Say = Callable[[str], None]


async def audio(quick: bool, say: Say) -> Found:
    """Measure the round trip with 50 sessions and the CPU per frame with 100, beside the bare echo."""
    rounds, seconds = (1, 3.0) if quick else (3, 8.0)
    ours: dict[int, list[EchoResult]] = {ROUND_TRIP_SESSIONS: [], CPU_SESSIONS: []}
    bare: dict[int, list[EchoResult]] = {ROUND_TRIP_SESSIONS: [], CPU_SESSIONS: []}
    async with bare_echo() as (url, process), stack(LIGHT, greeting=False) as product:
        for number in range(rounds):
            for sessions in ours:
                say(f"audio: {sessions} sessions, round {number + 1} of {rounds}")
                bare[sessions].append(await _echo(url, {"bare": [process.pid]}, sessions, seconds, bare=True))
                ours[sessions].append(await _echo(product.url, product.pids(), sessions, seconds))
    trips, bare_trips = ours[ROUND_TRIP_SESSIONS], bare[ROUND_TRIP_SESSIONS]
    cpu, bare_cpu = _cpu(ours[CPU_SESSIONS]), _cpu(bare[CPU_SESSIONS])
    lost = sum(result.lost for result in trips)
    what = f"audio round trip, {ROUND_TRIP_SESSIONS} sessions of 20 ms frames"
    found = [
        beside(_of(f"{what}, p50", "audio.p50", _median(trips, "p50"), "ms", target=1.5), BARE, _median(bare_trips, "p50")),
        beside(_of(f"{what}, p99", "audio.p99", _median(trips, "p99"), "ms", target=10), BARE, _median(bare_trips, "p99")),
        beside(_of("frames lost of these", "audio.lost", lost, "", target=0), BARE, sum(r.lost for r in bare_trips)),
        beside(_of(f"CPU per frame, all processes, {CPU_SESSIONS} sessions", "audio.cpu", cpu, "µs"), BARE, bare_cpu),
        _of(f"the same, in bare echoes with {CPU_SESSIONS} sessions too", "audio.share", cpu / bare_cpu, "×", target=3.5),
    ]
    detail = {"rounds": {f"{n}": results for n, results in ours.items()}, "bare": {f"{n}": results for n, results in bare.items()}}
    return found, detail, _noise("audio", [*trips, *bare_trips, *ours[CPU_SESSIONS], *bare[CPU_SESSIONS]])


async def sessions(quick: bool, say: Say) -> Found:
    """Climb the ladder: more sessions on one gateway and one voice process until p99 is over the limit."""
    rungs = figures.ladder(100, 100, 200) if quick else figures.ladder(50, 50, 600)
    seconds = 3.0 if quick else 6.0
    results: list[EchoResult] = []
    async with stack(LIGHT, greeting=False) as product:
        for count in rungs:
            say(f"sessions: {count}")
            results.append(await _echo(product.url, product.pids(), count, seconds))
            p99 = results[-1].rtt_ms.p99
            if p99 is None or p99 > P99_LIMIT_MS:
                break
    best = figures.sustained([(result.sessions, result.rtt_ms.p99) for result in results], P99_LIMIT_MS)
    last = results[-1]
    note = "the ladder ends here" if best == rungs[-1] else f"at {last.sessions} the client used {last.client_cpu:.0%} of a core"
    what = f"sessions on one gateway and one voice process with p99 ≤ {P99_LIMIT_MS:g} ms"
    figure = Figure(area="sessions", what=what, key="sessions", unit="", value=best, target=200, aim="at least", note=note)
    return [figure], {"rungs": results}, _noise("sessions", results[:3])


async def memory(quick: bool, say: Say) -> Found:
    """Measure the memory of one further idle session in local mode, over all processes."""
    further = 100 if quick else FURTHER
    async with stack(LIGHT, greeting=False) as product:
        task = Task(kind="hold", url=product.url, sessions=FEW, mode="local")
        async with held(task):
            few, few_settled = await _settle(product, lambda mib: say(f"memory: {FEW} sessions, {mib:.1f} MiB"))
            task = Task(kind="hold", url=product.url, sessions=further, mode="local")
            async with held(task):
                many, many_settled = await _settle(product, lambda mib: say(f"memory: {FEW + further} sessions, {mib:.1f} MiB"))
    each = {name: figures.per_further(few[name], many[name], further) / 1024 for name in few}
    note = ", ".join(f"{name} {kib:.1f}" for name, kib in each.items())
    what = f"memory per further idle session, from {FEW} to {FEW + further}, all processes"
    figure = Figure(area="memory", what=what, key="memory.idle", unit="KiB", value=sum(each.values()), target=150, note=note)
    noisy = [] if few_settled and many_settled else [f"memory did not settle within {SETTLE_S:g} s"]
    return [figure], {"few": few, "many": many, "further": further}, noisy


async def _echo(url: str, pids: dict[str, list[int]], count: int, seconds: float, *, bare: bool = False) -> EchoResult:
    return await run(Task(kind="echo", url=url, sessions=count, seconds=seconds, bare=bare, pids=pids), EchoResult)


async def _settle(product: Stack, say: Callable[[float], None]) -> tuple[dict[str, int], bool]:
    """Return the memory by process once it has settled, and whether that happened in time."""
    readings: list[float] = []
    for _ in range(int(SETTLE_S)):
        by_name = product.memory()
        readings.append(float(sum(by_name.values())))
        say(readings[-1] / 2**20)
        if figures.settled(readings, last=READINGS, within=WITHIN):
            return by_name, True
        await asyncio.sleep(1.0)
    return product.memory(), False


def _of(what: str, key: str, value: float | None, unit: str, *, target: float | None = None) -> Figure:
    return Figure(area="audio", what=what, key=key, unit=unit, value=value, target=target, note=MEDIANS)


def _median(results: Sequence[EchoResult], name: str) -> float | None:
    values = [getattr(result.rtt_ms, name) for result in results]
    return None if None in values else statistics.median(values)


def _cpu(results: Sequence[EchoResult]) -> float:
    return statistics.median(sum(result.cpu_us.values()) for result in results)


def _noise(area: str, results: Sequence[EchoResult]) -> list[str]:
    late = max((result.late_ms.p99 or 0.0 for result in results), default=0.0)
    return [f"{area}: the client itself was up to {late:.1f} ms late (p99)"] if late > figures.LATE_MS else []
