"""The event log: time of a read right after an append on three replicas, requests per read on one server, and memory of stored calls.

`barrier` reads a session of twenty events right after an append, on three servers on this machine and from each of them, beside the same
read on one server. `kept_calls` stores calls of one shape and reads the memory of the server's process: with the current subjects, and with
one subject for each type of event, as in the first release.
"""

from __future__ import annotations

import asyncio
import tempfile
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

import nats
import psutil
from nats.aio.client import Client

from bench import figures
from bench.areas.audio import Found, Say
from bench.report import Figure, beside
from tests.cluster import Cluster
from voxbridge.shared import events
from voxbridge.shared.bus import subjects as bus_subjects
from voxbridge.shared.embedded.nats_server import NatsServer
from voxbridge.shared.events import gateway, tools, voice
from voxbridge.shared.events.journal import ToolsJournal, VoiceJournal
from voxbridge.shared.ids import new_session_id
from voxbridge.shared.log.reader import Log
from voxbridge.shared.log.writer import SessionWriter

READS: Final = 500
EVENTS: Final = 20
CALLS: Final = 20_000
FLUSH: Final = 50
SETTLE_S: Final = 15.0
"""Seconds until memory is read. nats-server frees its per-subject cache of a file after two idle minutes; that is a few percent, so the
measurement does not wait for it."""

MILLION: Final = 1_000_000
TARGET_GB: Final = 2.0
_TYPES: Final = (
    gateway.SessionRequested, gateway.ClientConnected, gateway.TextReceived, gateway.PlaybackReported, gateway.AudioEnded,
    gateway.ClientDisconnected, gateway.SessionEndRequested,
    voice.SessionOwned, voice.SpeechStarted, voice.SpeechEnded, VoiceJournal, voice.GenerationCancelled, voice.ToolDelivered,
    voice.SessionStarted, voice.UserSaid, voice.AgentSaid, voice.TurnCompleted, voice.ToolCalled, voice.ProviderConnected,
    voice.SessionEnded, ToolsJournal, tools.ToolStarted, tools.ToolCompleted,
)  # fmt: skip
"""Kinds of event in a call on a realtime model with a function call, in which each occurs more than once."""


async def log(quick: bool, say: Say) -> Found:
    """Measure reads first, then memory."""
    read, about, noise = await barrier(quick, say)
    kept, more, _ = await kept_calls(quick, say)
    return [*read, *kept], {**about, **more}, noise


async def barrier(quick: bool, say: Say) -> Found:
    """Measure a whole read of a short session, from each of three servers and from one."""
    count = 60 if quick else READS
    took: list[float] = []
    alone: list[float] = []
    with tempfile.TemporaryDirectory(prefix="voxbridge-bench-") as folder:
        say(f"log: {count} reads from each of three replicas")
        with Cluster(Path(folder) / "three") as cluster:
            for url in cluster.urls:
                took += await _reads([url], count, replicas=3)
        say(f"log: {count} reads on one server")
        with NatsServer(Path(folder) / "one") as server:
            alone += await _reads([server.url], count, replicas=1)
            asked = await _asked(server.url)
    three, one = figures.series(took), figures.series(alone)
    what = f"a session of {EVENTS} events read right after an append, three replicas on this machine"
    found = [
        beside(Figure(area="log", what=f"{what}, p50", unit="ms", value=three.p50, key="log.barrier.p50"), "one server", one.p50),
        beside(Figure(area="log", what=f"{what}, p95", unit="ms", value=three.p95, target=3, key="log.barrier.p95"), "one server", one.p95),
        Figure(area="log", what="requests of such a read on one server", unit="", value=asked, target=1, key="log.requests"),
    ]
    return found, {"three": three, "one": one}, []


async def _reads(urls: list[str], count: int, *, replicas: int) -> list[float]:
    nc = await nats.connect(urls)
    try:
        log = Log(nc)
        await log.ensure_streams(retention_days=1, replicas=replicas)
        took = []
        event = voice.UserSaid(text="What time is it in Tokyo?", turn=1, source="speech")
        for _ in range(count):
            writer = SessionWriter(log, new_session_id(), "voice")
            for _ in range(EVENTS):
                writer.submit(event, ts=0, cause=None)
            await writer.flushed()
            began = time.perf_counter()
            read = [one async for one in log.read_all(writer.sid)]
            took.append((time.perf_counter() - began) * 1_000)
            if len(read) != EVENTS:
                raise ValueError(f"a read gave {len(read)} of {EVENTS} events")
        return took
    finally:
        await nc.close()


async def _asked(url: str) -> int:
    """Return the number of messages that one read sends."""
    nc = await nats.connect(url)
    try:
        log = Log(nc)
        sid = new_session_id()
        await SessionWriter(log, sid, "voice").append(voice.SessionOwned(worker="w", term=1), ts=0, cause=None)
        await log.read(sid)
        before = nc.stats["out_msgs"]
        await log.read(sid)
        return nc.stats["out_msgs"] - before
    finally:
        await nc.close()


async def kept_calls(quick: bool, say: Say) -> Found:
    """Measure the server's memory per stored call: right after storing, and after a restart and a pause."""
    count = 2_000 if quick else CALLS
    today = await _kept(count, _subjects(), say, settle_s=2.0 if quick else SETTLE_S)
    before = await _kept(count, _old_subjects(), say, settle_s=2.0 if quick else SETTLE_S)
    note = f"{len(_subjects())} subjects a call, {count} calls; {len(_old_subjects())} beside"
    old = "a subject for each type"
    found = [
        beside(Figure(area="log", what="server memory per call just kept", unit="B", value=today[0], note=note), old, before[0]),
        beside(
            Figure(area="log", what="server memory per kept call", unit="B", value=today[1], note=note, key="log.kept_call"), old, before[1]
        ),
        beside(
            Figure(
                area="log",
                what="a million kept calls, extrapolated from that",
                unit="GB",
                value=today[1] * MILLION / 1e9,
                target=TARGET_GB,
                key="log.million_calls",
            ),
            old,
            before[1] * MILLION / 1e9,
        ),
    ]
    return found, {"kept_calls": {"today": today, "before": before, "calls": count}}, []


def _subjects() -> list[str]:
    kinds = [events.KINDS[one.name] for one in events.KINDS.values() if one.cls in _TYPES]
    return sorted({bus_subjects.event_subject("{}", kind.writer, kind.visible, kind.name) for kind in kinds})


def _old_subjects() -> list[str]:
    kinds = [events.KINDS[one.name] for one in events.KINDS.values() if one.cls in _TYPES]
    return sorted({f"vx.s.{{}}.ev.{kind.writer}.{'c' if kind.visible else 'i'}.{kind.name}" for kind in kinds})


async def _kept(count: int, subjects: list[str], say: Say, *, settle_s: float) -> tuple[float, float]:
    """Return bytes of resident memory per call, right after storing and after a restart.

    Includes the free heap that Go's runtime keeps."""
    say(f"log: {count} kept calls of {len(subjects)} subjects")
    with (
        tempfile.TemporaryDirectory(prefix="voxbridge-bench-") as folder,
        NatsServer(Path(folder), sync_interval="60s", min_free_bytes=0) as server,
    ):
        process = psutil.Process(server.pid)
        nc = await nats.connect(server.url)
        try:
            await Log(nc).ensure_streams(retention_days=30)
            empty = process.memory_info().rss
            await _store(nc, (new_session_id() for _ in range(count)), subjects)
            full = process.memory_info().rss
            await asyncio.sleep(settle_s)
        finally:
            await nc.close()
        server.stop()
        server.start()  # leaves the memory for the stored calls, without that of storing so many at once
        nc = await nats.connect(server.url)
        try:
            kept = (await nc.jetstream().stream_info(bus_subjects.EVENT_STREAM)).state.messages
            if kept < count * len(subjects):
                raise ValueError(f"{kept} events are kept of {count * len(subjects)}")
            await asyncio.sleep(settle_s)
            settled = psutil.Process(server.pid).memory_info().rss
        finally:
            await nc.close()
    return (full - empty) / count, (settled - empty) / count


async def _store(nc: Client, sids: Iterable[str], subjects: list[str]) -> None:
    payload = bytes(150)
    js: Any = nc.jetstream()
    for number, sid in enumerate(sids, 1):
        for subject in subjects[:-1]:
            await nc.publish(subject.format(sid), payload)
        if number % FLUSH:
            await nc.publish(subjects[-1].format(sid), payload)
        else:
            await js.publish(subjects[-1].format(sid), payload)
