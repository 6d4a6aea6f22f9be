"""How microphone frames reach the bus: at once from few sockets, gathered from many, in order in both cases."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest_asyncio
from nats.aio.msg import Msg

from services.gateway.metrics import Metrics
from services.gateway.microphones import GATHER_FROM, GATHER_LIMIT, Microphones
from shared.fast_client import FastClient
from shared.nats_connection import AUDIO_PENDING, close_nats, connect_nats

SUBJECT = "vx.s.0.audio.in"


class Bench:
    """A gateway's microphones, and what the bus got of them."""

    def __init__(self, nc: FastClient) -> None:
        self.nc = nc
        self.metrics = Metrics()
        self.microphones = Microphones(nc, self.metrics)
        self.heard: list[bytes] = []
        self._more = asyncio.Event()

    async def listen(self) -> None:
        async def hear(message: Msg) -> None:
            self.heard.append(message.data)
            self._more.set()

        await self.nc.subscribe(SUBJECT, cb=hear)
        await self.nc.flush()

    async def until(self, count: int) -> list[bytes]:
        async with asyncio.timeout(5):
            while len(self.heard) < count:
                self._more.clear()
                await self._more.wait()
        return self.heard


@pytest_asyncio.fixture
async def bench(nats_url: str) -> AsyncIterator[Bench]:
    nc = await connect_nats(nats_url, "microphones-test", pending=AUDIO_PENDING)
    found = Bench(nc)
    await found.listen()
    yield found
    await close_nats(nc)


async def test_frames_of_few_sockets_are_written_at_once(bench: Bench) -> None:
    bench.metrics.sockets = GATHER_FROM - 1
    bench.microphones.publish(SUBJECT, b"a")
    assert bench.metrics.frames_in == 1
    assert await bench.until(1) == [b"a"]


async def test_frames_of_many_sockets_wait_for_one_another_and_stay_in_order(bench: Bench) -> None:
    bench.metrics.sockets = GATHER_FROM
    for number in range(5):
        bench.microphones.publish(SUBJECT, b"%d" % number)
    assert bench.metrics.frames_in == 0
    assert await bench.until(5) == [b"0", b"1", b"2", b"3", b"4"]
    assert bench.metrics.frames_in == 5


async def test_a_frame_does_not_overtake_those_that_wait_when_sockets_leave(bench: Bench) -> None:
    bench.metrics.sockets = GATHER_FROM
    bench.microphones.publish(SUBJECT, b"first")
    bench.metrics.sockets = 1
    bench.microphones.publish(SUBJECT, b"second")
    assert await bench.until(2) == [b"first", b"second"]


async def test_as_many_frames_wait_as_the_limit_says_and_one_more_writes_them_all(bench: Bench) -> None:
    bench.metrics.sockets = GATHER_FROM
    for _ in range(GATHER_LIMIT):
        bench.microphones.publish(SUBJECT, b"x")
    assert bench.metrics.frames_in == 0
    bench.microphones.publish(SUBJECT, b"x")
    assert bench.metrics.frames_in == GATHER_LIMIT + 1
