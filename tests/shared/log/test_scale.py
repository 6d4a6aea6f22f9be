"""1,001 concurrent sessions on a nats-server with default limits: none of them needs a consumer."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from tests.shared.backends import Server, open_log
from tests.shared.collector import Collector
from voxbridge.shared.bus import subjects
from voxbridge.shared.events.gateway import TextReceived
from voxbridge.shared.events.voice import UserSaid
from voxbridge.shared.ids import new_session_id
from voxbridge.shared.log.feed import Feed
from voxbridge.shared.log.writer import SessionWriter

SESSIONS = 1_001


async def test_1001_sessions_are_open_at_a_time_and_each_gets_its_own_events(own_server: Callable[[str], Server]) -> None:
    async with open_log(own_server("nats").url) as log:
        seen = {new_session_id(): Collector() for _ in range(SESSIONS)}
        gateways = [SessionWriter(log, sid, "gateway", stem="c", fenced=False) for sid in seen]
        voices = [SessionWriter(log, sid, "voice") for sid in seen]
        await asyncio.gather(*(gateway.append(TextReceived(text=gateway.sid), ts=0, cause=None) for gateway in gateways))
        feeds = [Feed(log, sid, collector) for sid, collector in seen.items()]
        await asyncio.gather(*(feed.start() for feed in feeds))
        assert [r.ts for collector in seen.values() for r in collector.got] == [0] * SESSIONS

        await asyncio.gather(*(voice.append(UserSaid(text=voice.sid, turn=1, source="text"), ts=1, cause=None) for voice in voices))
        await asyncio.gather(*(collector.count(2) for collector in seen.values()))

        # All of them read again at once, as after a cut, and continue.
        await log.nc.force_reconnect()
        await asyncio.gather(*(voice.append(UserSaid(text=voice.sid, turn=2, source="text"), ts=2, cause=None) for voice in voices))
        await asyncio.gather(*(collector.count(3) for collector in seen.values()))
        for sid, collector in seen.items():
            assert [(r.sid, r.ts, getattr(r.event, "text", "")) for r in collector.got] == [(sid, ts, sid) for ts in range(3)]

        info = await log.js.stream_info(subjects.EVENT_STREAM)
        assert info.state.consumer_count == 0
        assert info.state.messages == 3 * SESSIONS
        await asyncio.gather(*(feed.stop() for feed in feeds))
