"""Live traffic, on every backend: told now or dropped, and a slow listener loses frames without slowing others."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import msgspec
import pytest
from nats.aio.msg import Msg

from shared import bus, moments
from shared.ids import new_session_id
from shared.log import Log
from tests.shared.backends import Server, open_log


async def test_a_moment_is_told_to_who_listens_now(log: Log) -> None:
    sid = new_session_id()
    heard: asyncio.Queue[Msg] = asyncio.Queue()
    await log.nc.subscribe(bus.moments(sid), cb=heard.put)
    told: list[moments.Moment] = [
        moments.StateChanged(state="listening"),
        moments.PartialTranscript(role="assistant", text="Grüße", turn=1, generation=2),
    ]
    for moment in told:
        await bus.publish_moment(log.nc, sid, moment)
    assert [moments.decode((await asyncio.wait_for(heard.get(), 5)).data) for _ in told] == told
    assert await log.read(sid) == []


def test_bytes_that_are_no_moment_are_refused() -> None:
    with pytest.raises(msgspec.ValidationError):
        moments.decode(msgspec.msgpack.encode({"type": "choir"}))


async def test_what_is_published_while_the_bus_is_away_is_dropped_and_not_sent_later(own_server: Callable[[str], Server]) -> None:
    server = own_server("nats")
    back, lost = asyncio.Event(), asyncio.Event()
    async with open_log(server.url, on_back=back.set, on_lost=lost.set) as log:
        sid = new_session_id()
        heard: asyncio.Queue[Msg] = asyncio.Queue()
        await bus.subscribe_audio(log.nc, bus.audio_out(sid), heard.put)
        server.kill()
        await asyncio.wait_for(lost.wait(), 5)
        await bus.publish_now(log.nc, bus.audio_out(sid), b"late")
        server.start()
        await asyncio.wait_for(back.wait(), 5)
        await bus.publish_now(log.nc, bus.audio_out(sid), b"now")
        assert (await asyncio.wait_for(heard.get(), 5)).data == b"now"


async def test_a_listener_that_is_too_slow_loses_frames_beyond_the_bound_and_others_do_not(log: Log) -> None:
    sid = new_session_id()
    gate, slow, quick, all_heard = asyncio.Event(), [], [], asyncio.Event()
    frames = [number.to_bytes(2) for number in range(bus.AUDIO_PENDING + 136)]

    async def stuck(message: Msg) -> None:
        await gate.wait()
        slow.append(message.data)

    async def take(message: Msg) -> None:
        quick.append(message.data)
        if len(quick) == len(frames):
            all_heard.set()

    subscription = await bus.subscribe_audio(log.nc, bus.audio_in(sid), stuck)
    await log.nc.subscribe(bus.audio_in(sid), cb=take)
    for frame in frames:
        await bus.publish_now(log.nc, bus.audio_in(sid), frame)
        await log.nc.flush()
    await asyncio.wait_for(all_heard.wait(), 5)
    gate.set()
    await asyncio.wait_for(subscription.drain(), 5)  # type: ignore[no-untyped-call]
    assert quick == frames
    assert slow == quick[: len(slow)]
    assert len(slow) in (bus.AUDIO_PENDING, bus.AUDIO_PENDING + 1)
