"""Audio that the bus keeps of a session: enough for a takeover, for every session, and for none more than its share."""

from __future__ import annotations

import asyncio

import nats

from tests.eventually import BOUND_S
from voxbridge.services.voice.audio.recorder import EVERY_S
from voxbridge.shared.audio import frames
from voxbridge.shared.bus import subjects
from voxbridge.shared.ids import new_session_id
from voxbridge.shared.log import streams
from voxbridge.shared.log.reader import Log
from voxbridge.shared.store.store import LEASE_MS

MICROPHONE_BYTES = 718
REPLY_BYTES = 1_039
"""Stored bytes of a 20 ms frame in each stream."""

TOLD_S = 1.0
"""Seconds until a takeover after a reported death."""

LOOKS_S = 0.3


def test_two_thousand_calls_in_both_directions_have_room_and_the_server_for_them() -> None:
    assert 2_000 * 50 * MICROPHONE_BYTES * streams.MICROPHONE_S <= streams.MICROPHONE_BYTES
    assert 2_000 * 50 * REPLY_BYTES * streams.REPLY_S <= streams.REPLY_BYTES
    assert int(streams.AUDIO_MEMORY.removesuffix("MB")) * 1024 * 1024 >= streams.MICROPHONE_BYTES + streams.REPLY_BYTES


def test_an_utterance_of_eight_seconds_and_the_takeover_fit_into_what_is_kept() -> None:
    assert TOLD_S + 8 < streams.MICROPHONE_S
    assert LEASE_MS / 1_000 + LOOKS_S + EVERY_S < streams.REPLY_S


async def test_a_session_that_sends_more_than_audio_takes_room_from_itself_alone(nats_url: str) -> None:
    client = await nats.connect(nats_url)
    log = Log(client)
    await log.ensure_streams(retention_days=1)
    quiet, loud = new_session_id(), new_session_id()
    for number in range(50):
        await client.publish(subjects.audio_in(quiet), frames.pack(frames.PCM16, 0, number, number, bytes(640)))
    for number in range(streams.MICROPHONE_FRAMES + 100):
        await client.publish(subjects.audio_in(loud), frames.pack(frames.PCM16, 0, number, number, b""))
    kept: dict[str, list[int]] = {quiet: [], loud: []}
    async with asyncio.timeout(BOUND_S):  # the server stores messages with a delay
        while len(kept[quiet]) < 50 or kept[loud][-1:] != [streams.MICROPHONE_FRAMES + 99]:
            for sid in kept:
                kept[sid] = await sequences(log, sid)
    assert kept[quiet] == list(range(50))
    assert kept[loud] == list(range(100, streams.MICROPHONE_FRAMES + 100))
    await client.close()


async def sequences(log: Log, sid: str) -> list[int]:
    """Return the sequence numbers of a session's stored frames."""
    found: list[int] = []
    after, more = 0, True
    while more:
        page = await log.frames(subjects.MICROPHONE_STREAM, subjects.audio_in(sid), after=after)
        found += [frames.parse(message.data).sequence for message in page.messages]
        more = page.more and bool(page.messages)
        after = int((page.messages[-1].headers or {})["Nats-Sequence"]) if page.messages else after
    return found
