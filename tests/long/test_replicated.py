"""A log of three replicas in large numbers: thousands of feeds during faults, and a thousand races of two writers."""

from __future__ import annotations

import asyncio

import pytest

from tests.begun_feeds import begun_beside_appends
from tests.cluster import Cluster
from tests.shared.backends import open_log
from tests.shared.log.test_replicated import race

FEEDS = 5_000
RACES = 1_000
SIDE_BY_SIDE = 20


@pytest.mark.timeout(3_600)
async def test_five_thousand_feeds_begun_beside_appends_are_complete(own_cluster: Cluster) -> None:
    assert await begun_beside_appends(own_cluster, feeds=FEEDS) == []


@pytest.mark.timeout(900)
async def test_the_loser_of_each_of_a_thousand_races_is_told_a_conflict(nats_cluster: Cluster) -> None:
    async with open_log(nats_cluster.url) as one, open_log(nats_cluster.url) as other:
        for _ in range(RACES // SIDE_BY_SIDE):
            await asyncio.gather(*(race(one, other) for _ in range(SIDE_BY_SIDE)))
