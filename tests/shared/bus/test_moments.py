"""Moments on every backend: delivered now or dropped."""

from __future__ import annotations

import asyncio

import msgspec
import pytest
from nats.aio.msg import Msg

from tests.eventually import BOUND_S
from voxbridge.shared.bus import moments, subjects
from voxbridge.shared.ids import new_session_id
from voxbridge.shared.log.reader import Log


async def test_a_moment_is_told_to_who_listens_now(log: Log) -> None:
    sid = new_session_id()
    heard: asyncio.Queue[Msg] = asyncio.Queue()
    await log.nc.subscribe(subjects.moments(sid), cb=heard.put)
    told: list[moments.Moment] = [
        moments.StateChanged(state="listening"),
        moments.PartialTranscript(role="assistant", text="Grüße", turn=1, generation=2),
    ]
    for moment in told:
        await subjects.publish_moment(log.nc, sid, moment)
    assert [moments.decode((await asyncio.wait_for(heard.get(), BOUND_S)).data) for _ in told] == told
    assert await log.read(sid) == []


def test_bytes_that_are_no_moment_are_refused() -> None:
    with pytest.raises(msgspec.ValidationError):
        moments.decode(msgspec.msgpack.encode({"type": "choir"}))
