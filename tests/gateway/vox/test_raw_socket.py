"""Input that no library sends: a client that asks for pongs and reads none, and one that continues after its close frame."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack, suppress
from typing import Final

import pytest

from tests.eventually import BOUND_S, eventually
from tests.gateway.conftest import Running
from tests.gateway.stand_in import StandIn
from tests.gateway.vox.raw import close, frame, head, received, text, upgraded
from tests.gateway.vox.test_transport import FRAME
from voxbridge.services.gateway.door import transport
from voxbridge.services.gateway.door.transport import COUNTED, FIRST_LIMIT, QUEUE_BYTES
from voxbridge.shared.websocket import BINARY, CLOSE, PING, PONG

_PING: Final = frame(PING, bytes(125))
_MANY: Final = 64
CONT: Final = 0


async def test_a_client_that_asks_for_pongs_and_reads_none_is_cut_off(running: Running) -> None:
    async with upgraded(running) as (_, writer), asyncio.timeout(BOUND_S):
        with suppress(ConnectionError):
            for _ in range(_MANY):  # far more than all buffers in between hold
                writer.write(_PING * (QUEUE_BYTES // len(_PING)))
                await writer.drain()
            raise AssertionError("it was served on")


async def test_what_follows_a_close_frame_is_not_taken(running: Running) -> None:
    async with upgraded(running) as (reader, writer):
        writer.write(close(1000) + text(b'{"type":"start","mode":"echo"}'))
        assert (await asyncio.wait_for(reader.read(), BOUND_S))[:1] == b"\x88"
    assert (await running.get("/api/sessions")).json()["sessions"] == []


async def test_unfinished_messages_of_all_sockets_share_a_budget_and_whoever_holds_most_goes(running: Running, voice: StandIn) -> None:
    budget = running.gateway.budget
    budget.limit = 16 * COUNTED
    async with running.client() as client, AsyncExitStack() as stack, asyncio.timeout(BOUND_S):
        await client.started()
        session = await voice.session()
        sockets = [await stack.enter_async_context(upgraded(running)) for _ in range(4)]
        for number, (_, writer) in enumerate(sockets):
            writer.write(head(BINARY, FIRST_LIMIT, bits=64) + bytes(4 * COUNTED + number))
        largest, _ = sockets[-1]
        assert [int.from_bytes(payload[:2]) async for opcode, payload in received(largest) if opcode == CLOSE] == [1013]
        await client.socket.send(FRAME)
        assert (await session.microphone.get())[16:] == FRAME[16:]
        assert 0 < budget.held <= budget.limit
    await eventually(lambda: budget.held == 0)


async def test_a_message_in_many_frames_counts_as_one_that_is_not_whole(running: Running) -> None:
    budget = running.gateway.budget
    async with upgraded(running) as (reader, writer), asyncio.timeout(BOUND_S):
        writer.write(frame(BINARY, bytes(COUNTED), fin=False) + frame(PING, b""))
        assert await anext(received(reader)) == (PONG, b"")
        assert budget.held == COUNTED
        writer.write(frame(CONT, b"") + frame(PING, b""))
        frames = received(reader)
        while await anext(frames) != (PONG, b""):
            pass
        assert budget.held == 0


async def test_a_client_that_is_wrong_and_reads_nothing_is_cut_off(running: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transport, "CLOSE_WAIT_S", 0.05)
    async with upgraded(running) as (_, writer), asyncio.timeout(BOUND_S):
        writer.write(b"\xff\xff")
        with suppress(ConnectionError):
            while True:
                writer.write(bytes(65_536))
                await writer.drain()
    await eventually(lambda: not running.gateway.connections)
