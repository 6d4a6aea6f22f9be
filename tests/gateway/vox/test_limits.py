"""Effects of a hostile or a slow client on a running gateway: none on others, and limited ones on itself."""

from __future__ import annotations

import asyncio
import os
import socket
from contextlib import suppress

import pytest
from hypothesis import given, settings
from websockets.exceptions import ConnectionClosed

from tests.eventually import BOUND_S
from tests.gateway.conftest import Client, Running
from tests.gateway.core.test_step import PAYLOADS
from tests.gateway.stand_in import StandIn
from tests.gateway.vox.raw import head, received, text, upgraded
from voxbridge.services.gateway.core import lateness
from voxbridge.services.gateway.core.messages import MESSAGE_LIMIT
from voxbridge.services.gateway.door import transport as sockets
from voxbridge.services.gateway.door.transport import FIRST_LIMIT, GATHER_BYTES, QUEUE_MESSAGES, Socket
from voxbridge.shared.audio import frames
from voxbridge.shared.audio.frames import PCM16, pack
from voxbridge.shared.clock import wall_ms32
from voxbridge.shared.websocket import BINARY, CLOSE, TEXT


async def still_works(client: Client) -> None:
    """Check that the socket answers."""
    await client.say({"type": "no such type"})
    while True:
        message = await client.next()
        if isinstance(message, dict) and message.get("field") == "type" and "no known" in message["message"]:
            return


async def test_a_message_over_one_mebibyte_gets_an_error_and_the_socket_stays_open(running: Running, voice: StandIn) -> None:
    async with running.client() as client:
        await client.started()
        await client.socket.send("x" * (MESSAGE_LIMIT + 1))
        error = await client.until("error")
        assert (error["code"], error["field"], error["limit"]) == ("TOO_LARGE", "message", MESSAGE_LIMIT)
        await client.socket.send(bytes(MESSAGE_LIMIT + 1))
        assert (await client.until("error"))["code"] == "TOO_LARGE"
        await still_works(client)


async def test_a_head_that_asks_for_more_than_four_mebibytes_closes_with_1009(running: Running, voice: StandIn) -> None:
    async with upgraded(running) as (reader, writer), asyncio.timeout(BOUND_S):
        frames_of_gateway = received(reader)
        writer.write(text(b'{"type":"start","mode":"echo"}'))
        while b"setup_complete" not in (await anext(frames_of_gateway))[1]:
            pass
        writer.write(head(BINARY, sockets.MESSAGE_LIMIT + 1, bits=64))
        assert [int.from_bytes(payload[:2]) async for opcode, payload in frames_of_gateway if opcode == CLOSE] == [1009]


async def test_a_message_over_256_kibibytes_before_there_is_a_session_closes_with_1009(running: Running) -> None:
    async with running.client() as client:
        await client.socket.send(b"x" * FIRST_LIMIT, text=True)
        assert (await client.until("error"))["code"] == "INVALID_MESSAGE"
    async with upgraded(running) as (reader, writer), asyncio.timeout(BOUND_S):
        writer.write(head(TEXT, FIRST_LIMIT + 1, bits=64))
        assert [int.from_bytes(payload[:2]) async for _, payload in received(reader)] == [1009]


async def test_text_that_is_not_utf8_closes_with_1007(running: Running) -> None:
    async with running.client() as client:
        await client.socket.send(b'{"type":"text","text":"\xff"}', text=True)
        assert await client.close_code() == 1007


async def test_pcm_of_odd_length_and_a_second_start_get_errors_and_the_session_goes_on(running: Running, voice: StandIn) -> None:
    async with running.client() as client:
        await client.started()
        session = await voice.session()
        await client.socket.send(pack(PCM16, 0, 0, 0, b"abc"))
        assert (await client.until("error"))["code"] == "INVALID_ARGUMENT"
        await client.say({"type": "start", "mode": "echo"})
        assert (await client.until("error"))["code"] == "CONFLICT"
        await client.socket.send(pack(PCM16, 0, 0, 0, b"ab"))
        assert (await asyncio.wait_for(session.microphone.get(), BOUND_S))[16:] == b"ab"


async def test_a_hundred_wrong_messages_close_with_4009(running: Running) -> None:
    async with running.client() as client:
        for _ in range(100):
            await client.socket.send("?")
        assert await client.close_code() == 4009


async def test_a_storm_of_random_messages_harms_nobody(running: Running, voice: StandIn) -> None:
    """Send random text and binary over many sockets, some of them cut in the middle of a frame."""
    examples: list[bytes] = []

    @settings(max_examples=150, deadline=None, database=None)
    @given(PAYLOADS)
    def collect(payload: bytes) -> None:
        examples.append(payload)

    collect()
    async with running.client() as witness:
        await witness.started()
        session = await voice.session()
        for begin in range(0, len(examples), 30):
            async with running.client(v1=begin % 60 == 0) as client:
                with suppress(ConnectionClosed):
                    await client.say({"type": "start", "mode": "echo"})
                    for payload in examples[begin : begin + 30]:
                        await client.socket.send(payload, text=True)
                        await client.socket.send(payload + os.urandom(20))
                    client.socket.transport.abort()
        await witness.socket.send(pack(PCM16, 0, 0, 0, b"ok"))
        assert (await asyncio.wait_for(session.microphone.get(), BOUND_S))[16:] == b"ok"
        await still_works(witness)
    metrics = (await running.get("/metrics")).text
    assert 'voxbridge_gateway_errors_total{code="INTERNAL"}' not in metrics


async def test_a_client_that_does_not_read_is_closed_with_4008_and_others_hear_everything(
    running: Running, voice: StandIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lateness, "MAX_AGE_MS", 60_000)
    small = socket.socket(socket.AF_INET)
    small.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    small.setblocking(False)
    await asyncio.get_running_loop().sock_connect(small, ("127.0.0.1", running.port))
    async with running.client(sock=small, max_queue=1, ping_interval=None) as slow, running.client() as other:
        await slow.started()
        to_slow = await voice.session()
        await other.started()
        to_other = await voice.session()
        big = pack(PCM16, 1, 0, wall_ms32(), bytes(60_000))
        heard = 0
        async with asyncio.timeout(BOUND_S):
            while not running.gateway.metrics.closes[4008]:
                await to_slow.plays(pack(PCM16, 1, 0, wall_ms32(), bytes(60_000)))
                await to_other.plays(pack(PCM16, 1, heard, wall_ms32(), b"ab"))
                assert frames.parse(await other.next()).sequence == heard
                heard += 1
        assert heard * len(big) > 1024 * 1024
        assert await slow.close_code() == 4008
        await to_other.plays(pack(PCM16, 2, 0, wall_ms32(), b"cd"))
        assert (await other.next())[16:] == b"cd"


async def test_a_full_queue_of_small_messages_counts_as_not_reading(running: Running, voice: StandIn) -> None:
    async with running.client() as client:
        await client.started()
        await voice.session()
        (connection,) = running.gateway.connections
        socket = connection._socket
        assert isinstance(socket, Socket)
        socket.pause_writing()
        for _ in range(QUEUE_MESSAGES):
            socket.send_text(b"{}")
        assert running.gateway.metrics.closes.total() == 0
        socket.send_text(b"{}")
        assert running.gateway.metrics.closes.total() == 1
        assert await client.close_code() == 4008


async def test_what_is_gathered_is_written_in_order_and_before_the_close(running: Running, voice: StandIn) -> None:
    async with running.client() as client:
        await client.started()
        await voice.session()
        (connection,) = running.gateway.connections
        said = [b"{}", b"x" * GATHER_BYTES, b"{}", b"{}"]
        connection._socket.gather()
        for payload in said:
            connection._socket.send_text(payload)
        connection._socket.gather()
        connection._socket.send_text(b"[]")
        connection._socket.finish(1012, "now")
        assert [await client.socket.recv(decode=False) for _ in range(5)] == [*said, b"[]"]
        assert await client.close_code() == 1012


async def test_audio_that_is_200_ms_late_is_dropped_but_the_end_of_a_reply_is_told(running: Running, voice: StandIn) -> None:
    async with running.client() as client:
        await client.started()
        session = await voice.session()
        await session.plays(pack(PCM16, 1, 0, wall_ms32(), b"ab"))
        await session.plays(pack(PCM16, 1, 1, wall_ms32() - 1_000, b"ab"))
        await session.plays(pack(PCM16, 1, 2, wall_ms32() - 1_000, b"ab", frames.LAST))
        await session.plays(pack(frames.FLUSH, 1, 3, wall_ms32() - 1_000))
        assert frames.parse(await client.next()).sequence == 0
        last = await client.next()
        assert (frames.parse(last).sequence, len(last)) == (2, frames.PREFIX_SIZE)
        assert frames.parse(await client.next()).kind == frames.FLUSH
        assert running.gateway.metrics.dropped["too_old"] == 2


async def test_a_microphone_that_floods_is_dropped_beyond_15_s_and_told_so_once(running: Running, voice: StandIn) -> None:
    large = pack(PCM16, 0, 0, 0, bytes(frames.MAX_FRAME - frames.PREFIX_SIZE))  # 2.05 s
    async with running.client() as client:
        await client.started()
        session = await voice.session()
        for _ in range(20):
            await client.socket.send(large)
        error = await client.until("error")
        assert (error["code"], error["field"], error["limit"]) == ("OVERLOADED", "audio", 15.0)
        await still_works(client)
        dropped = int(running.gateway.metrics.dropped["ahead_of_time"])
        assert dropped > 0, "forty seconds were sent at once"
        for _ in range(20 - dropped):
            await asyncio.wait_for(session.microphone.get(), BOUND_S)
        assert session.microphone.empty()
