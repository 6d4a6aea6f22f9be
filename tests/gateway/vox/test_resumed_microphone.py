"""Microphone frames of a resumed socket wait for the event that attaches it."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tests.eventually import BOUND_S, eventually
from tests.gateway.conftest import Running, Serve
from tests.gateway.stand_in import StandIn
from voxbridge.services.gateway.vox.microphones import HELD_S
from voxbridge.shared.audio.frames import PCM16, pack, parse


@pytest.fixture
async def other(serve: Serve, running: Running, nats_url: str, redis_url: str) -> Running:
    """A second gateway over the same servers."""
    assert running
    return await serve(nats_url, redis_url)


async def test_what_is_said_on_a_new_socket_is_heard_when_the_log_has_the_socket(
    running: Running, other: Running, voice: StandIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise the worker would take the answer for one that the previous socket received, and repeat it."""
    async with running.client() as client:
        ready = await client.started("local")
        session = await voice.session()
        client.socket.transport.abort()
    log, taken = other.gateway.log, asyncio.Event()
    publish = log.js.publish

    async def slow(*args: Any, **options: Any) -> Any:
        await taken.wait()
        return await publish(*args, **options)

    monkeypatch.setattr(log.js, "publish", slow)
    async with other.client() as client:
        await client.resume(ready, ready["seq"])
        dropped = other.gateway.metrics.dropped
        said = [pack(PCM16, 0, number, 0, bytes(640)) for number in range(HELD_S * 50 + 1)]
        for frame in said:
            await client.socket.send(frame)

        async def one_too_many() -> bool:
            return dropped["log_away"] == 1

        await eventually(one_too_many)
        assert session.microphone.empty()
        taken.set()
        heard = [await asyncio.wait_for(session.microphone.get(), BOUND_S) for _ in said[1:]]
        (_, attached) = [one.seq async for one in voice.log.read_all(session.sid, writer="gateway", types=("client.connected",))]
        assert [(parse(frame).generation, parse(frame).sequence) for frame in heard] == [(attached, n) for n in range(1, len(said))]
