"""What the bus keeps of a session's audio: a lease's worth, of everybody, and of nobody more than its share."""

from __future__ import annotations

import nats

from shared import bus, frames, streams
from shared.ids import new_session_id
from shared.log import Log
from shared.store import LEASE_MS

FRAME_BYTES = 718
"""A frame of 20 ms in the stream, as it counts it."""


def test_two_thousand_calls_in_both_directions_leave_a_leases_worth_of_each() -> None:
    a_second = 2 * 50 * FRAME_BYTES
    assert 2_000 * a_second * streams.AUDIO_S <= streams.AUDIO_BYTES
    assert streams.AUDIO_S * 1_000 > LEASE_MS


async def test_a_session_that_sends_more_than_audio_takes_room_from_itself_alone(nats_url: str) -> None:
    client = await nats.connect(nats_url)
    log = Log(client)
    await log.ensure_streams(retention_days=1)
    quiet, loud = new_session_id(), new_session_id()
    for number in range(50):
        await client.publish(bus.audio_in(quiet), frames.pack(frames.PCM16, 0, number, number, bytes(640)))
    for number in range(streams.AUDIO_FRAMES + 100):
        await client.publish(bus.audio_in(loud), frames.pack(frames.PCM16, 0, number, number, b""))
    await client.flush()
    kept: dict[str, list[int]] = {quiet: [], loud: []}
    for sid, found in kept.items():
        after, more = 0, True
        while more:
            page = await log.frames(bus.AUDIO_STREAM, bus.audio_in(sid), after=after)
            found += [frames.parse(message.data).sequence for message in page.messages]
            more = page.more and bool(page.messages)
            after = int((page.messages[-1].headers or {})["Nats-Sequence"]) if page.messages else after
    assert kept[quiet] == list(range(50))
    assert kept[loud] == list(range(100, streams.AUDIO_FRAMES + 100))
    await client.close()
