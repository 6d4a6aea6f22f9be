"""No client, and no number of clients, can fill the log; a refusal names the limit."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Any

import pytest
from websockets.exceptions import ConnectionClosed

from tests.eventually import BOUND_S, eventually
from tests.gateway.conftest import Client, Serve
from tests.gateway.stand_in import StandIn
from voxbridge.services.gateway.door.admission import ACCOUNTS_LIMIT, Admission
from voxbridge.shared.bus import subjects
from voxbridge.shared.config import Config
from voxbridge.shared.errors import VoxbridgeError
from voxbridge.shared.log.feed import Feed
from voxbridge.shared.log.quotas import Starts


async def the_rest(client: Client) -> AsyncIterator[Any]:
    """Yield all messages until the socket is closed."""
    async with asyncio.timeout(BOUND_S):
        with suppress(ConnectionClosed):
            while True:
                yield await client.next()


async def test_a_client_that_floods_the_log_is_told_once_and_writes_no_more_than_its_rate(
    serve: Serve, nats_url: str, redis_url: str, voice: StandIn
) -> None:
    running = await serve(nats_url, redis_url, session_events_per_s=5, session_kb_per_s=8)
    async with running.client() as client:
        await client.started()
        began = time.monotonic()
        for _ in range(300):
            await client.say({"type": "text", "text": "x" * 8_000})
        error = await client.until("error")
        assert (error["code"], error["field"], error["limit"]) == ("OVERLOADED", "session_events_per_s", 5)
        assert 0 < error["retry_after_ms"] <= 1_000
        await client.say({"type": "end"})
        told = [message async for message in the_rest(client)]
        passed = (time.monotonic() - began) * 5
    infos = await running.gateway.log.js.stream_info(subjects.EVENT_STREAM)
    assert infos.state.bytes < (60 + passed) * 9_000, "the rest of 300 was not written"
    overloaded = [one for one in told if isinstance(one, dict) and one["type"] == "error"]
    assert len(overloaded) <= 3 + passed, "who floods is told once, until something passes again"


async def test_calls_that_begin_too_fast_are_refused_and_one_that_waits_is_not(
    serve: Serve, nats_url: str, redis_url: str, voice: StandIn
) -> None:
    running = await serve(nats_url, redis_url, starts_per_s=1)
    clock = [0.0]
    running.gateway.admission._starts = Starts(1, lambda: clock[0])  # four calls may take more than a second
    for _ in range(4):
        async with running.client() as client:
            await client.started()
    async with running.client() as client:
        await client.say({"type": "start", "mode": "echo"})
        error = await client.until("error")
        assert (error["code"], error["field"], error["limit"]) == ("OVERLOADED", "starts_per_s", 1)
        assert error["retryable"]
    clock[0] += error["retry_after_ms"] / 1_000
    async with running.client() as client:
        await client.started()


async def test_no_call_begins_in_the_reserve_of_the_log_and_those_that_are_there_go_on(
    serve: Serve, nats_url: str, redis_url: str, voice: StandIn, caplog: pytest.LogCaptureFixture
) -> None:
    running = await serve(nats_url, redis_url, log_mb=100)
    admission = running.gateway.admission
    async with running.client() as client:
        sid = (await client.started())["sessionId"]
        with caplog.at_level(logging.INFO):
            admission.look(80_000_000)
            admission.look(81_000_000)
            (said,) = [one for one in caplog.messages if "fills up" in one]
            assert said.startswith("The event log fills up: 80 of 100 MB (VOXBRIDGE_LOG_MB) are used. Keep events for fewer days")
            assert admission.condition().state == "degraded"
            admission.start()
            admission.look(95_000_000)
        assert any("almost full" in one for one in caplog.messages)
        assert b"voxbridge_log_used_bytes 9.5e+07" in running.gateway.metrics.text()
        assert b"voxbridge_log_room_bytes 1e+08" in running.gateway.metrics.text()
        async with running.client() as late:
            await late.say({"type": "start", "mode": "echo"})
            error = await late.until("error")
            assert (error["code"], error["field"], error["limit"]) == ("OVERLOADED", "log_mb", 100)
        stored = asyncio.Event()
        text = Feed(running.gateway.log, sid, lambda _: stored.set(), writer="gateway", types=("text.received",))
        await text.start()
        await client.say({"type": "text", "text": "I go on."})
        await asyncio.wait_for(stored.wait(), BOUND_S)
        await text.stop()
        admission.look(10)
        async with running.client() as again:
            await again.started()


async def test_the_room_of_the_log_is_looked_at_by_itself(serve: Serve, nats_url: str, redis_url: str, voice: StandIn) -> None:
    running = await serve(nats_url, redis_url)
    async with running.client() as client:
        await client.started()
    watching = asyncio.create_task(running.gateway.admission.watch(running.gateway.log))
    await eventually(lambda: running.gateway.admission.used != 0)
    watching.cancel()
    assert running.gateway.admission.condition().ok


def test_as_many_accounts_are_counted_as_there_is_room_for() -> None:
    admission = Admission(Config(account_events_per_s=5), lambda: 0.0)
    first = admission.quota("first")
    for _ in range(20):
        first.take(1)
    with pytest.raises(VoxbridgeError, match="One account may write 5 events"):
        admission.quota("first").take(1)
    for number in range(ACCOUNTS_LIMIT):
        admission.quota(f"account-{number}")
    admission.quota("first").take(1)
