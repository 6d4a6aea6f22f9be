"""The load client: its framing against real servers, and its limits."""

from __future__ import annotations

import asyncio
import struct
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from websockets.asyncio.server import ServerConnection, serve

from bench.clients import client
from bench.clients.websocket import Socket, connect, frame
from tests.eventually import BOUND_S
from voxbridge.shared.audio.frames import PREFIX_SIZE


@pytest_asyncio.fixture
async def url() -> AsyncIterator[str]:
    async def echo(socket: ServerConnection) -> None:
        async for message in socket:
            await socket.send(message)

    async with serve(echo, "127.0.0.1", 0, compression=None, max_size=None) as server:
        yield f"ws://127.0.0.1:{server.sockets[0].getsockname()[1]}/"


@pytest.mark.parametrize("size", [0, 125, 126, 65_535, 65_536, 300_000])
async def test_a_message_of_every_length_form_comes_back_whole(url: str, size: int) -> None:
    socket = await connect(url)
    heard: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
    socket.on_binary = heard.set_result
    payload = bytes(range(256)) * (size // 256) + bytes(size % 256)
    socket.send_binary(payload)
    async with asyncio.timeout(BOUND_S):
        assert await heard == payload
    socket.close()


async def test_messages_cut_anywhere_by_the_network_are_put_together() -> None:
    socket = Socket("127.0.0.1:1", "/", "")
    heard: list[bytes] = []
    socket.on_text = socket.on_binary = heard.append
    stream = b"HTTP/1.1 101 Switching Protocols\r\n\r\n" + b"\x82\x03abc" + b"\x81\x7e" + struct.pack(">H", 200) + b"x" * 200
    for at in range(len(stream)):
        socket.data_received(stream[at : at + 1])
    assert heard == [b"abc", b"x" * 200]
    await socket.opened


async def test_a_refused_handshake_says_why() -> None:
    async def refuse(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 403 Forbidden\r\n\r\n")
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(refuse, "127.0.0.1", 0)
    async with server:
        port = server.sockets[0].getsockname()[1]
        with pytest.raises(ConnectionError, match="403"):
            await connect(f"ws://127.0.0.1:{port}/")


def test_frames_have_a_mask_of_zeros() -> None:
    assert frame(2, b"ab") == b"\x82\x82\0\0\0\0ab"


async def test_every_frame_that_was_sent_is_counted_as_back_or_lost(url: str) -> None:
    found = await client.echo(client.Task(kind="echo", url=url, sessions=3, seconds=0.2, warm_s=0.02, bare=True))
    assert (found.frames, found.lost, found.rtt_ms.count) == (30, 0, 30)


async def test_frames_that_never_come_back_are_lost() -> None:
    async def swallow(socket: ServerConnection) -> None:
        async for message in socket:
            assert len(message) == PREFIX_SIZE + client.PCM_BYTES

    async with serve(swallow, "127.0.0.1", 0, compression=None) as server:
        url = f"ws://127.0.0.1:{server.sockets[0].getsockname()[1]}/"
        sessions = await client.open_sessions(client.Task(kind="echo", url=url, sessions=2, bare=True))
        load = client.Echo(sessions)
        await load.run(0.04)
        await client.end_sessions(sessions, bare=True)
    assert (load.sent, load.received) == (4, 0)


@pytest.mark.parametrize(
    ("task", "limit"),
    [
        (client.Task(kind="echo", url="ws://192.0.2.1/", sessions=1), "loopback"),
        (client.Task(kind="echo", url="ws://127.0.0.1/", sessions=client.SESSIONS_LIMIT + 1), "sessions"),
        (client.Task(kind="echo", url="ws://127.0.0.1/", sessions=0), "sessions"),
        (client.Task(kind="echo", url="ws://127.0.0.1/", sessions=1, seconds=client.SECONDS_LIMIT + 1), "seconds"),
    ],
)
def test_a_load_out_of_bounds_is_refused(task: client.Task, limit: str) -> None:
    with pytest.raises(ValueError, match=limit):
        client.check(task)


@pytest.mark.parametrize("sessions", [1, client.SESSIONS_LIMIT])
def test_a_load_at_its_bounds_is_taken(sessions: int) -> None:
    task = client.Task(kind="echo", url="ws://127.0.0.1:1/", sessions=sessions, seconds=client.SECONDS_LIMIT)
    client.check(task)
    assert task.sessions == sessions
