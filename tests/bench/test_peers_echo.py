"""The load of the comparison: its frames are found in any returned stream, and only whole ones count."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import pytest
from websockets.asyncio.server import ServerConnection, serve

from bench.clients.client import PCM_BYTES, Task
from bench.peers import echo
from bench.peers.echo import Finder, Sent, payload
from voxbridge.shared.audio.frames import PREFIX_SIZE

SENT = [Sent(session=3, number=number, sent_ns=10**18 + number) for number in range(5)]
PREFIX = bytes(PREFIX_SIZE)


@asynccontextmanager
async def serving(answer: Callable[[ServerConnection], Awaitable[None]]) -> AsyncIterator[str]:
    async with serve(answer, "127.0.0.1", 0, compression=None) as server:
        yield f"ws://127.0.0.1:{next(iter(server.sockets)).getsockname()[1]}/"


def task(url: str, sessions: int = 2) -> Task:
    return Task(kind="echo", url=url, sessions=sessions, seconds=0.2, warm_s=0.04, bare=True)


def test_a_frame_is_as_long_as_the_microphones() -> None:
    assert len(payload(SENT[0])) == PCM_BYTES


@pytest.mark.parametrize("piece", [1, 7, 27, 640, 1_600, 1_920, 10_000])
def test_frames_are_found_however_the_stream_is_cut(piece: int) -> None:
    stream = b"".join(map(payload, SENT))
    finder = Finder()
    found = [sent for at in range(0, len(stream), piece) for sent in finder.take(stream[at : at + piece])]
    assert found == SENT


def test_a_frame_counts_when_its_last_byte_is_there_and_not_before() -> None:
    finder = Finder()
    assert finder.take(payload(SENT[0])[:-1]) == []
    assert finder.take(payload(SENT[0])[-1:]) == [SENT[0]]


def test_silence_between_frames_does_no_harm() -> None:
    finder = Finder()
    stream = bytes(1_001).join(map(payload, SENT))
    assert [sent for at in range(0, len(stream), 960) for sent in finder.take(stream[at : at + 960])] == SENT


@pytest.mark.parametrize("at", [0, 9, 25, 28, 639])
def test_a_frame_with_one_wrong_byte_is_passed_over_and_the_next_one_found(at: int) -> None:
    wrong = bytearray(payload(SENT[0]))
    wrong[at] ^= 0x40
    assert Finder().take(bytes(wrong) + payload(SENT[1])) == [SENT[1]]


def test_a_frame_that_was_cut_into_by_silence_is_not_whole() -> None:
    frame = payload(SENT[0])
    assert Finder().take(frame[:320] + bytes(640) + frame[320:] + payload(SENT[1])) == [SENT[1]]


async def test_every_frame_that_was_sent_is_counted_as_back_or_lost() -> None:
    async def answer(socket: ServerConnection) -> None:
        async for message in socket:
            await socket.send(message)

    async with serving(answer) as url:
        found = await echo.echo(task(url))
    assert (found.frames, found.lost, found.rtt_ms.count) == (20, 0, 20)
    assert 0 < (found.rtt_ms.p50 or 0) < 5_000


async def test_a_system_that_gathers_frames_into_larger_pieces_loses_none() -> None:
    async def answer(socket: ServerConnection) -> None:
        held = b""
        async for message in socket:
            assert isinstance(message, bytes)
            held += message[PREFIX_SIZE:]
            while len(held) >= 1_600:
                await socket.send(PREFIX + held[:1_600])
                held = held[1_600:]

    async with serving(answer) as url:
        found = await echo.echo(task(url))
    assert (found.frames, found.lost) == (20, 0)


async def test_frames_that_come_back_changed_are_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(echo, "DRAIN_S", 0.1)

    async def answer(socket: ServerConnection) -> None:
        clean = 1
        async for message in socket:
            assert isinstance(message, bytes)
            await socket.send(message if clean else message[:-1] + b"\x7f")
            clean = max(0, clean - 1)

    async with serving(answer) as url:
        found = await echo.echo(task(url))
    assert (found.frames, found.lost, found.rtt_ms.p50) == (20, 20, None)


async def test_a_frame_that_comes_back_in_anothers_call_or_twice_is_nobodys() -> None:
    sockets: list[ServerConnection] = []

    async def answer(socket: ServerConnection) -> None:
        sockets.append(socket)
        first = sockets.index(socket) == 0
        async for message in socket:
            await socket.send(message)
            await socket.send(message)
            if first and len(sockets) > 1:
                await sockets[1].send(message)

    async with serving(answer) as url:
        found = await echo.echo(task(url))
    assert (found.frames, found.lost, found.rtt_ms.count) == (20, 0, 20)


async def test_a_session_that_never_answers_ends_the_measurement(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(echo, "READY_S", 0.1)

    async def answer(socket: ServerConnection) -> None:
        async for _ in socket:
            pass

    async with serving(answer) as url:
        with pytest.raises(TimeoutError, match=r"session 1 of 2 had no frame back within 0\.1 s"):
            await echo.echo(task(url))
