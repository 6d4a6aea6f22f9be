"""Creation and update of the streams: requested settings are applied, and all others stay."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

import pytest
from nats.js.api import ConsumerConfig, Header, StorageType, StreamConfig

from tests.cluster import Cluster, connected
from voxbridge.shared.bus import subjects
from voxbridge.shared.config import Recording
from voxbridge.shared.embedded.nats_server import NatsServer
from voxbridge.shared.log import streams

DAY_S = 86_400


async def test_another_retention_leaves_the_replicas_as_they_are(nats_cluster: Cluster) -> None:
    async with connected(nats_cluster.urls) as nc:
        js = nc.jetstream()
        try:
            await streams.ensure_streams(js, retention_days=30, replicas=3)
            await nats_cluster.whole(nc)
            await streams.ensure_streams(js, retention_days=31)
            config = (await js.stream_info(subjects.EVENT_STREAM)).config
            assert (config.max_age, config.num_replicas) == (31 * DAY_S, 3)
        finally:
            for name in (*subjects.LOG_STREAMS, subjects.MICROPHONE_STREAM, subjects.REPLY_STREAM):
                await js.delete_stream(name)


async def test_replicas_that_are_asked_for_are_made_and_taken_away(nats_cluster: Cluster) -> None:
    recording = Recording(hours=1, max_bytes=16_000_000)
    async with connected(nats_cluster.urls) as nc:
        js = nc.jetstream()
        try:
            await streams.ensure_streams(js, retention_days=1, recording=recording)
            counts = {name: (await js.stream_info(name)).config.num_replicas for name in _NAMES}
            assert counts == dict.fromkeys(_NAMES, 1)
            await streams.ensure_streams(js, recording=recording, replicas=3)
            info = await js.stream_info(subjects.RECORD_STREAM)
            assert (info.config.num_replicas, info.config.persist_mode) == (1, "async"), "the server cannot change how it is kept on disk"
            await js.delete_stream(subjects.RECORD_STREAM)
            await streams.ensure_streams(js, recording=recording, replicas=3)
            counts = {name: (await js.stream_info(name)).config.num_replicas for name in _NAMES}
            memory = {subjects.MICROPHONE_STREAM: 1, subjects.REPLY_STREAM: 1}
            assert counts == {**dict.fromkeys(subjects.LOG_STREAMS, 3), **memory, subjects.RECORD_STREAM: 3}
            await nats_cluster.whole(nc)
            await streams.ensure_streams(js, recording=recording, replicas=1)
            assert (await js.stream_info(subjects.EVENT_STREAM)).config.num_replicas == 1
        finally:
            for name in _NAMES:
                await js.delete_stream(name)


_NAMES = (*subjects.LOG_STREAMS, subjects.MICROPHONE_STREAM, subjects.REPLY_STREAM, subjects.RECORD_STREAM)


async def test_the_one_stream_of_audio_of_an_earlier_release_gives_way_to_one_for_each_direction(
    own_nats: Callable[[], NatsServer],
) -> None:
    async with connected(own_nats().url) as nc:
        js = nc.jetstream()
        await js.add_stream(
            StreamConfig(name="AUDIO", subjects=["vx.s.*.audio.>"], storage=StorageType.MEMORY, max_age=4, max_bytes=640 * 1024 * 1024)
        )
        await asyncio.gather(*(streams.ensure_streams(js, retention_days=1) for _ in range(3)))
        ages = {str(info.config.name): info.config.max_age for info in await js.streams_info()}
        assert ages == {
            subjects.EVENT_STREAM: DAY_S,
            subjects.ACCOUNT_STREAM: 0,
            subjects.AWARENESS_STREAM: 0,
            subjects.TERMINALS_STREAM: DAY_S,
            subjects.MICROPHONE_STREAM: streams.MICROPHONE_S,
            subjects.REPLY_STREAM: streams.REPLY_S,
        }


async def test_an_update_keeps_every_setting_that_it_is_not_about(own_nats: Callable[[], NatsServer]) -> None:
    async with connected(own_nats().url) as nc:
        js = nc.jetstream()
        await streams.ensure_streams(js, retention_days=7)

        async def config() -> dict[str, Any]:
            return dict(json.loads((await nc.request(f"$JS.API.STREAM.INFO.{subjects.EVENT_STREAM}")).data)["config"])

        by_hand = {
            "description": "the log",
            "max_bytes": 1_000_000_000,
            "discard": "new",
            "max_msgs_per_subject": 1_000_000,
            "allow_atomic": True,
            "metadata": {"owner": "operator"},
            "consumer_limits": {"max_ack_pending": 50_000},
        }
        await nc.request(f"$JS.API.STREAM.UPDATE.{subjects.EVENT_STREAM}", json.dumps(await config() | by_hand).encode())
        before = await config()
        assert by_hand.items() <= {**before, "metadata": {"owner": before["metadata"]["owner"]}}.items()
        await streams.ensure_streams(js, retention_days=8)
        after = await config()
        assert after.pop("max_age") == 8 * DAY_S * 1_000_000_000
        before.pop("max_age")
        assert after == before


async def test_a_retention_that_nobody_asks_for_is_thirty_days_in_a_new_log_and_as_it_was_in_another(
    own_nats: Callable[[], NatsServer],
) -> None:
    async with connected(own_nats().url) as nc:
        js = nc.jetstream()
        await streams.ensure_streams(js)
        assert (await js.stream_info(subjects.EVENT_STREAM)).config.max_age == 30 * DAY_S
        await streams.ensure_streams(js, retention_days=90)
        await streams.ensure_streams(js)
        assert (await js.stream_info(subjects.EVENT_STREAM)).config.max_age == 90 * DAY_S


async def test_the_stream_of_accounts_gets_the_replicas_that_an_operator_gave_the_other_by_hand(nats_cluster: Cluster) -> None:
    async with connected(nats_cluster.urls) as nc:
        js = nc.jetstream()
        try:
            await streams.ensure_streams(js, retention_days=1, replicas=3)
            await js.delete_stream(subjects.ACCOUNT_STREAM)
            await nats_cluster.whole(nc)
            await streams.ensure_streams(js)
            assert (await js.stream_info(subjects.ACCOUNT_STREAM)).config.num_replicas == 3
        finally:
            for name in (*subjects.LOG_STREAMS, subjects.MICROPHONE_STREAM, subjects.REPLY_STREAM):
                await js.delete_stream(name)


@pytest.mark.parametrize(("stream", "wanted"), streams.DURABLES)
async def test_a_consumer_that_is_brought_up_to_date_keeps_the_rest_of_its_settings(
    own_nats: Callable[[], NatsServer], stream: str, wanted: ConsumerConfig
) -> None:
    async with connected(own_nats().url) as nc:
        js = nc.jetstream()
        await streams.ensure_streams(js)
        name = str(wanted.durable_name)
        await js.add_consumer(stream, wanted.evolve(ack_wait=1, description="by hand", max_waiting=99))
        await streams.ensure_consumer(js, wanted, stream)
        found = (await js.consumer_info(stream, name)).config
        assert found is not None
        assert (found.ack_wait, found.description, found.max_waiting) == (wanted.ack_wait, "by hand", 99)


async def test_a_second_append_with_the_same_id_is_told_the_position_of_the_first(nats_cluster: Cluster) -> None:
    """Calls over REST rest on it when two gateways are asked with one idempotency key at the same time."""
    async with connected(nats_cluster.urls) as nc:
        js = nc.jetstream()
        try:
            await streams.ensure_streams(js, retention_days=1, replicas=3)
            await nats_cluster.whole(nc)
            place = subjects.event_subject("@local", "gateway", visible=False, event_type="tool.requested")
            acks = [await js.publish(place, bytes([n]), timeout=5, headers={Header.MSG_ID.value: "one key"}) for n in range(3)]
            assert [(ack.seq, bool(ack.duplicate)) for ack in acks] == [(1, False), (1, True), (1, True)]
        finally:
            for name in (*subjects.LOG_STREAMS, subjects.MICROPHONE_STREAM, subjects.REPLY_STREAM):
                await js.delete_stream(name)
