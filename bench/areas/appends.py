"""Appending events: one session's writer, each event acknowledged before the next, beside a bare `js.publish` of the same bytes.

Then the effect of appends on audio: the round trip of frames with and without a writer beside it, in turn, on one product.
"""

from __future__ import annotations

import asyncio
import statistics
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

import nats

from bench import figures
from bench.areas.audio import MEDIANS, Found, Say
from bench.clients.client import EchoResult, Task
from bench.clients.load import run
from bench.report import Figure, beside
from bench.stack import LIGHT, Stack, stack
from voxbridge.shared import events
from voxbridge.shared.bus import subjects
from voxbridge.shared.embedded.nats_server import NatsServer
from voxbridge.shared.ids import new_session_id
from voxbridge.shared.log.reader import Log
from voxbridge.shared.log.writer import SessionWriter

EVENTS: Final = 2_000
READS: Final = 5
SYNC: Final = "always"
BARE: Final = "a bare js.publish"
BESIDE_SESSIONS: Final = 50
BESIDE_RATE: Final = 200
"""Events appended each second while audio runs: more than 50 calls write."""


async def appends(quick: bool, say: Say) -> Found:
    """Measure one writer alone, then one beside audio."""
    alone, about, _ = await _alone(quick, say)
    together, about_together, _ = await _beside_audio(quick, say)
    return [*alone, *together], {**about, **about_together}, []


async def _alone(quick: bool, say: Say) -> Found:
    """Run the writer and the bare publish in turn on one server, so that both see the same disk."""
    count = 200 if quick else EVENTS
    event = events.voice.UserSaid(text="What time is it in Tokyo?", turn=1, source="speech")
    ours: list[float] = []
    bare: list[float] = []
    with tempfile.TemporaryDirectory(prefix="voxbridge-bench-") as folder, NatsServer(Path(folder), sync_interval=SYNC) as server:
        nc = await nats.connect(server.url)
        try:
            log = Log(nc)
            await log.ensure_streams(retention_days=1)
            sid, other = new_session_id(), new_session_id()
            writer = SessionWriter(log, sid, "voice")
            payload = events.encode(event, event_id="x", sid=other, ts=0, cause=None)
            subject = subjects.event_subject(other, "voice", True, events.kind_of(event).name)
            say(f"appends: {count} events")
            for _ in range(count):
                began = time.perf_counter()
                await writer.append(event, ts=0, cause=None)
                middle = time.perf_counter()
                await log.js.publish(subject, payload)
                ours.append((middle - began) * 1_000)
                bare.append((time.perf_counter() - middle) * 1_000)
            rates: list[float] = []
            for _ in range(READS):
                began = time.perf_counter()
                read = sum([1 async for _ in log.read_all(sid)])
                rates.append(read / (time.perf_counter() - began))
        finally:
            await nc.close()
    mine, plain = figures.series(ours), figures.series(bare)
    what = f"an event appended and acknowledged, sync_interval {SYNC}"
    found = [
        beside(Figure(area="appends", what=f"{what}, p50", key="appends.p50", unit="ms", value=mine.p50, target=1), BARE, plain.p50),
        beside(Figure(area="appends", what=f"{what}, p99", key="appends.p99", unit="ms", value=mine.p99), BARE, plain.p99),
        beside(
            Figure(area="appends", what="events appended by one writer", unit="/s", value=1_000 * count / sum(ours)),
            BARE,
            1_000 * count / sum(bare),
        ),
        Figure(area="appends", what="events read back and decoded", unit="/s", value=statistics.median(rates)),
    ]
    return found, {"writer": mine, "publish": plain}, []


async def _beside_audio(quick: bool, say: Say) -> Found:
    rounds, seconds = (1, 3.0) if quick else (3, 6.0)
    quiet: list[EchoResult] = []
    busy: list[EchoResult] = []
    async with stack(LIGHT, greeting=False) as product:
        task = Task(kind="echo", url=product.url, sessions=BESIDE_SESSIONS, seconds=seconds)
        for number in range(rounds):
            say(f"appends: audio without and with a writer beside it, round {number + 1} of {rounds}")
            quiet.append(await run(task, EchoResult))
            async with _appending(product):
                busy.append(await run(task, EchoResult))
    found = []
    for name, target in (("p50", 1.5), ("p99", 10.0)):
        without, with_writer = (statistics.median(getattr(one.rtt_ms, name) or 0.0 for one in results) for results in (quiet, busy))
        what = f"audio round trip, {BESIDE_SESSIONS} sessions, beside {BESIDE_RATE} appends a second, {name}"
        found.append(
            beside(Figure(area="appends", what=what, unit="ms", value=with_writer, target=target, note=MEDIANS), "without appends", without)
        )
    lost = sum(one.lost for one in busy)
    found.append(
        beside(
            Figure(area="appends", what="frames lost of these", unit="", value=lost, target=0),
            "without appends",
            sum(one.lost for one in quiet),
        )
    )
    return found, {"quiet": quiet, "busy": busy}, []


@asynccontextmanager
async def _appending(product: Stack) -> AsyncIterator[None]:
    nc = await nats.connect(product.config.nats_url)
    event = events.voice.UserSaid(text="What time is it in Tokyo?", turn=1, source="speech")

    over = asyncio.Event()

    async def write() -> None:
        writer = SessionWriter(Log(nc), new_session_id(), "voice")
        due = time.monotonic()
        while not over.is_set():
            await writer.append(event, ts=0, cause=None)
            due += 1 / BESIDE_RATE
            await asyncio.sleep(max(0.0, due - time.monotonic()))

    writing = asyncio.create_task(write())
    try:
        yield
    finally:
        over.set()
        await writing
        await nc.close()
