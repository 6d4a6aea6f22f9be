"""Feeds that start while their session is written, on each of three servers, while leaders are killed or deposed and followers lag."""

from __future__ import annotations

import asyncio
import random
from contextlib import AsyncExitStack
from functools import partial

from tests import draws
from tests.cluster import SERVERS, Cluster, connected
from tests.eventually import eventually
from tests.shared.backends import open_log
from tests.shared.collector import Collector
from voxbridge.shared import events
from voxbridge.shared.events.tools import ToolCompleted
from voxbridge.shared.events.voice import SpeechStarted, UserSaid
from voxbridge.shared.ids import new_session_id
from voxbridge.shared.log.feed import Feed
from voxbridge.shared.log.reader import Log
from voxbridge.shared.log.writer import SessionWriter

EVENTS = 12
SIDE_BY_SIDE = 24
WHOLE_S = 30.0
_FAULTS = ("kill", "depose", "freeze", "nothing")


async def begun_beside_appends(cluster: Cluster, *, feeds: int) -> list[str]:
    """Start that many feeds, in waves, each with a fault. Return one line for each feed that misses events."""
    dice = draws.dice("begun beside appends")
    found: list[str] = []
    async with AsyncExitStack() as stack:
        logs = [await stack.enter_async_context(open_log(cluster.url)) for _ in range(SERVERS)]
        nc = await stack.enter_async_context(connected(cluster.urls))
        await cluster.whole(nc)
        for wave in range(-(-feeds // SIDE_BY_SIDE)):
            count = min(SIDE_BY_SIDE, feeds - wave * SIDE_BY_SIDE)
            await _spread(logs, cluster)
            trouble = asyncio.create_task(_fault(cluster, logs, _FAULTS[wave % len(_FAULTS)], dice))
            found += [line for line in await asyncio.gather(*(_one(logs, dice.random(), n) for n in range(count))) if line]
            await trouble
            await cluster.whole(nc)
    return found


async def _spread(logs: list[Log], cluster: Cluster) -> None:
    """Connect each log to a different server, with a few attempts, because the client chooses at random."""
    for log, server in zip(logs, cluster.servers, strict=True):
        for _ in range(8):
            if log.nc.is_connected and log.nc.connected_url is not None and log.nc.connected_url.port == server.port:
                break
            await log.nc.force_reconnect()
            await eventually(partial(getattr, log.nc, "is_connected"), within_s=WHOLE_S)


async def _fault(cluster: Cluster, logs: list[Log], what: str, dice: random.Random) -> None:
    await asyncio.sleep(dice.uniform(0, 0.05))
    async with connected(cluster.urls) as nc:
        leader = await cluster.leader(nc)
        match what:
            case "kill":
                cluster.kill(leader)
                await asyncio.sleep(0.2)
                cluster.start_again(leader)
            case "depose":
                await cluster.step_down(nc)
            case "freeze":
                follower = (leader + dice.randrange(1, SERVERS)) % SERVERS
                cluster.freeze(follower)
                await asyncio.sleep(dice.uniform(0.3, 1.0))
                cluster.go_on(follower)


async def _one(logs: list[Log], when: float, number: int) -> str:
    """Write one session with two writers while a feed starts. Return what the feed lacks, or an empty text."""
    sid, seen = new_session_id(), Collector()
    writing, following = logs[number % SERVERS], logs[(number + 1) % SERVERS]
    visibility = "*" if number % 2 else "c"
    feed = Feed(following, sid, seen, visibility=visibility)

    async def follow() -> None:
        await asyncio.sleep(when * 0.1)
        await feed.start()

    await asyncio.gather(_write(writing, sid), follow())
    stored = [one async for one in writing.read_all(sid, visibility=visibility)]
    try:
        async with asyncio.timeout(WHOLE_S):
            await seen.count(len(stored))
    except TimeoutError:
        missing = sorted({one.seq for one in stored} - {one.seq for one in seen.got})
        return f"feed {number} ({visibility}) of {sid} never had {missing} of {len(stored)}"
    finally:
        await feed.stop()
    got = [one.seq for one in seen.got]
    if got != [one.seq for one in stored]:
        return f"feed {number} had {got}"
    return "" if len(stored) == (2 * EVENTS if visibility == "c" else 3 * EVENTS) else f"{len(stored)} events are stored of {sid}"


async def _write(log: Log, sid: str) -> None:
    voice, tools = SessionWriter(log, sid, "voice"), SessionWriter(log, sid, "tools")
    made: list[events.Event] = []
    for n in range(EVENTS):
        made += [UserSaid(text=str(n), turn=n, source="text"), SpeechStarted(source="vad", audio_ms=n)]

    async def speak() -> None:
        for ts, event in enumerate(made):
            await voice.append(event, ts=ts, cause=None)

    async def work() -> None:
        for ts in range(EVENTS):
            await tools.append(ToolCompleted(call_id=str(ts), name="f", result={}, ms=1), ts=ts, cause=None)

    await asyncio.gather(speak(), work())
