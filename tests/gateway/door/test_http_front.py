"""Limits of the gateway's HTTP front for unknown clients."""

from __future__ import annotations

import asyncio
import json
import resource
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from typing import Any

import pytest
from websockets.asyncio.client import connect
from websockets.exceptions import InvalidStatus

from tests.eventually import BOUND_S, eventually
from tests.gateway.conftest import Running, Serve
from tests.gateway.vox.raw import upgraded
from voxbridge.services.gateway.door import connection_limits, http_front
from voxbridge.services.gateway.door.http_front import HEAD_BYTES, HEADERS, LINE_BYTES, PIPELINE

LONG_S = 1_000.0


@pytest.fixture(autouse=True)
def bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    """Long timeouts, so that only the timeout under test ends a test."""
    for name in ("HEAD_S", "WRITE_S", "LINGER_S"):
        monkeypatch.setattr(http_front, name, LONG_S)


@asynccontextmanager
async def connection(running: Running) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    reader, writer = await asyncio.open_connection("127.0.0.1", running.port)
    try:
        async with asyncio.timeout(BOUND_S):
            yield reader, writer
    finally:
        writer.close()


def request(running: Running, *headers: str, target: str = "/healthz", method: str = "GET") -> bytes:
    lines = [f"{method} {target} HTTP/1.1", f"Host: 127.0.0.1:{running.port}", *headers]
    return ("\r\n".join(lines) + "\r\n\r\n").encode()


async def refused(reader: asyncio.StreamReader) -> tuple[int, dict[str, Any]]:
    """Return status and problem of the single answer, after which the gateway sends nothing."""
    head, _, body = (await reader.read()).partition(b"\r\n\r\n")
    return int(head.split()[1]), json.loads(body)


async def test_a_header_of_32_mebibytes_is_refused_at_its_first_32_kibibytes(running: Running) -> None:
    async with connection(running) as (reader, writer):
        writer.write(b"GET /healthz HTTP/1.1\r\nX-Long: ")
        answer = asyncio.create_task(refused(reader))
        with suppress(ConnectionError):
            for _ in range(1024):
                writer.write(b"x" * HEAD_BYTES)
                await writer.drain()
                if answer.done():
                    break
            else:
                raise AssertionError("all of it was taken")
        status, problem = await answer
        assert (status, problem["code"], problem["limit"]) == (431, "TOO_LARGE", HEAD_BYTES)


@pytest.mark.parametrize(
    ("headers", "target", "status", "limit"),
    [
        (["X: " + "x" * LINE_BYTES], "/healthz", 431, LINE_BYTES),
        ([], "/" + "x" * LINE_BYTES, 414, LINE_BYTES),
        ([f"X-{n}: x" for n in range(HEADERS)], "/healthz", 431, HEADERS),
        ([f"X-{n}: {'x' * 7_000}" for n in range(5)], "/healthz", 431, HEAD_BYTES),
    ],
)
async def test_a_head_has_bounds(running: Running, headers: list[str], target: str, status: int, limit: int) -> None:
    async with connection(running) as (reader, writer):
        writer.write(request(running, *headers, target=target))
        found, problem = await refused(reader)
        assert (found, problem["code"], problem["limit"]) == (status, "TOO_LARGE", limit)


async def test_a_head_at_its_bounds_is_answered(running: Running) -> None:
    async with connection(running) as (reader, writer):
        writer.write(request(running, *(f"X-{n}: x" for n in range(HEADERS - 3)), "X: " + "x" * (LINE_BYTES - 1), "Connection: close"))
        assert (await reader.read()).startswith(b"HTTP/1.1 200 ")


async def test_a_head_that_does_not_come_whole_in_time_is_refused_and_the_connection_closed(
    running: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http_front, "HEAD_S", 0.05)
    async with connection(running) as (reader, writer):
        writer.write(b"GET / HTTP/1.1\r\nHo")
        status, problem = await refused(reader)
        assert (status, problem["code"], problem["field"]) == (408, "TIMED_OUT", "head")
    async with connection(running) as (reader, _):  # a client that sends nothing
        assert await reader.read() == b""
    async with connection(running) as (reader, writer):  # a client that sends only line breaks, after an answer
        writer.write(request(running))
        await reader.readuntil(b"}")
        writer.write(b"\r\n")
        assert await reader.read() == b""


async def test_a_second_request_has_to_come_whole_in_time_too(running: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    async with connection(running) as (reader, writer):
        writer.write(request(running))
        await reader.readuntil(b"}")
        monkeypatch.setattr(http_front, "HEAD_S", 0.05)
        writer.write(b"GET")
        assert (await refused(reader))[0] == 408


async def test_many_half_open_connections_shut_nobody_out(running: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection_limits, "HALF_OPEN", 16)
    async with AsyncExitStack() as stack:
        first, _ = await stack.enter_async_context(connection(running))
        for _ in range(40):
            _, writer = await stack.enter_async_context(connection(running))
            writer.write(b"GET / HTTP/1.1\r\n")
        assert (await running.get("/healthz")).status_code == 200
        assert await first.read() == b""


async def test_where_there_is_no_room_a_half_open_connection_gives_its_place_to_a_new_one(running: Running) -> None:
    house = running.gateway.lobby
    async with AsyncExitStack() as stack:
        for _ in range(4):
            await stack.enter_async_context(upgraded(running))
        first, _ = await stack.enter_async_context(connection(running))
        await eventually(lambda: house.here == 5)
        house.room = 5
        assert (await running.get("/healthz")).status_code == 200
        assert await first.read() == b""
        house.room = 4
        async with connection(running) as (reader, _):
            status, problem = await refused(reader)
            assert (status, problem["code"], problem["limit"]) == (503, "OVERLOADED", 4)
    await eventually(lambda: house.here == 0)


async def test_requests_sent_far_ahead_of_their_answers_are_refused(running: Running) -> None:
    async with connection(running) as (reader, writer):
        writer.write(request(running) * PIPELINE)
        for _ in range(PIPELINE):
            assert b" 200 " in await reader.readuntil(b"}")
    async with connection(running) as (reader, writer):
        writer.write(request(running) * 5_000)
        with suppress(ConnectionError):
            while await reader.readline():
                pass
    await eventually(lambda: running.gateway.lobby.here == 0)


async def test_a_client_that_does_not_read_its_answers_is_cut_off(running: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_front, "WRITE_S", 0.05)
    house = running.gateway.lobby
    async with connection(running) as (reader, writer):
        writer.transport.pause_reading()  # type: ignore[attr-defined]
        with suppress(ConnectionError):
            while not reader.at_eof():
                writer.write(request(running, target="/openapi.json"))
                await writer.drain()
                await asyncio.sleep(0)
                if house.here == 0:
                    break
    await eventually(lambda: house.here == 0)
    assert running.gateway.unread.held == 0


async def test_answers_that_nobody_reads_share_a_budget(running: Running) -> None:
    running.gateway.unread.limit = 1
    async with connection(running) as (reader, writer):
        writer.transport.pause_reading()  # type: ignore[attr-defined]
        with suppress(ConnectionError):
            while running.gateway.lobby.here or not reader.at_eof():
                writer.write(request(running, target="/openapi.json"))
                await writer.drain()
                if running.gateway.lobby.here == 0:
                    break


async def test_a_body_that_nobody_reads_does_not_keep_the_connection(running: Running) -> None:
    async with connection(running) as (reader, writer):
        writer.write(request(running, "Content-Length: 1000000000", method="GET") + b"x" * 100)
        assert b" 200 " in await reader.read()


@pytest.mark.parametrize(
    "handshake",
    ["GET /ws/vox HTTP/1.1", "POST /ws/vox HTTP/1.1", "GET /ws/vox HTTP/1.0"],
)
async def test_a_handshake_that_the_socket_does_not_understand_is_answered(running: Running, handshake: str) -> None:
    async with connection(running) as (reader, writer):
        bad = "\r\nSec-WebSocket-Version: 12" if handshake.endswith("/ws/vox HTTP/1.1") and handshake.startswith("GET") else ""
        writer.write(f"{handshake}\r\nHost: 127.0.0.1:{running.port}\r\nConnection: Upgrade\r\nUpgrade: websocket{bad}\r\n\r\n".encode())
        assert (await reader.read()).split()[1] in (b"400", b"405", b"426")


async def test_what_is_no_http_is_answered_with_a_problem(running: Running) -> None:
    async with connection(running) as (reader, writer):
        writer.write(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n")
        status, problem = await refused(reader)
        assert (status, problem["code"]) == (400, "INVALID_MESSAGE")


async def test_an_address_behind_a_trusted_proxy_has_so_many_sockets(serve: Serve, nats_url: str, redis_url: str) -> None:
    running = await serve(nats_url, redis_url, trusted_proxies="127.0.0.1", sockets_per_address=2)
    url = f"ws://127.0.0.1:{running.port}/ws/vox"
    one, other = {"X-Forwarded-For": "203.0.113.9"}, {"X-Forwarded-For": "203.0.113.9, 198.51.100.7"}
    async with AsyncExitStack() as stack:
        await stack.enter_async_context(connect(url, additional_headers=one))
        second = await stack.enter_async_context(connect(url, additional_headers=one))
        with pytest.raises(InvalidStatus) as caught:
            await connect(url, additional_headers=one)
        assert caught.value.response.status_code == 503
        await stack.enter_async_context(connect(url, additional_headers=other))
        await second.close()
        await eventually(lambda: running.gateway.lobby.here == 2)
        await stack.enter_async_context(connect(url, additional_headers=one))


def test_a_process_asks_for_all_the_descriptors_that_it_may_have() -> None:
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (256, before[1]))
        room = connection_limits.raise_descriptors()
        soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
        assert soft == min(before[1], connection_limits.DESCRIPTORS)
        assert room == soft - connection_limits.RESERVE
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)
