"""Appending an event: one session's writer, each acknowledged before the next, beside a bare `js.publish` of the same bytes."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path
from typing import Final

import nats

from bench import figures
from bench.audio import Found, Say
from bench.report import Figure
from shared import bus, events
from shared.embedded import NatsServer
from shared.ids import new_session_id
from shared.log import Log
from shared.writer import SessionWriter

EVENTS: Final = 2_000
SYNC: Final = "always"


async def appends(quick: bool, say: Say) -> Found:
    """Both in turn, on one server, so that they see the same disk."""
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
            payload = events.encode(event, id="x", sid=other, ts=0, cause=None)
            subject = bus.event_subject(other, "voice", True, events.kind_of(event).name)
            say(f"appends: {count} events")
            for _ in range(count):
                began = time.perf_counter()
                await writer.append(event, ts=0, cause=None)
                middle = time.perf_counter()
                await log.js.publish(subject, payload)
                ours.append((middle - began) * 1_000)
                bare.append((time.perf_counter() - middle) * 1_000)
        finally:
            await nc.close()
    mine, plain = figures.series(ours), figures.series(bare)
    what = f"an event appended and acknowledged, sync_interval {SYNC}"
    note = "beside it a bare js.publish"
    found = [
        Figure(area="appends", what=f"{what}, p50", unit="ms", value=mine.p50, baseline=plain.p50, note=note),
        Figure(area="appends", what=f"{what}, p99", unit="ms", value=mine.p99, baseline=plain.p99, note=note),
    ]
    return found, {"writer": mine, "publish": plain}, []
