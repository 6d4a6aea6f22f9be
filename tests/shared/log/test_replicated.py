"""A log of three replicas, whose followers lag behind their leader."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest
from nats.aio.msg import Msg

from tests.begun_feeds import begun_beside_appends
from tests.cluster import SERVERS, Cluster, connected
from tests.eventually import BOUND_S
from tests.shared.backends import open_log
from tests.shared.collector import Collector
from voxbridge.shared.bus.connection import EVENTS_PENDING, close_nats, connect_nats
from voxbridge.shared.bus.subjects import stored_subject
from voxbridge.shared.embedded.nats_server import NatsServer
from voxbridge.shared.errors import Conflict
from voxbridge.shared.events.tools import ToolCompleted
from voxbridge.shared.events.voice import SessionOwned, UserSaid
from voxbridge.shared.ids import new_session_id
from voxbridge.shared.log.feed import Feed, Handler
from voxbridge.shared.log.reader import Log
from voxbridge.shared.log.writer import End, SessionWriter

RACES = 120
SIDE_BY_SIDE = 12
FEEDS = 192


async def test_the_loser_of_a_race_of_two_writers_is_told_a_conflict(nats_cluster: Cluster) -> None:
    async with open_log(nats_cluster.url) as one, open_log(nats_cluster.url) as other:
        for _ in range(RACES // SIDE_BY_SIDE):
            await asyncio.gather(*(race(one, other) for _ in range(SIDE_BY_SIDE)))


async def race(one: Log, other: Log) -> None:
    """Race two writers that continue at the same position: one is accepted, the other gets a conflict."""
    sid = new_session_id()
    first = SessionWriter(one, sid, "voice")
    await first.append(SessionOwned(worker="a", term=1), ts=0, cause=None)
    second = SessionWriter(other, sid, "voice", end=End(first.number, first.last_seq))
    said = UserSaid(text="hi", turn=1, source="text")
    told = await asyncio.gather(*(writer.append(said, ts=1, cause=None) for writer in (first, second)), return_exceptions=True)
    assert sum(isinstance(one, int) for one in told) == 1, told
    assert sum(isinstance(one, Conflict) for one in told) == 1, told


async def test_a_connection_goes_on_with_another_server_when_its_own_is_gone(own_cluster: Cluster) -> None:
    back = asyncio.Event()

    async def again() -> None:
        back.set()

    client = await connect_nats(own_cluster.url, "test", pending=EVENTS_PENDING, on_reconnected=again)
    try:
        log = Log(client)
        await log.ensure_streams(retention_days=1, replicas=3)
        writer = SessionWriter(log, new_session_id(), "voice")
        first = await writer.append(SessionOwned(worker="a", term=1), ts=0, cause=None)
        await own_cluster.whole(client)
        url = client.connected_url
        assert url is not None
        own_cluster.kill(next(n for n, server in enumerate(own_cluster.servers) if server.port == url.port))
        await asyncio.wait_for(back.wait(), BOUND_S)
        assert client.connected_url is not None
        assert client.connected_url.port != url.port
        second = await asyncio.wait_for(writer.append(SessionOwned(worker="a", term=2), ts=1, cause=None), BOUND_S)
        assert await log.position(writer.sid, "voice") == (second, writer.message_id(f"{writer.sid}.voice.1"))
        assert second > first
    finally:
        await close_nats(client)


async def test_a_server_that_is_not_in_the_list_is_signed_in_to_with_its_credentials(own_cluster: Cluster) -> None:
    one = own_cluster.servers[0]
    back = asyncio.Event()

    async def again() -> None:
        back.set()

    both = f"{one.url},nats://127.0.0.1:{own_cluster.servers[1].port}"
    client = await connect_nats(both, "test", pending=EVENTS_PENDING, on_reconnected=again)
    try:
        while client.connected_url is not None and client.connected_url.port != one.port:
            back.clear()
            await client.force_reconnect()
            await asyncio.wait_for(back.wait(), BOUND_S)
        back.clear()
        own_cluster.kill(0)
        await asyncio.wait_for(back.wait(), BOUND_S)
        await client.flush()
        assert client.connected_url is not None
        assert client.connected_url.port == own_cluster.servers[1].port
    finally:
        await close_nats(client)


@pytest.mark.parametrize("visibility", ["c", "*"])
async def test_a_live_copy_that_was_lost_between_servers_is_handed_over_before_the_next_of_another_writer(
    nats_cluster: Cluster, visibility: str
) -> None:
    """The feed starts again after its newest event, like a client that resumes: no later event may be missing."""
    async with open_log(nats_cluster.url, replicas=SERVERS) as log, open_log(nats_cluster.urls[-1], replicas=SERVERS) as following:
        sid, seen = new_session_id(), Collector()
        voice, tools = SessionWriter(log, sid, "voice"), SessionWriter(log, sid, "tools")
        feed = Lossy(following, sid, seen, visibility=visibility)
        await feed.start()
        first = await voice.append(UserSaid(text="hi", turn=1, source="text"), ts=0, cause=None)
        await seen.count(1)
        for count in range(3, 23, 2):
            feed.losing = True
            await voice.append(UserSaid(text="hi", turn=count, source="text"), ts=count, cause=None)
            await asyncio.wait_for(feed.lost.wait(), BOUND_S)
            feed.losing = False
            feed.lost.clear()
            await tools.append(ToolCompleted(call_id=str(count), name="f", result={}, ms=1), ts=count, cause=None)
            await seen.until(lambda got, last=tools.last_seq: got[-1].seq == last)  # type: ignore[misc]
            assert seen.got == await log.read(sid, visibility=visibility)
        assert seen.got[0].seq == first
        await feed.stop()


async def test_a_live_copy_that_was_lost_and_that_none_follows_is_handed_over(nats_cluster: Cluster) -> None:
    async with open_log(nats_cluster.url, replicas=SERVERS) as log:
        sid, seen = new_session_id(), Collector()
        voice = SessionWriter(log, sid, "voice")
        feed = Lossy(log, sid, seen)
        await feed.start()
        feed.losing = True
        await voice.append(UserSaid(text="hi", turn=1, source="text"), ts=0, cause=None)
        await seen.count(1)
        await feed.stop()


async def test_a_feed_of_some_types_on_replicas_misses_none_of_them(nats_cluster: Cluster) -> None:
    async with open_log(nats_cluster.url, replicas=SERVERS) as log:
        sid, seen = new_session_id(), Collector()
        voice = SessionWriter(log, sid, "voice")
        feed = Feed(log, sid, seen, types=("session.owned",))
        await feed.start()
        for n in range(20):
            await voice.append(UserSaid(text="hi", turn=n, source="text"), ts=n, cause=None)
            await voice.append(SessionOwned(worker="a", term=n), ts=n, cause=None)
        await seen.count(20)
        assert [one.event.term for one in seen.got if isinstance(one.event, SessionOwned)] == list(range(20))
        await feed.stop()


class Lossy(Feed):
    """A feed that loses live copies."""

    def __init__(self, log: Log, sid: str, handler: Handler, *, visibility: str = "*") -> None:
        super().__init__(log, sid, handler, visibility=visibility)
        self.losing = False
        self.lost = asyncio.Event()

    async def _live(self, message: Msg) -> None:
        if self.losing:
            self.lost.set()
        else:
            await super()._live(message)


async def test_feeds_begun_beside_appends_are_complete_over_kills_of_the_leader_and_a_follower_that_lags(own_cluster: Cluster) -> None:
    assert await begun_beside_appends(own_cluster, feeds=FEEDS) == []


async def test_a_follower_that_stood_still_is_read_only_once_it_has_what_was_acknowledged(own_cluster: Cluster) -> None:
    async with open_log(own_cluster.url) as setting, connected(own_cluster.urls) as nc:
        await own_cluster.whole(nc)
        leader = await own_cluster.leader(nc)
        follower = (leader + 1) % SERVERS
        async with (
            open_log(own_cluster.urls[leader], replicas=SERVERS) as writing,
            open_log(own_cluster.urls[follower], replicas=SERVERS) as lagging,
        ):
            writer = SessionWriter(writing, new_session_id(), "voice")
            await lagging.read(writer.sid)
            for round in range(1, 6):
                own_cluster.freeze(follower)
                for turn in range(40):
                    await writer.append(UserSaid(text="hi", turn=turn, source="text"), ts=turn, cause=None)
                own_cluster.go_on(follower)
                read, found = await asyncio.gather(lagging.read(writer.sid, limit=1_000), lagging.last([stored_subject(writer.sid)]))
                assert len(read) == 40 * round
                assert [one.seq for one in found] == [writer.last_seq]
                assert (await lagging.position(writer.sid, "voice"))[0] == writer.last_seq
        assert await setting.last([stored_subject(new_session_id())]) == []


async def test_one_server_is_asked_once_for_a_read(own_nats: Callable[[], NatsServer]) -> None:
    async with open_log(own_nats().url) as log:
        writer = SessionWriter(log, new_session_id(), "voice")
        await writer.append(SessionOwned(worker="a", term=1), ts=0, cause=None)
        await log.read(writer.sid)  # the first read creates the inbox
        reads: list[Callable[[], Awaitable[object]]] = [
            lambda: log.read(writer.sid),
            lambda: log.last([stored_subject(writer.sid)]),
            lambda: log.position(writer.sid, "voice"),
        ]
        for read in reads:
            before = log.nc.stats["out_msgs"]
            await read()
            assert log.nc.stats["out_msgs"] == before + 1
        before = log.nc.stats["out_msgs"]
        feed = Feed(log, writer.sid, lambda _: None)
        await feed.start()
        assert log.nc.stats["out_msgs"] == before + 1
        await feed.stop()
