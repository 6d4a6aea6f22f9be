"""Fixture that runs a module's tests on three servers: import it there, beside the tests of another module."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from tests.cluster import SERVERS, Cluster, connected
from voxbridge.shared.log import streams


@pytest.fixture
async def nats_url(nats_cluster: Cluster) -> AsyncIterator[str]:
    """URL of a follower of a log with three replicas, which may lag behind the leader; emptied after the test."""
    async with connected(nats_cluster.urls) as nc:
        js = nc.jetstream()
        await streams.ensure_streams(js, retention_days=1, replicas=SERVERS)
        await nats_cluster.whole(nc)
        leader = await nats_cluster.leader(nc)
        yield nats_cluster.urls[(leader + 1) % SERVERS]
        for stream in await js.streams_info():
            await js.delete_stream(str(stream.config.name))
