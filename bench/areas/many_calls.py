"""A log of ten thousand calls: the list, and a large call among them, the oldest and the newest.

    python -m bench --only many_calls

Two calls of ten megabytes (ten minutes at a megabyte of events a minute) are written, the first and the last of ten thousand; the others
have two turns each. All are asked for over HTTP as Studio does: a page of fifty calls, and one call with its transcript. The older one
stands beside the newer one: neither may be slower for its age.
"""

from __future__ import annotations

import time
from typing import Any, Final

import httpx
import nats
from msgspec.structs import replace
from redis.asyncio import Redis

from bench import figures
from bench.areas.audio import Found, Say
from bench.areas.past import ran
from bench.report import Figure, beside
from bench.stack import Stack, child_environment, stack
from tests.long_call import Call
from voxbridge.shared.bus.subjects import EVENT_STREAM
from voxbridge.shared.ids import new_session_id
from voxbridge.shared.log.reader import Log
from voxbridge.shared.store.store import Store

CALLS: Final = 10_000
QUICK: Final = 500
TURNS: Final = 2
LARGE_TURNS: Final = 2_600
"""Turns whose events have ten megabytes."""

AGE_US: Final = 60_000_000
"""Time from the beginning of one call to that of the next."""

BATCH: Final = 500
TIMES: Final = 40
OPENINGS: Final = 12
LIST_MS: Final = 200
OPEN_MS: Final = 500


async def many_calls(quick: bool, say: Say) -> Found:
    """Write them, then list, open and replay."""
    count = QUICK if quick else CALLS
    async with stack(("gateway",), greeting=False) as product:  # executors would answer the calls of functions
        old, new, middle_ms = await _written(product, count, LARGE_TURNS // (10 if quick else 1), say)
        times, openings = (8, 4) if quick else (TIMES, OPENINGS)
        async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{product.config.port}", timeout=60, trust_env=False) as client:
            say("many_calls: the list")
            newest = figures.series(await _asked(client, times, "/api/sessions?limit=50"))
            oldest = figures.series(await _asked(client, times, f"/api/sessions?limit=50&before={middle_ms}"))
            say("many_calls: a large call")
            opened = {sid: figures.series(await _asked(client, openings, f"/api/sessions/{sid}")) for sid in (old, new)}
        env = {**child_environment(), **product.config.as_env()}
        replayed = {}
        for sid in (old, new):
            say("many_calls: the large call is replayed")
            replayed[sid] = (await ran("voxbridge", "replay", sid, "--service", "voice", env=env))[1]
    note = f"{count:,} calls, two of them with {LARGE_TURNS if not quick else LARGE_TURNS // 10:,} turns"
    read, again = Figure(area="many_calls", what="", unit="ms", value=None, note=note), "the same answer once before"
    listed = replace(read, what="a page of 50 calls, the newest, p95", key="many_calls.list", value=newest.p95, target=LIST_MS, needs=again)
    large = replace(
        read, what="a call of 10 MB opened, the newest, p95", key="many_calls.open", value=opened[new].p95, target=OPEN_MS, needs=again
    )
    whole = replace(read, what="the same replayed (`voxbridge replay`), the newest", key="many_calls.replay", value=replayed[new])
    found = [
        beside(listed, "the oldest", oldest.p95),
        beside(large, "the oldest", opened[old].p95),
        beside(whole, "the oldest", replayed[old]),
    ]
    return found, {"list": {"newest": newest, "oldest": oldest}, "opened": {"newest": opened[new], "oldest": opened[old]}}, []


async def _written(product: Stack, count: int, large: int, say: Say) -> tuple[str, str, int]:
    """Write so many calls; return the ids of the first and the last one, the large ones, and the ms at which the 51st began."""
    now = time.time_ns() // 1_000
    began = now - count * AGE_US - large * 10_000_000
    sids = [new_session_id() for _ in range(count)]
    nc = await nats.connect(product.config.nats_url)
    try:
        log = Log(nc)
        first = (await log.js.stream_info(EVENT_STREAM)).state.last_seq + 1  # the journals of a call name positions
        async with Redis.from_url(product.config.redis_url) as redis:
            store = Store(redis)
            for number, sid in enumerate(sids):
                call = Call(sid, turns=large if sid in (sids[0], sids[-1]) else TURNS, began_us=began + number * AGE_US, first=first)
                await call.write(log)
                first += len(call.facts)
                if number % BATCH == 0:
                    say(f"many_calls: {number:,} of {count:,} calls are written")
            await store.add_to_index({sid: began + number * AGE_US for number, sid in enumerate(sids)}, {})
            await store.index_built()
    finally:
        await nc.close()
    return sids[0], sids[-1], (began + 50 * AGE_US) // 1_000


async def _asked(client: httpx.AsyncClient, times: int, path: str) -> list[float]:
    """Return the ms that an answer took, read to its end. The first one, which loads code and caches, is not counted."""
    took: list[float] = []
    for _ in range(times + 1):
        began = time.perf_counter()
        answer: Any = (await client.get(path)).raise_for_status().json()
        took.append((time.perf_counter() - began) * 1_000)
        if not answer.get("sessions", answer.get("transcript")):
            raise ValueError(f"{path} has nothing")
    return took[1:]
