"""A call on Gemini Live through the whole product, beside one process that only relays to the vendor's SDK.

Both talk to the same stand-in for Google over TLS, which sends back what it hears. Audio may come back in other pieces, so it is read as
one stream of bytes; a frame counts when its last byte has arrived.
"""

from __future__ import annotations

import asyncio
import statistics
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import ExitStack, asynccontextmanager
from pathlib import Path
from typing import Final, Literal

import psutil

from bench import figures
from bench.areas.audio import MEDIANS, Found
from bench.clients.client import EchoResult, StartsResult, Task
from bench.clients.load import run
from bench.report import Figure, beside
from bench.stack import LIGHT, Child, StackError, child_environment, free_port, listening, stack

RELAY: Final = "a relay on the vendor's SDK"
SESSIONS: Final = 50
SHARES: Final = {25: 1.0, 50: 0.85, 100: 0.75}
"""Calls at which the CPU per frame is compared with the relay's, and the most that it may be of it."""

LADDER_FROM: Final = 75
P99_LIMIT_MS: Final = 200.0
START_S: Final = 30.0
STARTS: Final = 10


async def realtime(quick: bool, say: Callable[[str], None]) -> Found:
    """Measure round trip and CPU per frame with 50 sessions, CPU with fewer and with more, the ladder of sessions, and the time until a
    session is ready."""
    rounds, seconds = (1, 3.0) if quick else (3, 8.0)
    both = {count: (list[EchoResult](), list[EchoResult]()) for count in SHARES}
    ours, bare = both[SESSIONS]
    rungs: list[EchoResult] = []
    async with google() as found, relay(found) as (url, process), stack(LIGHT, greeting=False, extra=found) as product:
        first = (await run(Task(kind="starts", url=product.url, sessions=1, mode="gemini"), StartsResult)).start_ms[0]
        for number in range(rounds):
            for count, (mine, its) in both.items():
                say(f"realtime: {count} sessions, round {number + 1} of {rounds}")
                its.append(await _echo(url, {"relay": [process.pid]}, count, seconds, bare=True))
                mine.append(await _echo(product.url, product.pids(), count, seconds))
        starts = await run(Task(kind="starts", url=product.url, sessions=STARTS, mode="gemini", gap_s=0.2), StartsResult)
        for count in figures.ladder(LADDER_FROM, 50, 175 if quick else 325):
            say(f"realtime: {count} sessions")
            rungs.append(await _echo(product.url, product.pids(), count, 3.0 if quick else 6.0))
            p99 = rungs[-1].rtt_ms.p99
            if p99 is None or p99 > P99_LIMIT_MS:
                break
    what = f"audio round trip on Gemini Live, {SESSIONS} sessions of 20 ms frames"
    cpu, bare_cpu = _cpu(ours), _cpu(bare)
    cores = statistics.median(sum(one.cpu_us.values()) * one.rate / 1e6 for one in ours)
    best = figures.sustained([(one.sessions, one.rtt_ms.p99) for one in (*ours, *rungs)], P99_LIMIT_MS)
    result = [
        beside(_of(f"{what}, p50", "realtime.p50", _median(ours, "p50"), "ms", target=2, note=MEDIANS), RELAY, _median(bare, "p50")),
        beside(_of(f"{what}, p99", "realtime.p99", _median(ours, "p99"), "ms", target=10, note=MEDIANS), RELAY, _median(bare, "p99")),
        beside(_of("frames lost of these", "realtime.lost", sum(r.lost for r in ours), "", target=0), RELAY, sum(r.lost for r in bare)),
        beside(
            _of(f"CPU per frame, all processes, {SESSIONS} sessions", "realtime.cpu", cpu, "µs", note=f"{cores:.2f} cores in all"),
            RELAY,
            bare_cpu,
        ),
        *(_share(count, mine, its) for count, (mine, its) in both.items()),
        _of(f"sessions with p99 ≤ {P99_LIMIT_MS:g} ms", "realtime.sessions", best, "", target=75, aim="at least"),
        _of("first session of a fresh worker, start to ready", "realtime.first", first, "ms", target=100),
        _of("start to ready, median", "realtime.start", statistics.median(starts.start_ms), "ms"),
    ]
    late = max((one.late_ms.p99 or 0.0 for one in (*ours, *bare)), default=0.0)
    noisy = [f"realtime: the client itself was up to {late:.1f} ms late (p99)"] if late > figures.LATE_MS else []
    detail = {str(count): {"rounds": mine, "relay": its} for count, (mine, its) in both.items()}
    return result, {**detail, "rungs": rungs, "starts_ms": starts.start_ms}, noisy


@asynccontextmanager
async def google() -> AsyncIterator[dict[str, str]]:
    """Run the stand-in for Google; yield the environment variables by which an SDK finds it."""
    with tempfile.TemporaryDirectory(prefix="voxbridge-bench-") as name:
        folder = Path(name)
        with Child("google", ["tests.fakes.gemini.process", name], child_environment(), folder) as child:
            end = time.monotonic() + START_S
            while not (folder / "url").exists():
                child.check()
                if time.monotonic() > end:
                    raise StackError("The stand-in for Gemini did not start.")
                await asyncio.sleep(0.05)
            url, ca_file = (folder / "url").read_text().split()
            yield {"GOOGLE_GEMINI_BASE_URL": url, "SSL_CERT_FILE": ca_file, "GEMINI_API_KEY": "bench"}


@asynccontextmanager
async def relay(found: Mapping[str, str], module: str = "bench.clients.relay") -> AsyncIterator[tuple[str, psutil.Process]]:
    """Run the baseline, or another relay `module`; yield its URL and its process."""
    port = free_port()
    with ExitStack() as running:
        folder = running.enter_context(tempfile.TemporaryDirectory(prefix="voxbridge-bench-"))
        child = running.enter_context(Child("relay", [module, str(port)], {**child_environment(), **found}, Path(folder)))
        await listening(port, child, START_S)
        yield f"ws://127.0.0.1:{port}/echo", psutil.Process(child.pid)


async def _echo(url: str, pids: dict[str, list[int]], count: int, seconds: float, *, bare: bool = False) -> EchoResult:
    task = Task(kind="echo", url=url, sessions=count, seconds=seconds, mode="gemini", bare=bare, stream=True, pids=pids)
    return await run(task, EchoResult)


def _of(
    what: str,
    key: str,
    value: float | None,
    unit: str,
    *,
    target: float | None = None,
    aim: Literal["at most", "at least"] = "at most",
    note: str = "",
) -> Figure:
    return Figure(area="realtime", what=what, key=key, unit=unit, value=value, target=target, aim=aim, note=note)


def _share(count: int, mine: Sequence[EchoResult], its: Sequence[EchoResult]) -> Figure:
    lost, bare_lost = sum(one.lost for one in mine), sum(one.lost for one in its)
    note = f"{_cpu(mine):.0f} of {_cpu(its):.0f} µs; {lost} frames lost, by the relay {bare_lost}"
    what = f"CPU per frame with {count} sessions, in that of the relay with as many"
    return _of(what, f"realtime.share.{count}", _cpu(mine) / _cpu(its), "×", target=SHARES[count], note=note)


def _median(results: Sequence[EchoResult], name: str) -> float | None:
    values = [getattr(result.rtt_ms, name) for result in results]
    return None if None in values else statistics.median(values)


def _cpu(results: Sequence[EchoResult]) -> float:
    return statistics.median(sum(result.cpu_us.values()) for result in results)
