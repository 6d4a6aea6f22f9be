"""The socket end to end: a real gateway, a real bus and log, a client, and a voice service played by the test."""

from __future__ import annotations

import asyncio
import base64
from typing import Any

from tests.eventually import BOUND_S
from tests.gateway.conftest import Running
from tests.gateway.stand_in import StandIn
from voxbridge.services.gateway.core.captions import EVERY_S
from voxbridge.shared import events
from voxbridge.shared.audio import frames
from voxbridge.shared.audio.frames import PCM16, pack
from voxbridge.shared.bus import moments
from voxbridge.shared.bus.partials import Pieces
from voxbridge.shared.clock import wall_ms32

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
        heard = await asyncio.wait_for(session.microphone.get(), BOUND_S)
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
        assert (await asyncio.wait_for(session.microphone.get(), BOUND_S))[16:] == b"\x01\x02" * 320
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


async def test_pieces_of_a_text_are_shown_as_whole_texts_a_few_a_second_and_the_last_ahead_of_the_final_one(
    running: Running, voice: StandIn
) -> None:
    texts = [" ".join(["word"] * count) for count in range(1, 201)]
    async with running.client() as client:
        await client.started()
        session = await voice.session()
        pieces = Pieces()
        shown: list[dict[str, Any]] = []
        began = asyncio.get_running_loop().time()
        for text in texts:
            await session.moment(pieces.cut(moments.PartialTranscript(role="assistant", text=text, turn=1, generation=1)))
        while not shown or shown[-1]["text"] != texts[-1]:
            shown.append(await client.next())
        took = asyncio.get_running_loop().time() - began
        assert all(one == {**shown[0], "text": one["text"]} for one in shown)
        assert [texts.index(one["text"]) for one in shown] == sorted({texts.index(one["text"]) for one in shown})
        assert len(shown) <= 2 + took / EVERY_S
        assert shown[0]["text"] == "word"
        seq = await session.says(events.voice.AgentSaid(text=texts[-1], turn=1, generation=1))
        final = await client.next()
        assert (final["final"], final["seq"]) == (True, seq)


async def test_a_text_that_is_held_is_told_before_the_state_that_follows_it(running: Running, voice: StandIn) -> None:
    async with running.client() as client:
        await client.started()
        session = await voice.session()
        pieces = Pieces()
        for text in ("It", "It is", "It is noon."):
            await session.moment(pieces.cut(moments.PartialTranscript(role="assistant", text=text, turn=1, generation=1)))
        await session.moment(moments.StateChanged(state="listening"))
        told: list[dict[str, Any]] = []
        while not told or told[-1]["type"] != "state":
            told.append(await client.next())
        assert [one.get("text") for one in told][-2:] == ["It is noon.", None]
        assert told[0]["text"] == "It"


async def test_a_client_that_comes_in_the_middle_of_a_text_sees_no_part_of_it_and_then_all(running: Running, voice: StandIn) -> None:
    pieces = Pieces()

    def said(count: int) -> moments.PartialTranscript:
        return pieces.cut(moments.PartialTranscript(role="assistant", text="word " * count, turn=1, generation=1))

    async with running.client() as client:
        ready = await client.started("local")
        session = await voice.session()
        await session.moment(said(100))
        assert (await client.next())["text"] == "word " * 100
    async with running.client() as client:
        await client.resume(ready, ready["seq"])
        await session.moment(said(101))
        pieces.forget()
        await session.moment(said(102))
        await session.moment(said(103))
        assert (await client.next())["text"] == "word " * 102
        assert (await client.next())["text"] == "word " * 103


async def test_end_is_answered_and_closes_with_1000(running: Running, voice: StandIn) -> None:
    async with running.client() as client:
        await client.started()
        session = await voice.session()
        await client.say({"type": "end"})
        await session.says(events.voice.SessionEnded(reason="client"))
        assert (await client.until("session_ended"))["reason"] == "client"
        assert await client.close_code() == 1000
