"""Handlers of pages: what a sandbox costs a call, an idle session and its neighbours, and how soon a page is ready.

The sandboxes are those of the tools service, in this process: a handler that does nothing takes what the path to its process and back
takes. The last figure is of a whole product, with the socket of a page.
"""

from __future__ import annotations

import asyncio
import statistics
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Final

import httpx
import msgspec
import psutil
from websockets.asyncio.client import connect
from websockets.typing import Origin

from bench import figures
from bench.areas.audio import Found, Say
from bench.report import Figure, beside
from bench.stack import LIGHT, Stack, StackError, stack
from voxbridge.services.tools.sandbox.outside import Outside
from voxbridge.services.tools.sandbox.sandboxes import SETTLE_S, Outcome, Sandboxes, Wanted
from voxbridge.shared.fetch import Fetcher

CALLS: Final = 1_000
SESSIONS: Final = 50
IDLE: Final = 60
"""Sessions whose idle sandboxes are weighed."""

NEIGHBOURS: Final = 20
"""Calls at a time whose delay beside hostile handlers is measured."""

ROUNDS: Final = 20
ENDS: Final = 10
ENDLESS_S: Final = 0.5
"""Time that an endless handler is given."""

PAGES: Final = 40
ANSWER_S: Final = 20.0
ORIGIN: Final = "http://localhost:3000"
NOTHING: Final = "async () => 1"
AHEAD: Final = "sandboxes that were made ahead"
HOSTILE: Final = (
    "async () => { for (;;); }",
    "async () => { const kept = []; for (;;) kept.push(new Array(1000).fill('x')); }",
    "async () => { let text = 'x'; for (;;) text += text.slice(0, 4096); }",
    "async () => { const again = async () => { await null; return again(); }; return again(); }",
)


async def handlers(quick: bool, say: Say) -> Found:
    """Measure calls, idle sandboxes, neighbours and ends in this process, then pages of a product."""
    say("handlers: calls, idle sandboxes, hostile neighbours")
    rows: list[Figure] = []
    detail: dict[str, Any] = {}
    for part in (_calls, _idle, _neighbours, _ends):
        async with _sandboxes() as sandboxes:
            found, about = await part(sandboxes, quick)
        rows += found
        detail |= about
    say("handlers: pages that configure")
    async with stack(LIGHT, greeting=False) as product:
        found, about = await _pages(product, 5 if quick else PAGES)
    return [*rows, *found], {**detail, **about}, []


@asynccontextmanager
async def _sandboxes() -> AsyncIterator[Sandboxes]:
    sandboxes = Sandboxes()
    try:
        await _call(sandboxes, "warm")
        yield sandboxes
    finally:
        await sandboxes.close()


async def _call(sandboxes: Sandboxes, sid: str, source: str = NOTHING, account: str = "own") -> Outcome:
    outside = Outside(Fetcher(""), {}, ())
    wanted = Wanted(account=account, sid=sid, name="tool", source=source, arguments="{}", secrets={})
    return await sandboxes.call(wanted, outside.answer)


async def _timed(sandboxes: Sandboxes, sid: str, account: str = "own") -> float:
    """Return the ms of a call that does nothing. Raises `StackError` if it did not end as it should."""
    began = time.perf_counter()
    outcome = await _call(sandboxes, sid, account=account)
    took = 1_000 * (time.perf_counter() - began)
    if outcome.value != "1":
        raise StackError(f"a handler that returns 1 ended with {outcome.error or outcome.value}")
    return took


async def _calls(sandboxes: Sandboxes, quick: bool) -> tuple[list[Figure], dict[str, Any]]:
    """Call once in each of many sessions, then again and again in one."""
    first = figures.series([await _timed(sandboxes, f"first-{number}") for number in range(SESSIONS)])
    later = figures.series([await _timed(sandboxes, "one") for _ in range(100 if quick else CALLS)])
    note = f"{later.count} calls, one at a time"
    found = [
        _of("a handler `async () => 1`: executor → result, p50", "handlers.p50", later.p50, "ms", target=2, note=note),
        _of("the same, p99", "handlers.p99", later.p99, "ms", target=8),
        _of(
            "the same, first call of a session, p95",
            "handlers.first",
            first.p95,
            "ms",
            target=60,
            needs=AHEAD,
            note=f"{first.count} sessions",
        ),
    ]
    return found, {"calls_ms": later, "first_calls_ms": first}


async def _idle(sandboxes: Sandboxes, quick: bool) -> tuple[list[Figure], dict[str, Any]]:
    """Weigh the sandboxes of sessions that made one call each."""
    before = sum(map(_pss, sandboxes.pids))
    known = set(sandboxes.pids)
    count = 10 if quick else IDLE
    for number in range(count):
        await _timed(sandboxes, f"idle-{number}")
    await asyncio.sleep(SETTLE_S)  # a process is at rest by then, or ended
    pids = sandboxes.pids
    each = (sum(map(_pss, pids)) - before) / (len(pids) - len(known))
    note = f"{count} sessions that made a call, {each / 2**20:.2f} MiB each (PSS)"
    return [_of("idle sandboxes in a GiB", "handlers.idle", 2**30 / each, "", target=200, aim="at least", note=note)], {"idle_bytes": each}


async def _neighbours(sandboxes: Sandboxes, quick: bool) -> tuple[list[Figure], dict[str, Any]]:
    """Make calls at a time alone, and beside handlers that take all that they can get, in turn."""
    alone: list[float] = []
    hostile: list[float] = []
    for _ in range(3 if quick else ROUNDS):
        alone += await _at_a_time(sandboxes)
        attacks = [asyncio.ensure_future(_call(sandboxes, f"h{number}", one, "hostile")) for number, one in enumerate(HOSTILE)]
        hostile += await _at_a_time(sandboxes)
        for one in attacks:
            one.cancel()
        await asyncio.gather(*attacks, return_exceptions=True)
    usual, pressed = figures.series(alone), figures.series(hostile)
    note = f"{NEIGHBOURS} calls at a time, {usual.count} in all, beside {len(HOSTILE)} that spin and take memory"
    more = None if usual.p95 is None or pressed.p95 is None else pressed.p95 - usual.p95
    row = _of("what hostile handlers add to the calls of others, p95", "handlers.neighbours", more, "ms", target=20, note=note)
    return [beside(row, "p95 without them", usual.p95)], {"alone_ms": usual, "beside_hostile_ms": pressed}


async def _at_a_time(sandboxes: Sandboxes) -> list[float]:
    return await asyncio.gather(*(_timed(sandboxes, f"n{number}", f"a{number % 4}") for number in range(NEIGHBOURS)))


async def _ends(sandboxes: Sandboxes, quick: bool) -> tuple[list[Figure], dict[str, Any]]:
    """End handlers that never do, and wait until their processes are gone."""
    took: list[float] = []
    for number in range(3 if quick else ENDS):
        before = set(sandboxes.pids)
        call = asyncio.ensure_future(_call(sandboxes, f"endless-{number}", HOSTILE[0]))
        await asyncio.wait((call,), timeout=ENDLESS_S)
        began = time.perf_counter()
        call.cancel()
        await asyncio.gather(call, return_exceptions=True)
        took.append(1_000 * (time.perf_counter() - began))
        if any(_spins(pid) for pid in set(sandboxes.pids) - before):
            raise StackError("an endless handler was not ended")
    row = _of("an endless handler, its time over → its process gone, longest", "handlers.ended", max(took), "ms", target=250)
    return [row], {"ended_ms": took}


def _spins(pid: int) -> bool:
    try:
        return psutil.Process(pid).cpu_percent(0.1) > 50
    except psutil.NoSuchProcess:
        return False


async def _pages(product: Stack, count: int) -> tuple[list[Figure], dict[str, Any]]:
    """Open the socket of a page and configure ten tools; the time from `configure` to `ready`."""
    base = f"http://127.0.0.1:{product.config.port}"
    async with httpx.AsyncClient(base_url=base, trust_env=False, timeout=ANSWER_S) as client:
        made = await client.post("/api/keys", json={"account": "bench"})
        if made.status_code != httpx.codes.CREATED:
            raise StackError(f"no key was made: {made.text[:200]}")
        key = made.json()["text"]
    took: list[float] = []
    for number in range(count):
        tools = [
            {
                "name": f"tool_{one}",
                "description": "Look one up.",
                "parameters": {"id": "string"},
                "handler": f"async ({{ id }}) => id + {number}",
            }
            for one in range(10)
        ]
        async with connect(f"{base.replace('http', 'ws')}/session?key={key}", origin=Origin(ORIGIN), compression=None) as socket:
            began = time.perf_counter()
            await socket.send(msgspec.json.encode({"type": "configure", "instructions": "Be brief.", "tools": tools}).decode())
            async with asyncio.timeout(ANSWER_S):
                told = msgspec.json.decode(await socket.recv(), type=dict[str, Any])
            took.append(1_000 * (time.perf_counter() - began))
            if told["type"] != "ready":
                raise StackError(f"a page was told {str(told)[:200]}")
    ready = figures.series(took)
    note = f"{count} pages, one after the other; the sources of each are new; median {statistics.median(took):.0f} ms"
    return [_of("a page with 10 tools: `configure` → `ready`, p95", "handlers.ready", ready.p95, "ms", target=150, note=note)], {
        "ready_ms": ready
    }


def _pss(pid: int) -> int:
    return int(psutil.Process(pid).memory_full_info().pss)


def _of(what: str, key: str, value: float | None, unit: str, **more: Any) -> Figure:
    return Figure(area="handlers", what=what, key=key, unit=unit, value=value, **more)
