"""The socket end to end: a real gateway, a real bus and log, a client, and a voice service that the test plays."""

from __future__ import annotations

import asyncio
import base64

from shared import events, frames, moments
from shared.clock import wall_ms32
from shared.frames import PCM16, pack
from tests.gateway.conftest import Running
from tests.gateway.stand_in import StandIn

FRAME = pack(PCM16, 0, 0, 0, b"\x01\x02" * 320)


async def test_a_session_starts_and_names_itself(running: Running, voice: StandIn) -> None:
    async with running.client() as client:
        assert client.socket.subprotocol == "voxbridge.v1"
        ready = await client.started()
        assert len(ready.pop("resumeToken")) == 43
        speaks = {"agent": "", "agents": [], "pipeline": "", "model": "none", "voice": "none"}
        session = {"sessionId": ready["sessionId"], "mode": "echo", "resumed": False, "seq": ready["seq"]}
        assert ready == {"type": "setup_complete", **session, **speaks}
        assert ready["sessionId"] in voice.sessions


async def test_a_microphone_frame_reaches_the_voice_service_with_the_gateways_time(running: Running, voice: StandIn) -> None:
    async with running.client() as client:
        await client.started()
        session = await voice.session()
        await client.socket.send(FRAME)
        heard = await asyncio.wait_for(session.microphone.get(), 10)
        assert heard[16:] == FRAME[16:]
        assert frames.age_ms(frames.parse(heard).time_ms, wall_ms32()) < 5_000


async def test_a_reply_frame_reaches_a_v1_client_as_it_is(running: Running, voice: StandIn) -> None:
    async with running.client() as client:
        await client.started()
        session = await voice.session()
        frame = pack(PCM16, 3, 7, wall_ms32(), b"\x05\x06" * 480)
        await session.plays(frame)
        assert await client.next() == frame


async def test_plain_vox_carries_audio_as_base64_both_ways_and_no_flush(running: Running, voice: StandIn) -> None:
    async with running.client(v1=False) as client:
        await client.started()
        session = await voice.session()
        await client.say({"type": "audio", "data": base64.b64encode(b"\x01\x02" * 320).decode()})
        assert (await asyncio.wait_for(session.microphone.get(), 10))[16:] == b"\x01\x02" * 320
        await session.plays(pack(frames.FLUSH, 1, 0, wall_ms32()))
        await session.plays(pack(PCM16, 2, 1, wall_ms32(), b"\x07\x08"))
        assert await client.next() == {"type": "audio", "data": base64.b64encode(b"\x07\x08").decode()}


async def test_what_happens_in_the_log_is_told_with_its_position(running: Running, voice: StandIn) -> None:
    async with running.client() as client:
        await client.started()
        session = await voice.session()
        await session.moment(moments.PartialTranscript(role="user", text="hel", turn=1))
        assert await client.next() == {"type": "transcript", "role": "user", "text": "hel", "final": False, "turn": 1}
        seq = await session.says(events.voice.UserSaid(text="hello", turn=1, source="speech"))
        assert await client.next() == {"type": "transcript", "role": "user", "text": "hello", "final": True, "turn": 1, "seq": seq}


async def test_end_is_answered_and_closes_with_1000(running: Running, voice: StandIn) -> None:
    async with running.client() as client:
        await client.started()
        session = await voice.session()
        await client.say({"type": "end"})
        await session.says(events.voice.SessionEnded(reason="client"))
        assert (await client.until("session_ended"))["reason"] == "client"
        assert await client.close_code() == 1000
